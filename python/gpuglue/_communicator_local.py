"""Communicator.from_devices: all ranks in one process, one for each device."""

import importlib
from collections.abc import Iterable
from typing import Any

from . import _core
from ._communicator_data import nanoseconds
from ._communicator_device import check_transport


def from_devices(devices: Any = None, *, transport: str = "auto", timeout: "float | None" = 600.0) -> "list[Any]":
    """Create the communicators of all ranks in this process: one for each device.

    Parameters
    ----------
    devices : iterable of Device, int or str, optional
        Whose ranks are their positions. None is all devices of the default backend.
    transport : {'auto', 'nccl', 'rccl', 'host', 'staged'}, optional
        As for `Communicator`. A library needs different devices.
    timeout : float or None, optional
        Seconds that the creation, and each wait for another rank, may take. None is no limit.

    Returns
    -------
    list of Communicator
        In the order of `devices`.

    Raises
    ------
    CommunicatorError
        If the library fails, or does not connect the ranks in time.
    InvalidArgumentError
        If there is no device, or more than 256, or no such transport.
    UnsupportedError
        If the transport cannot be used; the message has the reason.

    See Also
    --------
    Communicator : Ranks in processes of their own.

    Notes
    -----
    Each communicator needs a thread of its own, which calls the operations of its rank. One thread that calls an operation of one rank after
    the other waits at the first, until `timeout` ends the wait and names the ranks that did not take part.

    A thread that ends is not detected before the timeout: if one raises, close or `abort` its communicator, as a with-block does. Python
    handles Ctrl-C in the main thread: if that only waits for the others, it calls `abort` then, of any rank.
    Closing a communicator waits for the queued operations of its rank only, so one thread may close all of them.

    Examples
    --------
    >>> from threading import Thread
    >>> def work(comm):
    ...     with comm, comm.device:
    ...         comm.all_reduce(gg.ones(3))
    >>> comms = gg.Communicator.from_devices([0])
    >>> threads = [Thread(target=work, args=[comm]) for comm in comms]
    >>> for thread in threads:
    ...     thread.start()
    """
    communicator: Any = importlib.import_module("gpuglue._communicator")
    if isinstance(devices, str) or not isinstance(devices, Iterable | None):
        raise TypeError(f"devices must be a list of devices, not {type(devices).__name__}")
    check_transport(transport)
    given = _core.devices(_core.default_backend()) if devices is None else [_core.Device(device) for device in devices]
    if not given:
        raise _core.InvalidArgumentError("devices is empty, expected at least one device")
    comms: "list[Any]" = []
    reasons = {""}
    for comm, name, reason, path, version in _core._comm_create_all(given, transport, nanoseconds(timeout)):
        self = communicator.Communicator.__new__(communicator.Communicator)
        self._rank, self._size, self._device = len(comms), len(given), given[len(comms)]
        self._timeout, self._wanted = timeout, transport
        self._open(comm, (name, "" if reason in reasons else reason, path, version))  # one warning of each
        reasons.add(reason)
        comms.append(self)
    return comms
