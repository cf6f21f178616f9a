"""pycuda._driver: what PyCUDA's own Python files use of its C++ half (see `gpuglue pycuda`)."""

from .driver import *  # noqa: F403
from .tools import (  # noqa: F401
    DeviceMemoryPool, PageLockedAllocator, PageLockedMemoryPool, PooledDeviceAllocation, bitlog2)


def get_curand_version():
    """Return that there is no CURAND.

    Returns
    -------
    tuple of int
        Zeros: pycuda.curandom then defines no generators that need it.
    """
    return (0, 0, 0)
