"""Device memory of other processes."""

import gpuglue

from ._errors import LogicError, translated
from ._memory import DeviceAllocation, locate


@translated
def mem_get_ipc_handle(devptr):
    """Return a handle with which another process opens an allocation.

    Parameters
    ----------
    devptr : DeviceAllocation or int
        The allocation, or its address.

    Returns
    -------
    bytes
        The handle. Keep the allocation until the other process has closed its own.

    Raises
    ------
    LogicError
        If the address is within an allocation, or the backend has no such handles.

    Examples
    --------
    >>> if gg.Device().supports("ipc_export"):
    ...     handle = drv.mem_get_ipc_handle(drv.mem_alloc(1024))
    """
    buffer, offset = locate(devptr, 1)
    if offset:
        raise LogicError(f"mem_get_ipc_handle: expected the start of an allocation, got an address {offset} bytes behind it")
    return bytes(buffer.ipc_handle())


class IPCMemoryHandle(DeviceAllocation):
    """Device memory of another process.

    Parameters
    ----------
    obj : bytes
        What mem_get_ipc_handle() returned there.
    flags : int, default 1
        Of ipc_mem_flags. Access between devices is enabled in any case.

    Raises
    ------
    LogicError
        If it is no such handle, or of this process.
    """

    @translated
    def __init__(self, obj, flags=1):
        super().__init__(gpuglue.IpcHandle(bytes(obj)).open())

    def close(self):
        """Close the memory, once queued work on it is done.

        Raises
        ------
        LogicError
            If it was closed already.
        """
        self.free()
