"""The profiler of the tests is one: Intel's own client of ITT finds it by the same variable, and its tasks arrive."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ittapi")
BUILT = Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or Path(__file__).resolve().parents[2] / "build/plain/tests")


def test_tasks_of_the_package_ittapi_arrive(tmp_path):
    code = "import ittapi\nwith ittapi.task('outer', domain='gpuglue'):\n    with ittapi.task('inner', domain='gpuglue'): pass"
    variables = os.environ | {"INTEL_LIBITTNOTIFY64": str(BUILT / "librange_tool.so"), "GPUGLUE_TEST_RANGES": str(tmp_path / "ranges")}
    subprocess.run([sys.executable, "-c", code], check=True, env=variables)
    assert (tmp_path / "ranges").read_text().splitlines() == ["push outer", "push inner", "pop", "pop"]
