"""The variables that users set, and the ranks that launchers set, seen from Python."""

import os

import pytest
from conftest import HANG, NO_GPU, needs, run_python, succeeds

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
def test_the_device_may_be_selected_by_ordinal_backend_or_both(device, text):
    text = text.format(device.backend, device.backend.upper())
    assert asked(GPUGLUE_DEVICE=text) == repr(device)


@pytest.mark.parametrize("text", ["99", "{0}:99"])
def test_a_missing_device_is_reported_with_the_existing_ones(device, text):
    message = asked(GPUGLUE_DEVICE=text.format(device.backend))
    assert "no device 99" in message and f'backend "{device.backend}" has' in message


@pytest.mark.parametrize("text", ["one", "-1", "{0}:x", "1.0"])
def test_an_invalid_device_name_is_reported_with_the_expected_form(device, text):
    text = text.format(device.backend)
    message = asked(GPUGLUE_DEVICE=text)
    assert text in message and ("does not name a device: expected" in message or "plugin-not-found" in message or "names another" in message)


def test_a_backend_that_contradicts_the_other_variable_is_reported_with_both(backend):
    message = asked(GPUGLUE_DEVICE="other:0")
    assert "GPUGLUE_DEVICE=other:0" in message and f"GPUGLUE_BACKEND={backend}" in message
    assert message.startswith("InvalidArgumentError")


def test_a_with_block_and_set_current_take_precedence_over_the_variable(second_device):
    code = (
        "import gpuglue as gg\n"
        "first, second = gg.devices()[:2]\n"
        "found = [gg.current_device()]\n"
        "with first: found.append(gg.current_device())\n"
        "first.set_current(); found.append(gg.current_device())\n"
        "print(*(device.ordinal for device in found))"
    )
    assert succeeds(run_python(code, GPUGLUE_DEVICE="1")) == "1 0 0"


def test_a_wrong_variable_does_not_affect_calls_that_name_a_device(device):
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

CAPTURED = "with gg.capture(stream) as graph: gg.fill(buffer, 1)\npass"

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
    "graph": (CAPTURED, "graph.launch(stream)"),
}


@pytest.mark.parametrize("call", CALLS)
def test_with_debug_sync_a_call_returns_when_its_work_is_done(device, gate, call, request):
    if call == "devices":
        request.getfixturevalue("second_device")
    if call == "prefetch":
        needs(device, "mem_prefetch")
    if call == "graph":
        needs(device, "capture_begin")
    patience = 0.1  # seconds for which the work is held back: the call has that time to return too early
    assert succeeds(run_python(HELD.format(patience, *CALLS[call]), GPUGLUE_DEBUG="sync")) == "[]"


def test_without_debug_sync_a_call_returns_while_its_work_is_blocked(device, gate):
    assert succeeds(run_python(HELD.format(HANG / 3, *CALLS["fill"]), GPUGLUE_DEBUG=None)) == "['returned']"


LAUNCHED_TWICE = (
    "import gpuglue as gg, signal\n"
    "from conftest import Gate, gate_library, signal_during_the_wait\n"
    "array, stream = gg.zeros(4, 'float32'), gg.Stream(nonblocking=True); gg.synchronize()\n"
    "with gg.capture(stream) as graph: array.fill(1)\n"
    "gate, launched = Gate(gate_library()).hold(stream), []\n"
    "def again(*_): gate.open(); graph.launch(stream); launched.append('again')\n"
    "signal.signal(signal.SIGUSR1, again)\n"
    "with signal_during_the_wait(signal.SIGUSR1): graph.launch(stream)\n"
    "print(launched, array.tolist())"
)


def test_with_debug_sync_a_signal_handler_may_launch_the_graph_that_is_waited_for(device, gate):
    needs(device, "capture_begin")
    assert succeeds(run_python(LAUNCHED_TWICE, GPUGLUE_DEBUG="sync")) == "['again'] [1.0, 1.0, 1.0, 1.0]"


INTERRUPTED = (
    "import gpuglue as gg\n"
    "from conftest import Gate, gate_library, signal_during_the_wait\n"
    "array, stream = gg.zeros(4), gg.Stream(nonblocking=True); gg.synchronize()\n"
    "gate = Gate(gate_library()).hold(stream)\n"
    "while not gate.reached: pass\n"
    "try:\n"
    "    with signal_during_the_wait(): array.fill(1, stream=stream)\n"
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
def test_a_log_variable_with_an_unknown_value_is_reported_and_ignored(backend, text):
    result = run_python("import gpuglue as gg; print(gg.zeros(3).tolist())", GPUGLUE_LOG=text)
    assert result.stdout.strip() == "[0.0, 0.0, 0.0]" and f"GPUGLUE_LOG={text}" in result.stderr


# ---- NoDeviceWarning ---------------------------------------------------------------------------------------

FIRST_CALLS = ["gg.Device()", "gg.current_device()", "gg.Stream()", "gg.alloc(4)", "gg.zeros(3)", "gg.to_gpu([1])", "gg.default_backend()"]


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_the_first_call_that_selects_host_warns_once_with_the_reasons(call):
    code = f"import gpuglue as gg; {call}; {call}; gg.Device(0); gg.zeros(3).get()"
    result = run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_DEVICE=None, **NO_GPU)
    assert result.returncode == 0 and result.stderr.count("NoDeviceWarning") == 1
    assert "cuda: library-not-found" in result.stderr and "GPUGLUE_BACKEND=host selects host explicitly" in result.stderr


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
def test_the_first_rank_that_is_set_selects_the_device(backend, no_ranks, position):
    devices = gg.devices(backend)
    for name in RANKS[position + 1 :]:
        no_ranks.setenv(name, "0")
    no_ranks.setenv(RANKS[position], "3")
    assert gg.Device.for_local_rank() is devices[3 % len(devices)]
    assert gg.Device.for_local_rank(backend) is devices[3 % len(devices)]


@pytest.mark.parametrize("text", ["-1", "1.5", "0x1", "two", "9999999999", "9" * 30])
def test_a_rank_that_is_not_a_number_is_reported_with_its_variable(backend, no_ranks, text):
    no_ranks.setenv("SLURM_LOCALID", text)
    with pytest.raises(gg.InvalidArgumentError, match=f"SLURM_LOCALID is '{text}'"):
        gg.Device.for_local_rank()


def test_a_launcher_of_one_process_per_node_gets_the_first_device(device, no_ranks):
    no_ranks.setenv("SLURM_LOCALID", "0")
    assert os.environ["SLURM_LOCALID"] == "0" and gg.Device.for_local_rank() is device
