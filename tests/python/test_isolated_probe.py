"""The isolated probe: a driver that hangs or crashes becomes one record of the result."""

import os

import pytest
from conftest import HANG, NO_GPU, run_python, succeeds, time_limits

import gpuglue as gg

PRINT = "import gpuglue as gg\nfor r in gg.backends('isolated', timeout={}): print(r.name, r.status, r.reason, sep='|')"


def probe(timeout=float(HANG), **environment):
    output = succeeds(run_python(PRINT.format(timeout), GPUGLUE_DEVICE=None, **environment))
    return {line.split("|")[0]: line.split("|")[1:] for line in output.splitlines()}


def test_it_finds_what_an_active_probe_finds(backend):
    mine = [(r.name, r.status, r.devices) for r in gg.backends("active") if r.name == backend]
    assert [(r.name, r.status, r.devices) for r in gg.backends("isolated", timeout=HANG) if r.name == backend] == mine


def test_it_initialises_nothing_in_this_process():
    code = (
        f"import gpuglue as gg; gg.backends('isolated', timeout={HANG})\n"
        "print('libcuda' in open('/proc/self/maps').read())"
    )
    assert succeeds(run_python(code)) == "False"


@pytest.mark.parametrize("function", ["cuInit", "cuDeviceGetCount"])
def test_a_driver_that_hangs_is_reported_as_timed_out(sim_library, function):
    for limit in time_limits():
        found = probe(limit, GPUGLUE_BACKEND="auto", GPUGLUE_CUDA_LIBRARY=sim_library, GPUGLUE_SIM_HANG=function)
        status, reason = found["cuda"]
        assert status == "timed-out" and f"within {limit:g} s" in reason
        if found["host"][0] != "timed-out":
            break
    assert found["host"][0] == "available"


def test_a_driver_that_crashes_is_reported_with_the_signal(sim_library):
    found = probe(GPUGLUE_BACKEND="auto", GPUGLUE_CUDA_LIBRARY=sim_library, GPUGLUE_SIM_CRASH="cuInit")
    status, reason = found["cuda"]
    assert status == "crashed" and "SIGABRT" in reason
    assert found["host"][0] == "available"


def test_an_excluded_backend_is_disabled_and_not_tried(sim_library):
    found = probe(GPUGLUE_BACKEND="^cuda", GPUGLUE_CUDA_LIBRARY=sim_library, GPUGLUE_SIM_CRASH="cuInit")
    assert found["cuda"][0] == "disabled" and "^cuda" in found["cuda"][1]


def test_a_name_without_a_plugin_is_reported():
    found = probe(GPUGLUE_BACKEND="metal")
    assert found["metal"][0] == "plugin-not-found" and found["host"][0] == "disabled"


def test_the_current_directory_is_not_searched_for_modules(tmp_path):
    (tmp_path / "json.py").write_text("raise RuntimeError('from the current directory')")
    code = f"import os; os.chdir({str(tmp_path)!r})\n" + PRINT.format(HANG)
    assert "from the current directory" not in succeeds(run_python(code))
    assert os.getcwd() != str(tmp_path)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), 10**30, 86401])
def test_a_time_limit_out_of_range_is_refused_with_the_limits(timeout):
    with pytest.raises(gg.InvalidArgumentError, match="more than 0 and at most 86400") as caught:
        gg.backends("isolated", timeout=timeout)
    assert repr(timeout) in str(caught.value)


def test_a_time_limit_that_is_not_a_number_is_refused():
    with pytest.raises(TypeError, match="timeout must be a number of seconds, got '3'"):
        gg.backends("isolated", timeout="3")


COMPARE = (
    "import gpuglue as gg\n{}\n"
    "both = [[(r.name, r.status, r.reason) for r in gg.backends(level, timeout=%s)] for level in ('active', 'isolated')]\n"
    "print(both[0] == both[1] or both)"
).replace("%s", str(HANG))


@pytest.mark.parametrize(
    "environment",
    [{"GPUGLUE_BACKEND": text} for text in ("host,^cuda", "host, NoSuch,nosuch", "^host", "auto,host", ",")]
    + [{"GPUGLUE_BACKEND": "host", "GPUGLUE_PLUGIN_PATH": "rel1:rel2"}],
    ids=str,
)
def test_names_without_a_backend_are_reported_as_by_an_active_probe(environment):
    """Refused plugins, unknown names, an invalid selection."""
    result = run_python(COMPARE.format(""), **{**NO_GPU, "GPUGLUE_DEVICE": None, **environment})
    assert result.stdout.strip() == "True", result.stderr


def test_use_backend_takes_precedence_over_the_variable_in_an_isolated_probe():
    result = run_python(COMPARE.format("gg.use_backend('host')"), **{**NO_GPU, "GPUGLUE_BACKEND": "cuda", "GPUGLUE_DEVICE": None})
    assert result.stdout.strip() == "True", result.stderr


def test_listing_opens_no_driver_library(sim_library):
    code = "import gpuglue as gg\nprint({r.name: r.status for r in gg._core._listed()}['cuda'], 'libcuda' in open('/proc/self/maps').read())"
    assert succeeds(run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_CUDA_LIBRARY=sim_library)) == "not-probed False"


@pytest.mark.parametrize("code, status", [
    ("print('hello')", "available"), ("print('hello', end='')", "available"),
    ("import os, sys\nif sys.orig_argv[-1] == 'host': os._exit(0)", "crashed")], ids=["a line", "a word", "an early end"])
def test_other_output_is_ignored_and_a_missing_answer_is_reported(tmp_path, code, status):
    (tmp_path / "sitecustomize.py").write_text(code)
    search = f"import os, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    output = succeeds(run_python(search + PRINT.format(HANG), GPUGLUE_BACKEND="auto", **NO_GPU))
    assert status in output and ("without an answer" in output) == (status == "crashed"), output
