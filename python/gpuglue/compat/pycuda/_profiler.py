"""The range of time that a profiler records. The driver has the functions, and gpuglue has none for them."""

import gpuglue

from . import _limits
from ._errors import LogicError

_FUNCTIONS = {"cuda": ("cuProfilerStart", "cuProfilerStop"), "hip": ("hipProfilerStart", "hipProfilerStop")}


def _call(which):
    device = gpuglue.current_device()
    if device.backend not in _FUNCTIONS:
        return  # a profiler of the host records the process
    name = _FUNCTIONS[device.backend][which]
    function = getattr(_limits._driver(device.backend), name, None)
    if function is None:
        raise LogicError(f"the driver of {device} has no {name}: use gpuglue.trace(), or a profiler's own range of time")
    with device:
        code = function()
    if code:
        raise LogicError(f"{name} on {device} returned error {code}: use gpuglue.trace(), or a profiler's own range of time")


def start_profiler():
    """Begin the range of time that a profiler records, if the program runs under one (``nsys profile -c cudaProfilerApi``).

    Raises
    ------
    LogicError
        If the driver does not do it.

    Notes
    -----
    On host it does nothing.

    Examples
    --------
    >>> # host only: elsewhere the driver decides
    >>> drv.start_profiler()
    """
    _call(0)


def stop_profiler():
    """End the range of time that a profiler records.

    Raises
    ------
    LogicError
        If the driver does not do it.

    Notes
    -----
    On host it does nothing.

    Examples
    --------
    >>> # host only: elsewhere the driver decides
    >>> drv.stop_profiler()
    """
    _call(1)
