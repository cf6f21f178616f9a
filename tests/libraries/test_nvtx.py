"""The profiler of the tests is one: NVIDIA's own client of NVTX finds it by the same variable, and its ranges arrive."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nvtx")
BUILT = Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or Path(__file__).resolve().parents[2] / "build/plain/tests")


def test_ranges_of_the_package_nvtx_arrive(tmp_path):
    code = "import nvtx\nwith nvtx.annotate('outer'):\n    nvtx.push_range('inner'); nvtx.pop_range()"
    variables = os.environ | {"NVTX_INJECTION64_PATH": str(BUILT / "librange_tool.so"), "GPUGLUE_TEST_RANGES": str(tmp_path / "ranges")}
    subprocess.run([sys.executable, "-c", code], check=True, env=variables)
    assert (tmp_path / "ranges").read_text().splitlines() == ["push outer", "push inner", "pop", "pop"]
