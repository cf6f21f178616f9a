"""gg.range() in profilers: by NVTX on cuda, by roctx on hip and by ITT on ze, where such a profiler listens."""

import shutil

import pytest
from conftest import needed, run_python, succeeds

# How the profiler of a backend is named. The tool is tests/support/range_tool.c.
VARIABLES = {"cuda": "NVTX_INJECTION64_PATH", "hip": "GPUGLUE_ROCTX_LIBRARY", "ze": "INTEL_LIBITTNOTIFY64"}
OPEN = "import gpuglue as gg; gg.empty(1, 'u1'); "


@pytest.fixture
def tool():
    return str(needed("GPUGLUE_TEST_RANGE_TOOL", "librange_tool.so"))


@pytest.fixture
def written(tmp_path, tool, backend):
    """Runs code beside the profiler of its backend, and returns the ranges that the profiler gets."""
    def run(code, path=tool, **environment):
        lines = tmp_path / "ranges"
        lines.unlink(missing_ok=True)
        variables = {name: path for name in VARIABLES.values()} | {"GPUGLUE_TEST_RANGES": str(lines)} | environment
        succeeds(run_python(code, **variables))
        return lines.read_text().splitlines() if lines.exists() else []

    return run


def expected(backend, *lines):
    return list(lines) if backend in VARIABLES else []


def test_a_profiler_gets_ranges_with_their_names(written, backend):
    code = OPEN + "\nwith gg.range('step ü'), gg.range('inner'): pass\n@gg.range('function')\ndef f(): pass\nf()"
    assert written(code) == expected(backend, "push step ü", "push inner", "pop", "pop", "push function", "pop")


def test_a_profiler_does_not_get_the_end_of_a_range_that_began_before_it_was_found(written, backend):
    code = "import gpuglue as gg\nwith gg.range('before'):\n    gg.empty(1, 'u1')\n    with gg.range('after'): pass"
    assert written(code) == expected(backend, "push after", "pop")


def test_ranges_nest_deeper_than_a_recording_keeps_them_and_stay_in_pairs(written, backend):
    code = OPEN + "from contextlib import ExitStack\nwith ExitStack() as s:\n    for i in range(70): s.enter_context(gg.range(str(i)))"
    assert written(code) == expected(backend, *(f"push {i}" for i in range(64)), *["pop"] * 64)


def test_each_thread_has_its_own_ranges_and_a_recording_has_them_too(written, tmp_path, backend):
    path = str(tmp_path / "run.json")
    code = OPEN + f"""import threading
with gg.trace({path!r}), gg.range('outer'):
    thread = threading.Thread(target=lambda: gg._core._range_pop())
    thread.start(); thread.join()
"""
    assert written(code) == expected(backend, "push outer", "pop") and '"outer"' in open(path).read()


@pytest.mark.parametrize("problem", ["missing", "text", "refused"])
def test_a_profiler_that_cannot_be_used_does_not_end_the_program(written, tmp_path, tool, problem, backend):
    file = tmp_path / "tool.so"
    file.write_text("not a library") if problem == "text" else None
    path, refused = (tool, "1") if problem == "refused" else (str(file), None)
    if backend == "hip" and problem == "refused":
        pytest.skip("roctx has no function that could refuse")
    code = OPEN + "\nwith gg.range('step'): pass"
    assert written(code, path, GPUGLUE_TEST_RANGES_REFUSED=refused, GPUGLUE_LOG="error") == []


def test_roctx_is_used_where_the_process_has_loaded_it(written, tmp_path, tool, backend):
    for name in ("librocprofiler-sdk-roctx.so.1", "libroctx64.so.4"):
        shutil.copy(tool, tmp_path / name)
        code = f"import ctypes; ctypes.CDLL({str(tmp_path / name)!r}); {OPEN}\nwith gg.range('step'): pass"
        got = written(code, None, GPUGLUE_ROCTX_LIBRARY=None)
        assert got == (["push step", "pop"] if backend == "hip" else [])
