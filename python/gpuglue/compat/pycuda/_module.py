"""Modules."""

import gpuglue

from . import _memory
from ._errors import LogicError, translated
from ._function import Function
from ._missing import TEXTURES


class Module:
    """Loaded device code.

    Parameters
    ----------
    image : bytes or path
        Compiled code of any format that gpuglue.Module loads.

    Raises
    ------
    LogicError
        If the image cannot be loaded on the current device.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> module = drv.Module(compiler.compile("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }"))
    >>> add = module.get_function("add")
    """

    @translated
    def __init__(self, image):
        self._module = gpuglue.Module(image)

    @translated
    def get_function(self, name):
        """Return a kernel.

        Parameters
        ----------
        name : str
            Its name in the image.

        Returns
        -------
        Function
            The kernel.

        Raises
        ------
        LogicError
            If there is no such kernel; the message lists those that exist.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> module = compiler.SourceModule("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
        >>> module.get_function("no_such_kernel")
        Traceback (most recent call last):
            ...
        gpuglue.compat.pycuda._errors.LogicError: ...
        """
        return Function(self._module[name])

    @translated
    def get_global(self, name):
        """Return a variable of the module.

        Parameters
        ----------
        name : str
            Its name in the image.

        Returns
        -------
        allocation : DeviceAllocation
            Its memory.
        nbytes : int
            Its size in bytes.

        Raises
        ------
        LogicError
            If there is no such variable.
        """
        buffer = self._module.get_global(name)
        return _memory.DeviceAllocation(buffer), buffer.nbytes

    def get_texref(self, name):
        """Raise: there are no textures.

        Parameters
        ----------
        name : str
            Not used.

        Raises
        ------
        LogicError
            Always.
        """
        raise LogicError(TEXTURES)

    get_surfref = get_texref


def module_from_file(filename):
    """Load the image in a file.

    Parameters
    ----------
    filename : path
        The file.

    Returns
    -------
    Module
        The loaded code.

    Examples
    --------
    >>> drv.module_from_file("no_such_file.cubin")
    Traceback (most recent call last):
        ...
    FileNotFoundError: ...
    """
    return Module(filename)


def module_from_buffer(buffer, options=(), message_handler=None):
    """Load an image in memory.

    Parameters
    ----------
    buffer : bytes or buffer
        The image.
    options : sequence, default ()
        Pairs of a jit_option and its value. They are hints, which are not used.
    message_handler : function, optional
        Not used.

    Returns
    -------
    Module
        The loaded code.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> image = compiler.compile("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
    >>> module = drv.module_from_buffer(image)
    """
    return Module(bytes(buffer))
