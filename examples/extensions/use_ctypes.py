"""Pass gpuglue's arrays and streams to your library with ctypes: no wrapper, no build.

    python use_ctypes.py [DEVICE]

"Your library" is gpuglue's C library here, so that the example runs on every machine.
"""

import ctypes
import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

import gpuglue as gg


def main(device: str | None = None) -> npt.NDArray[np.float32]:
    """Set the first half of an array to zero by calling C functions; return the elements."""
    library = ctypes.CDLL(os.path.join(gg.get_library_dir(), "libgpuglue.so"))
    with gg.Device(device) as where:
        array = gg.to_gpu(np.arange(8, dtype="f4"), where)
        found = ctypes.c_void_p()
        name = f"{where.backend}:{where.ordinal}".encode()
        check(library.gg_device_find(name, ctypes.byref(found)))
        memory: Any = ctypes.c_void_p()
        # ctypes accepts the array itself: it has _as_parameter_.
        size = ctypes.c_size_t(array.nbytes)
        check(library.gg_memory_wrap(found, 1, array, size, None, None, ctypes.byref(memory)))
        check(library.gg_fill(memory, ctypes.c_size_t(0), b"\x00", ctypes.c_size_t(1), ctypes.c_size_t(16), None))
        library.gg_memory_release(memory)
        array.record_use(where.default_stream)
        return array.get()


def check(status: int) -> None:
    """Raise an exception for a status other than 0."""
    if status:
        raise RuntimeError(f"status {status}")


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
