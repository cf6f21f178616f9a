import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def wheel():
    """The wheel under test: GPUGLUE_WHEEL, or the one in dist/."""
    root = Path(__file__).parents[2]
    named = os.environ.get("GPUGLUE_WHEEL")
    found = [Path(named)] if named else sorted((root / "dist").glob("gpuglue-*.whl"))
    assert len(found) == 1, f"expected one wheel, found {found}: run `make wheel` or set GPUGLUE_WHEEL"
    return found[0].resolve()
