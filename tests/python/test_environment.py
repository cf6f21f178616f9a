"""The variables that users set, and the ranks that launchers set, seen from Python."""

import os

import pytest
from conftest import NO_GPU, needs, run_python, succeeds

import gpuglue as gg

ASK = (
    "import gpuglue as gg\n"
    "try: print(repr(gg.current_device()))\n"
    "except gg.Error as error: print(type(error).__name__, error)"
)


def asked(**environment):
    return succeeds(run_python(ASK, **environment))


# ---- GPUGLUE_DEVICE ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0", "{0}", "{0}:0", "{1}:0"])
def test_the_device_may_be_named_by_ordinal_backend_or_both(device, text):
    text = text.format(device.backend, device.backend.upper())
    assert asked(GPUGLUE_DEVICE=text) == repr(device)


@pytest.mark.parametrize("text", ["99", "{0}:99"])
def test_a_device_that_is_not_there_is_told_with_those_there_are(device, text):
    message = asked(GPUGLUE_DEVICE=text.format(device.backend))
    assert "no device 99" in message and f'backend "{device.backend}" has' in message


@pytest.mark.parametrize("text", ["one", "-1", "{0}:x", "1.0"])
def test_what_names_no_device_is_told_with_what_was_expected(device, text):
    text = text.format(device.backend)
    message = asked(GPUGLUE_DEVICE=text)
    assert text in message and ("names no device: expected" in message or "plugin-not-found" in message or "names another" in message)


def test_a_backend_that_contradicts_the_other_variable_is_told_with_both(backend):
    message = asked(GPUGLUE_DEVICE="other:0")
    assert "GPUGLUE_DEVICE=other:0" in message and f"GPUGLUE_BACKEND={backend}" in message
    assert message.startswith("InvalidArgumentError")


def test_a_with_block_and_use_beat_the_variable(second_device):
    code = (
        "import gpuglue as gg\n"
        "first, second = gg.devices()[:2]\n"
        "found = [gg.current_device()]\n"
        "with first: found.append(gg.current_device())\n"
        "first.use(); found.append(gg.current_device())\n"
        "print(*(device.ordinal for device in found))"
    )
    assert succeeds(run_python(code, GPUGLUE_DEVICE="1")) == "1 0 0"


def test_a_wrong_variable_does_not_disturb_calls_that_name_a_device(device):
    code = f"import gpuglue as gg; print(gg.zeros(3, device='{device.backend}:0').tolist())"
    assert succeeds(run_python(code, GPUGLUE_DEVICE="99")) == "[0.0, 0.0, 0.0]"


# ---- GPUGLUE_DEBUG -----------------------------------------------------------------------------------------

HELD = (
    "import gpuglue as gg, time\n"
    "from conftest import Gate, gate_library\n"
    "stream = gg.Stream(nonblocking=True); buffer = gg.alloc(1 << 16, stream.device)\n"
    "array, other = gg.zeros((64, 64)), gg.zeros((64, 64))\n"
    "{1}; gg.synchronize()\n"
    "gate, returned, opened = Gate(gate_library()).hold(stream), [], time.monotonic() + {0}\n"
    "def late(): return gate.reached and (returned or time.monotonic() > opened) and not print(returned)\n"
    "opener = gate.open_when(late)\n"
    "{2}; returned.append('returned'); opener.join(); gg.synchronize()"
)


# What each needs first, and the call.
CALLS = {
    "fill": ("pass", "gg.fill(buffer, 1, stream=stream)"),
    "copy": ("pass", "gg.copy(other, array, stream=stream)"),
    "rows": ("pass", "gg.copy(other[::2, :32], array[1::2, :32], stream=stream)"),
    "columns": ("pass", "gg.copy(other[:, ::2], array[:, ::2], stream=stream)"),
    "devices": (
        "there = gg.zeros((64, 64), device=gg.devices(stream.device.backend)[1]); gg.copy(there, array)",
        "gg.copy(there, array, stream=stream)",
    ),
    "prefetch": ("managed = gg.alloc_managed(1 << 16)", "managed.prefetch(stream=stream)"),
}


@pytest.mark.parametrize("call", CALLS)
def test_with_debug_sync_a_call_returns_when_its_work_is_done(device, gate, call, request):
    if call == "devices":
        request.getfixturevalue("second_device")
    if call == "prefetch":
        needs(device, "mem_prefetch")
    patience = 0.1  # seconds for which the work is held back
    assert succeeds(run_python(HELD.format(patience, *CALLS[call]), GPUGLUE_DEBUG="sync")) == "[]"


def test_without_debug_sync_a_call_returns_while_its_work_is_held_back(device, gate):
    assert succeeds(run_python(HELD.format(30, *CALLS["fill"]), GPUGLUE_DEBUG=None)) == "['returned']"


