"""PyCUDA's exceptions, raised for gpuglue's: with the driver's code and name, which PyCUDA's lack."""

import builtins
import functools

import gpuglue


class Error(Exception):
    """Base of all."""

    code = name = None


class MemoryError(Error, builtins.MemoryError):
    pass


class LogicError(Error):
    pass


class LaunchError(Error):
    pass


class RuntimeError(Error, builtins.RuntimeError):
    pass


class CompileError(Error):
    """The compiler refused; its words are in stderr."""

    def __init__(self, msg, command_line="", stdout="", stderr=""):
        super().__init__(msg)
        self.msg, self.command_line, self.stdout, self.stderr = msg, command_line, stdout, stderr

    def __str__(self):
        return f"{self.msg}\n{self.stderr}" if self.stderr else self.msg


def of(error):
    """The exception for one of gpuglue's."""
    if isinstance(error, gpuglue.OutOfMemoryError):
        kind = MemoryError
    elif isinstance(error, gpuglue.DeviceLostError):
        kind = LaunchError
    elif isinstance(error, (gpuglue.InvalidArgumentError, gpuglue.UnsupportedError)):
        kind = LogicError
    else:
        kind = RuntimeError
    made = kind(str(error))
    made.code, made.name = error.code, error.name
    return made


def translated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except gpuglue.Error as error:
            raise of(error) from error

    return call
