"""gpuglue.compat.pycuda: how many driver calls and calls of Python functions an operation makes once it is known, so that no change adds one."""

import json
import sys

import pytest
from conftest import succeeds
from kernels import needs_compiler, runs_code

from gpuglue.compat.pycuda import _compute, driver, tools

MORE = 50  # operations in the second of two processes, whose counts are compared
PREPARE = """
import numpy as np
from gpuglue.compat.pycuda import cumath, driver, gpuarray, tools
from gpuglue.compat.pycuda.elementwise import ElementwiseKernel
from gpuglue.compat.pycuda.reduction import ReductionKernel
from gpuglue.compat.pycuda.scan import InclusiveScanKernel
a, b, c, large = (gpuarray.zeros(n, np.float32) for n in (256, 256, 256, 1 << 20))
combine = ElementwiseKernel("float s, float *x, float *y, float *z", "z[i] = s * x[i] + y[i]", "combine")
dot = ReductionKernel(np.float32, "0", "a + b", "x[i] * y[i]", "float *x, float *y", "dot")
scan = InclusiveScanKernel(np.float32, "a + b")
"""
# Statement: (launches, allocations, calls of Python functions). The memory is of the pool, which calls the driver only to ask whether a
# stream that used it is captured.
STATEMENTS = {
    "a + b": (1, 1, 12),
    "a * 2": (1, 1, 13),
    "2.0 - a": (1, 1, 13),
    "-a": (1, 1, 11),
    "a == b": (1, 1, 12),
    "a.__iadd__(b)": (1, 0, 9),
    "cumath.exp(a)": (1, 1, 11),
    "gpuarray.sum(a)": (1, 1, 13),
    "gpuarray.sum(large)": (2, 2, 20),
    "combine(2.0, a, b, c)": (1, 0, 6),
    "dot(a, b)": (1, 1, 8),
    "scan(a)": (1, 0, 9),
    "a.fill(3)": (0, 0, 4),
}
POLLS = {"cuEventQuery", "cuThreadExchangeStreamCaptureMode"}  # how often depends on time


@pytest.fixture(autouse=True)
def computes_by_kernels(device):
    if device.backend not in ("cuda", "hip"):
        pytest.skip(f"NumPy computes on {device}")


def calls(run_python, path, count):
    code = "import stand_in_compiler\nstand_in_compiler.install()\nfrom gpuglue.compat.pycuda import driver, tools\n" \
        f"driver.init()\ncontext = tools.make_default_context()\n{PREPARE}\n" \
        f"for _ in range({count}):\n    {'; '.join(STATEMENTS)}\n"
    succeeds(run_python(code, GPUGLUE_SIM_REPORT=str(path)))
    return json.loads(path.read_text())["calls"]


def test_operations_make_no_calls_of_the_driver_but_their_launches(device, tmp_path, run_python):
    if runs_code(device) or device.backend != "cuda":
        pytest.skip("the stand-in for a compiler is for the simulated CUDA driver, which counts its calls")
    few, many = (calls(run_python, tmp_path / f"{count}.json", count) for count in (20, 20 + MORE))
    each = {name: (count - few.get(name, 0)) / MORE for name, count in many.items() if name not in POLLS}
    launches, allocations, _ = map(sum, zip(*STATEMENTS.values()))
    expected = {"cuLaunchKernel": launches, "cuMemsetD32Async": 1, "cuStreamIsCapturing": allocations,
                "cuCtxGetCurrent": launches + 1 + allocations}  # which reads a variable of the thread
    assert {name: round(count) for name, count in each.items() if count > 0.3} == expected  # markers are rarer


@pytest.fixture
def names(device, monkeypatch):
    """What the statements use, after a run of each."""
    if runs_code(device):
        needs_compiler(device)
    elif device.backend == "cuda":
        import stand_in_compiler

        monkeypatch.setattr(stand_in_compiler.compiler, "compile", stand_in_compiler.compile)
    else:
        pytest.skip("the stand-in for a compiler is for the simulated CUDA driver")
    monkeypatch.setattr(_compute, "_plans", {})
    driver.init()
    context = tools.make_default_context()
    found: dict = {}
    exec(PREPARE, found)
    yield found
    found.clear()
    context.pop()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_operation_makes_no_more_calls_of_python_functions_than_it_needs(names, statement):
    code, entered = compile(statement, "statement", "eval"), []

    def count(frame, event, argument):
        if event == "call" and frame.f_code is not code:
            entered.append(frame.f_code.co_name)

    kept = [eval(code, names) for _ in range(2)]
    sys.setprofile(count)
    try:
        kept.append(eval(code, names))
    finally:
        sys.setprofile(None)
    kept.clear()
    assert len(entered) <= STATEMENTS[statement][-1], entered
