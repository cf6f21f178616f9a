"""Without NumPy: memory and copies work, arrays raise an error that names the package."""

from conftest import succeeds

BLOCK = "import sys; sys.modules['numpy'] = None\nimport gpuglue as gg\n"


def test_memory_and_copies_work_without_numpy(run_python):
    code = BLOCK + """
buffer, pinned = gg.alloc(4), gg.alloc_pinned(4)
gg.copy(buffer, b"1234")
gg.copy(pinned, buffer)
host = bytearray(4)
gg.copy(host, pinned)
gg.fill(buffer, 7)
gg.copy(memoryview(host)[::-1], pinned)
print(bytes(host), bytes(memoryview(pinned)))
"""
    assert succeeds(run_python(code)) == "b'4321' b'1234'"


def test_arrays_report_what_to_install(run_python):
    code = BLOCK + """
for make in (lambda: gg.GPUArray(3), lambda: gg.empty(3), lambda: gg.to_gpu(b"abc"), lambda: gg.arange(3),
             lambda: gg.full(3, 1), lambda: gg.empty_pinned(3)):
    try:
        make()
    except ImportError as error:
        assert str(error) == "GPUArray needs NumPy >= 1.24; install numpy", error
        assert error.__cause__ is not None
    else:
        raise SystemExit("no ImportError")
"""
    assert succeeds(run_python(code)) == ""


def test_nothing_but_arrays_imports_numpy(run_python):
    code = """
import sys
import gpuglue as gg
buffer = gg.alloc(8)
gg.copy(buffer, bytearray(8))
gg.copy(memoryview(bytearray(8)), buffer)
gg.fill(buffer, b"ab")
gg.alloc_pinned(8).__array_interface__
assert "numpy" not in sys.modules
gg.GPUArray(3)
assert "numpy" in sys.modules
"""
    assert succeeds(run_python(code)) == ""


def test_numpy_imported_later_is_noticed(run_python):
    code = """
import gpuglue as gg
buffer = gg.alloc(8)
gg.copy(buffer, b"12345678")
import numpy as np
out = np.zeros(1)
gg.copy(out, buffer)
print(out.tobytes())
"""
    assert succeeds(run_python(code)) == "b'12345678'"
