"""Arguments of kernels: In, Out and InOut, and what a launch makes of each argument."""

import re

import numpy as np

import gpuglue

from . import _copies, _memory
from ._host_memory import managed_owner


class ArgumentHandler:
    """An argument that is copied to the device before a launch, or back after it.

    Parameters
    ----------
    array : ndarray
        The array of the host.

    Examples
    --------
    >>> drv.ArgumentHandler(np.zeros(3)).array
    array([0., 0., 0.])
    """

    def __init__(self, array):
        self.array, self.dev_alloc = array, None

    def get_device_alloc(self):
        """Return the device memory of the argument.

        Returns
        -------
        DeviceAllocation
            It is allocated at the first call.

        Examples
        --------
        >>> int(drv.In(np.zeros(3)).get_device_alloc()) != 0
        True
        """
        if self.dev_alloc is None:
            self.dev_alloc = _memory.mem_alloc_like(self.array)
        return self.dev_alloc

    def pre_call(self, stream):
        """Prepare a launch: nothing, unless a subclass copies.

        Parameters
        ----------
        stream : Stream or None
            Stream of the launch.

        Examples
        --------
        >>> drv.ArgumentHandler(np.zeros(3)).pre_call(None)
        """

    def post_call(self, stream):
        """Finish a launch: nothing, unless a subclass copies.

        Parameters
        ----------
        stream : Stream or None
            Stream of the launch.

        Examples
        --------
        >>> drv.ArgumentHandler(np.zeros(3)).post_call(None)
        """


class In(ArgumentHandler):
    """An argument that is copied to the device before the launch.

    Parameters
    ----------
    array : ndarray
        The array of the host, contiguous.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> module = compiler.SourceModule("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
    >>> x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    >>> module.get_function("add")(drv.InOut(x), drv.In(y), grid=(3, 1), block=(1, 1, 1))
    >>> x
    array([2., 2., 2.], dtype=float32)
    """

    def pre_call(self, stream):
        """Copy the array to the device.

        Parameters
        ----------
        stream : Stream or None
            Stream of the launch.

        Examples
        --------
        >>> drv.In(np.zeros(3)).pre_call(None)
        """
        _copies.memcpy_htod_async(self.get_device_alloc(), self.array, stream)


class Out(ArgumentHandler):
    """An argument that is copied to the host after the launch.

    Parameters
    ----------
    array : ndarray
        The array of the host, contiguous.

    Examples
    --------
    >>> argument = drv.Out(np.zeros(3))
    """

    def post_call(self, stream):
        """Copy the array to the host.

        Parameters
        ----------
        stream : Stream or None
            Stream of the launch.

        Examples
        --------
        >>> out = drv.Out(np.zeros(3))
        >>> out.post_call(None)
        """
        _copies.memcpy_dtoh_async(self.array, self.get_device_alloc(), stream)


class InOut(In, Out):
    """An argument that is copied to the device before the launch, and to the host after it.

    Parameters
    ----------
    array : ndarray
        The array of the host, contiguous.

    Examples
    --------
    >>> argument = drv.InOut(np.zeros(3))
    """


class _HostArray(Exception):
    """An argument is an array of the host, which only a parameter of its size by value can take."""


def _unwrap_host(array):
    """The Buffer or view of managed memory; for other host arrays _HostArray is raised."""
    owner = managed_owner(array)
    if owner is None:
        raise _HostArray
    offset = array.ctypes.data - owner.get_device_pointer()
    return gpuglue.asarray(owner._gpuglue)[offset:] if offset else owner._gpuglue


def _by_value(array, parameters, at):
    """The bytes of a host array, where the kernel takes a struct. Elsewhere it may take a pointer, which would not be
    one to device memory."""
    if not array.ndim:
        return array[()]
    _, size, kind = parameters[at] if parameters and at < len(parameters) else (0, 0, "unknown")
    if kind == "bytes" or kind == "unknown" and size not in (0, 8):  # not a pointer
        return gpuglue.RawArgument(array.tobytes())
    raise TypeError(f"argument {at}: a NumPy array is host memory: wrap it in In(), Out() or InOut(), or upload it with "
                    "gpuarray.to_gpu(); for a struct by value write gpuglue.RawArgument(array.tobytes())")


def _unwrap_all(args, parameters):
    """The same as _unwrap of each, with host arrays by value."""
    return [_by_value(argument, parameters, at)
            if isinstance(argument, np.ndarray) and managed_owner(argument) is None else _unwrap(argument)
            for at, argument in enumerate(args)]


def _unwrap(argument):
    """The argument as a gpuglue kernel takes it."""
    if isinstance(argument, ArgumentHandler):
        argument = argument.get_device_alloc()
    array = getattr(argument, "_pycuda_array", None)
    if array is not None:
        argument = array
    if isinstance(argument, (np.generic, float)) or hasattr(argument, "_fields_") or \
            isinstance(argument, gpuglue.RawArgument):
        return argument
    if isinstance(argument, np.ndarray):
        return _unwrap_host(argument)
    if isinstance(argument, (gpuglue.GPUArray, gpuglue.Buffer)):
        return argument
    if isinstance(argument, bool) or (isinstance(argument, int) and not hasattr(argument, "__array__")):
        return argument
    if isinstance(argument, _memory.PointerHolderBase) or hasattr(argument, "gpudata") or hasattr(argument, "ptr"):
        return _memory.argument_of(argument)
    return argument


def _plain(argument):
    """A NumPy number as a Python number, which converts to any type that it fits."""
    value = argument.item() if isinstance(argument, (np.number, np.bool_, np.ndarray)) and not argument.ndim else argument
    return value if isinstance(value, (int, float)) else argument


def _number(kind):
    """The function that converts a number to a type that C does not convert to."""
    def convert(argument):
        value = _plain(argument)
        known = isinstance(value, (int, float, complex, np.number)) or isinstance(value, np.ndarray) and not value.ndim
        return kind(value) if known else argument
    return convert


def _packed(size):
    """The function that cuts bytes to the prepared size, or fills them up with zeros, as the struct module does."""
    def convert(argument):
        data = argument if isinstance(argument, bytes) else memoryview(argument).tobytes()
        return gpuglue.RawArgument(data[:size].ljust(size, b"\0"))
    return convert


def _converter(code):
    """The function that converts an argument to the prepared type, as the struct module does in PyCUDA."""
    if isinstance(code, str) and len(code) == 1:
        return {"P": lambda argument: argument, "e": _number(np.float16)}.get(code, _plain)
    kind = np.dtype(code)
    return _number(kind.type) if kind == np.float16 or kind.kind == "c" else _plain


_CODE = re.compile(r"\s*(\d*)([PbB?hHiIlLqQnNefdFDs])\s*")


def _of_format(item):
    """(count, code) of each part of a format; None if it is not one, but a dtype."""
    parts = _CODE.findall(item) if isinstance(item, str) else []
    return parts if parts and not _CODE.sub("", item) else None


def _prepared_types(arg_types):
    """(type for Kernel.bind, converter) of each argument; a count repeats a code, or is the size of `s`."""
    for item in [arg_types] if isinstance(arg_types, str) and _of_format(arg_types) else arg_types:
        parts = _of_format(item)
        if not parts:
            yield item, _converter(item)
        for count, code in parts or ():
            number = int(count) if count else 1
            kind = {"F": np.complex64, "D": np.complex128}.get(code, code)
            yield from [(np.dtype(f"V{number}"), _packed(number))] if code == "s" else [(kind, _converter(kind))] * number