INTERRUPTED = (
    "import gpuglue as gg, signal\n"
    "from conftest import Gate, gate_library\n"
    "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    "array, stream = gg.zeros(4), gg.Stream(nonblocking=True); gg.synchronize()\n"
    "gate = Gate(gate_library()).hold(stream)\n"
    "while not gate.reached: pass\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
    "try: array.fill(1, stream=stream)\n"
    "except KeyboardInterrupt: print(stream.done)\n"
    "gate.open(); stream.synchronize(); print(array.tolist())"
)


def test_with_debug_sync_a_signal_ends_the_wait_and_not_the_work(device, gate):
    assert succeeds(run_python(INTERRUPTED, GPUGLUE_DEBUG="sync")).split("\n") == ["False", "[1.0, 1.0, 1.0, 1.0]"]


# ---- GPUGLUE_LOG -------------------------------------------------------------------------------------------


def test_the_log_goes_to_stderr_with_the_level_and_the_backend(backend):
    result = run_python("import gpuglue as gg; gg.zeros(3)", GPUGLUE_LOG="info")
    assert result.returncode == 0 and f"gpuglue: info: {backend}: available" in result.stderr


def test_the_log_may_go_to_a_file(backend, tmp_path):
    path = tmp_path / "log"
    assert succeeds(run_python("import gpuglue as gg; gg.zeros(3)", GPUGLUE_LOG=f"info:{path}")) == ""
    assert f"info: {backend}: available" in path.read_text()


@pytest.mark.parametrize("text", ["loud", "info:relative"])
def test_a_log_variable_that_is_not_understood_is_told_and_nothing_else_happens(backend, text):
    result = run_python("import gpuglue as gg; print(gg.zeros(3).tolist())", GPUGLUE_LOG=text)
    assert result.stdout.strip() == "[0.0, 0.0, 0.0]" and f"GPUGLUE_LOG={text}" in result.stderr


# ---- NoDeviceWarning ---------------------------------------------------------------------------------------

FIRST_CALLS = ["gg.Device()", "gg.current_device()", "gg.Stream()", "gg.alloc(4)", "gg.zeros(3)", "gg.to_gpu([1])", "gg.default_backend()"]


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_the_first_call_that_falls_to_host_warns_once_with_the_reasons(call):
    code = f"import gpuglue as gg; {call}; {call}; gg.Device(0); gg.zeros(3).get()"
    result = run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_DEVICE=None, **NO_GPU)
    assert result.returncode == 0 and result.stderr.count("NoDeviceWarning") == 1
    assert "cuda: library-not-found" in result.stderr and "GPUGLUE_BACKEND=host says that this is meant" in result.stderr


def test_the_warning_may_be_made_an_error():
    code = "import gpuglue as gg\ntry: gg.zeros(3)\nexcept gg.NoDeviceWarning as warning: print(type(warning).__name__)"
    environment = {"GPUGLUE_BACKEND": "auto", "GPUGLUE_DEVICE": None, **NO_GPU}
    assert succeeds(run_python(code, arguments=("-W", "error::RuntimeWarning"), **environment)) == "NoDeviceWarning"


# ---- ranks -------------------------------------------------------------------------------------------------

RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID MV2_COMM_WORLD_LOCAL_RANK PALS_LOCAL_RANKID PMI_LOCAL_RANK "
    "PMIX_LOCAL_RANK FLUX_TASK_LOCAL_ID JSM_NAMESPACE_LOCAL_RANK SLURM_LOCALID LOCAL_RANK"
).split()


@pytest.fixture
def no_ranks(monkeypatch):
    for name in RANKS:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("position", range(len(RANKS)), ids=RANKS)
def test_the_first_rank_that_is_set_chooses_the_device(backend, no_ranks, position):
    devices = gg.devices(backend)
    for name in RANKS[position + 1 :]:
        no_ranks.setenv(name, "0")
    no_ranks.setenv(RANKS[position], "3")
    assert gg.Device.for_local_rank() is devices[3 % len(devices)]
    assert gg.Device.for_local_rank(backend) is devices[3 % len(devices)]


@pytest.mark.parametrize("text", ["-1", "1.5", "0x1", "two", "9999999999", "9" * 30])
def test_a_rank_that_is_no_number_is_told_with_its_variable(backend, no_ranks, text):
    no_ranks.setenv("SLURM_LOCALID", text)
    with pytest.raises(gg.InvalidArgumentError, match=f"SLURM_LOCALID is '{text}'"):
        gg.Device.for_local_rank()


def test_a_launcher_of_one_process_per_node_gets_the_first_device(device, no_ranks):
    no_ranks.setenv("SLURM_LOCALID", "0")
    assert os.environ["SLURM_LOCALID"] == "0" and gg.Device.for_local_rank() is device
