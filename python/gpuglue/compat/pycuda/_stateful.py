"""The launches of programs from before CUDA 4: the arguments, the block and the shared memory are set one by one."""

import struct
import warnings

import gpuglue

from . import _memory
from ._arguments import ArgumentHandler
from ._errors import LogicError
from ._missing import TEXTURES


def _deprecated(name):
    warnings.warn(f"Function.{name} is deprecated since PyCUDA 2011.1: call the function with its arguments, block= and grid=",
                  DeprecationWarning, stacklevel=3)


class StatefulLaunch:
    """A base of Function: what is set stays for later launches."""

    _set_block, _set_shared, _set_arguments, _set_size, _set_bytes = None, 0, None, None, None

    def set_block_shape(self, x, y, z):
        """Set the number of threads of a block for `launch`.

        Parameters
        ----------
        x, y, z : int
            Threads in each dimension.
        """
        _deprecated("set_block_shape")
        self._set_block = (x, y, z)

    def set_shared_size(self, bytes):  # noqa: A002
        """Set the dynamic shared memory for `launch`.

        Parameters
        ----------
        bytes : int
            Size in bytes.
        """
        _deprecated("set_shared_size")
        self._set_shared = bytes

    def param_set(self, *args):
        """Set all arguments for `launch`.

        Parameters
        ----------
        *args : object
            The arguments, as of a call.

        Returns
        -------
        list of ArgumentHandler
            Those that are In, Out or InOut: the program calls their `pre_call` and `post_call`.
        """
        _deprecated("param_set")
        self._set_arguments, self._set_bytes, self._set_size = args, None, None
        return [one for one in args if isinstance(one, ArgumentHandler)]

    def param_set_size(self, bytes):  # noqa: A002
        """Set the size of all arguments for `launch`.

        Parameters
        ----------
        bytes : int
            Size in bytes: a launch fails if an argument of the kernel is beyond it.
        """
        _deprecated("param_set_size")
        self._set_size = bytes

    def param_seti(self, offset, value):
        """Set an argument of 4 bytes to a whole number.

        Parameters
        ----------
        offset : int
            Where the argument is, in bytes.
        value : int
            The number.

        Raises
        ------
        LogicError
            If 4 bytes do not hold the number.
        """
        _deprecated("param_seti")
        if not -1 << 31 <= value < 1 << 32:
            raise LogicError(f"param_seti: {value} does not fit into 4 bytes: expected from {-1 << 31} to {(1 << 32) - 1}; "
                             "param_setv() takes other sizes")
        self._param_write(offset, struct.pack("<I", value % (1 << 32)))

    def param_setf(self, offset, value):
        """Set an argument of 4 bytes to a number of type float.

        Parameters
        ----------
        offset : int
            Where the argument is, in bytes.
        value : float
            The number.
        """
        _deprecated("param_setf")
        self._param_write(offset, struct.pack("<f", value))

    def param_setv(self, offset, buffer):
        """Set bytes of the arguments.

        Parameters
        ----------
        offset : int
            Where they begin.
        buffer : bytes or buffer
            The bytes: of one argument or of several.
        """
        _deprecated("param_setv")
        self._param_write(offset, memoryview(buffer).tobytes())

    def param_set_texref(self, texref):
        """Raise: there are no textures.

        Parameters
        ----------
        texref : object
            Not used.

        Raises
        ------
        LogicError
            Always.
        """
        raise LogicError(TEXTURES)

    def launch(self):
        """Launch one block on the current stream, with what has been set.

        Raises
        ------
        LogicError
            If the block or an argument has not been set.
        """
        _deprecated("launch")
        self._launch_set((1, 1), None)

    def launch_grid(self, width, height):
        """Launch a grid on the current stream, with what has been set.

        Parameters
        ----------
        width, height : int
            Number of blocks in each dimension.

        Raises
        ------
        LogicError
            If the block or an argument has not been set.
        """
        _deprecated("launch_grid")
        self._launch_set((width, height), None)

    def launch_grid_async(self, width, height, stream):
        """Launch a grid on a stream, with what has been set.

        Parameters
        ----------
        width, height : int
            Number of blocks in each dimension.
        stream : Stream
            The stream.

        Raises
        ------
        LogicError
            If the block or an argument has not been set.
        """
        _deprecated("launch_grid_async")
        self._launch_set((width, height), stream)

    def _param_write(self, offset, data):
        if offset < 0:
            raise LogicError(f"an argument at offset {offset}: expected 0 or more")
        self._set_bytes = dict(self._set_bytes or {})
        self._set_bytes.update(enumerate(data, offset))

    def _launch_set(self, grid, stream):
        if self._set_block is None:
            raise LogicError("the block is not set: call set_block_shape(x, y, z) before the launch")
        self._run(self._kernel, self._set_values(), grid, self._set_block, self._set_shared, stream)

    def _set_values(self):
        """The arguments of a launch."""
        parameters, given = self._kernel.parameters, self._set_arguments
        if self._set_bytes is None and given is not None:
            return list(given)
        if parameters is None or len(parameters) > 1 and not any(offset for offset, *_ in parameters):  # SPIR-V has no offsets
            raise LogicError(f"neither the image nor the driver reports where the parameters of {self._kernel} are: call the function "
                             "with its arguments, block= and grid=")
        if given is not None and len(given) != len(parameters):
            raise LogicError(f"param_set got {len(given)} arguments, and {self._kernel} has {len(parameters)}")
        return [self._set_value(at, *parameter) for at, parameter in enumerate(parameters)]

    def _set_value(self, at, offset, size, kind):
        if self._set_size is not None and offset + size > self._set_size:
            raise LogicError(f"param_set_size({self._set_size}): argument {at} of {self._kernel} ends at {offset + size}")
        data = [(self._set_bytes or {}).get(byte) for byte in range(offset, offset + size)]
        if self._set_arguments is not None and data == [None] * size:
            return self._set_arguments[at]
        if None in data:
            raise LogicError(f"argument {at} of {self._kernel}, {size} bytes at {offset}, is not set: byte {offset + data.index(None)} is "
                             "missing")
        if kind == "pointer" or kind == "unknown" and size == 8:
            return _memory.at(int.from_bytes(bytes(data), "little"))  # the launch waits for work on the memory
        return gpuglue.RawArgument(bytes(data))
