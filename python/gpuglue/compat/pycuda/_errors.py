"""PyCUDA's exceptions, which replace gpuglue's. They also have the driver's code and name."""

import builtins
import functools

import gpuglue


class Error(Exception):
    """Base of all exceptions; `code` and `name` are the driver's, or None."""

    code = name = None


class MemoryError(Error, builtins.MemoryError):
    """Memory is exhausted: also Python's MemoryError."""


class LogicError(Error):
    """An argument is not valid, or the operation is not supported."""


class LaunchError(Error):
    """The device cannot be used any more, for example after a kernel failed."""


class RuntimeError(Error, builtins.RuntimeError):
    """Any other error of the driver: also Python's RuntimeError."""


class CompileError(Error):
    """The compiler rejected the source.

    Parameters
    ----------
    msg : str
        What was compiled.
    command_line : str, default ''
        Options of the compiler.
    stdout : str, default ''
        Always empty.
    stderr : str, default ''
        The log of the compiler.

    Examples
    --------
    >>> # host only: elsewhere the vendor's compiler is needed
    >>> try:
    ...     compiler.SourceModule("no C++")
    ... except drv.CompileError as error:
    ...     "error" in error.stderr
    True
    """

    def __init__(self, msg, command_line="", stdout="", stderr=""):
        super().__init__(msg)
        self.msg, self.command_line, self.stdout, self.stderr = msg, command_line, stdout, stderr

    def __str__(self):
        return f"{self.msg}\n{self.stderr}" if self.stderr else self.msg


def of(error):
    """The PyCUDA exception for a gpuglue exception."""
    if isinstance(error, gpuglue.OutOfMemoryError):
        kind = MemoryError
    elif isinstance(error, gpuglue.DeviceLostError):
        kind = LaunchError
    elif isinstance(error, (gpuglue.InvalidArgumentError, gpuglue.UnsupportedError)):
        kind = LogicError
    else:
        kind = RuntimeError
    result = kind(str(error))
    result.code, result.name = error.code, error.name
    return result


def translated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except gpuglue.Error as error:
            raise of(error) from error

    return call
