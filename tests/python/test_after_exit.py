"""Objects held by other code are released by a thread without Python, even after the interpreter has ended."""

import pytest
from conftest import run_python, succeeds

pytestmark = pytest.mark.usefixtures("known_device")

LATE = """
import ctypes, conftest, extension_table, producers
import gpuglue as gg
import numpy as np

array = gg.zeros(1000)
array.fill(1)
{held}
call = conftest.late_library().late_calls
assert call({function}, (ctypes.c_void_p * 64)(*map(ctypes.addressof, held)), 64, 32) == 0
print("ended", flush=True)
"""
DELETER, RELEASE = "held[0].deleter", "extension_table.table().array_view_release"
HELD = {
    "tensors over our memory": ("held = [producers.take(array.__dlpack__(max_version=(1, 0))) for _ in range(64)]", DELETER),
    "old tensors over our memory": ("held = [producers.take(array.__dlpack__()) for _ in range(64)]", DELETER),
    "tensors over memory with an owner in Python": (
        "held = [producers.take(gg.asarray(array.ptr + 8 * i, 'f8', shape=3, owner=[array]).__dlpack__()) for i in range(64)]",
        DELETER,
    ),
    "copies in pinned memory": (
        "held = [producers.take(array.__dlpack__(dl_device=(1, 0), copy=True)) for _ in range(64)]",
        DELETER,
    ),
    "views of an extension": ("held = [extension_table.view_of(array) for _ in range(64)]", RELEASE),
    "views of an extension, of an owner in Python": (
        "held = [extension_table.view_of(np.zeros(5)) for _ in range(64)]",
        RELEASE,
    ),
}


@pytest.mark.parametrize("held", HELD)
def test_objects_still_held_are_released_after_the_interpreters_end(backend, held):
    making, function = HELD[held]
    code = LATE.format(held=making, function=f"ctypes.cast({function}, ctypes.c_void_p)")
    assert succeeds(run_python(code)) == "ended\nlate: 32 calls after the end"
