"""RCCL's own library without a GPU: every function, the version, and the refusal, which both ranks report. gpuglue runs on the
simulated HIP, RCCL on AMD's runtime, which sees no device. tests/model/hip/test_rccl.py has more, on a model of the GPU."""

import ctypes
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from test_communicator import run_ranks  # noqa: E402
from test_communicator_device import HEAD, REFUSED  # noqa: E402

LIBRARY = "librccl.so.1"
RUNTIME = os.environ["GPUGLUE_TEST_HIP"]  # AMD's
# RCCL names the runtime that it needs, and would get the simulated one of that name, which gpuglue has loaded.
VARIABLES = {"LD_PRELOAD": RUNTIME, "GPUGLUE_SIM_DEVICES": "2"}
# Attempts leave nothing but the library's own: RCCL 2.13 keeps the socket of an id with which no rank has connected.
ATTEMPTS = 3
CODE = REFUSED.replace(
    "else:",
    """    print(error)
    before = left()
    for _ in range(ATTEMPTS):
        try:
            connect({options})
        except gg.CommunicatorError:
            pass
    after = left()
    assert after["files"] == before["files"] and after["sockets"] <= before["sockets"] + ATTEMPTS, (before, after)
    until = time.monotonic() + 60  # a thread may still be ending
    while (own := {{"gpuglue-call", "gpuglue-watch"}} & threads()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not own, own
else:""",
    1,
)
LEFT = f"""
import contextlib
from pathlib import Path
ATTEMPTS = {ATTEMPTS}
def left():
    links = [os.readlink(path) for path in map(str, Path("/proc/self/fd").iterdir()) if os.path.lexists(path)]
    sockets = sum(link.startswith("socket:") for link in links)
    return {{"files": len(links) - sockets, "sockets": sockets}}
def threads():
    names = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            names.add((task / "comm").read_text().strip())
    return names
"""


def refusals():
    code = LEFT + HEAD + CODE.format(options="transport='rccl'", error="gg.CommunicatorError", words="ncclUnhandledCudaError (1)")
    results = run_ranks(code, 2, rank_environment=dict.fromkeys(range(2), VARIABLES))
    assert [status for _, status in results] == [0, 0], results
    return [output for output, _ in results]


def version_of(library):
    number = ctypes.c_int()
    assert library.ncclGetVersion(ctypes.byref(number)) == 0
    return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"


def test_the_library_has_every_function_of_the_table():
    names = os.environ["GPUGLUE_TEST_RCCL_NAMES"].split()
    assert "ncclCommInitRank" in names and "ncclGetLastError" in names
    library = ctypes.CDLL(LIBRARY)
    assert not [name for name in names if not hasattr(library, name)]


def test_without_a_gpu_both_ranks_report_the_refusal_with_version_and_path_and_nothing_is_left():
    expected = re.escape(f"with rccl {version_of(ctypes.CDLL(LIBRARY))} (") + r"/usr/lib/\S*/librccl\.so\.1(\.0)?\)"
    for output in refusals():
        assert re.search(expected, output), output
