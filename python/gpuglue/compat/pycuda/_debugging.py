"""pycuda.driver.set_debugging: kernels that are compiled for a debugger."""

_enabled = False


def set_debugging(flag=True):
    """Choose whether sources are compiled for a debugger from now on.

    On cuda kernels get debug information and are not optimized (``-G``); on hip and host they are compiled with ``-g -O0``. Sources that
    were compiled before, and kernels that gpuglue generates, stay as they are.

    Parameters
    ----------
    flag : bool, default True
        Whether they are.

    See Also
    --------
    pycuda.debug : ``cuda-gdb --args python -m gpuglue.compat.pycuda.debug SCRIPT`` does so for a whole program.

    Examples
    --------
    >>> drv.set_debugging()
    >>> drv.set_debugging(False)
    """
    global _enabled
    _enabled = bool(flag)


def options(nvidia):
    """The options that the compiler gets besides those of the program."""
    if not _enabled:
        return []
    return ["-G"] if nvidia else ["-g", "-O0"]
