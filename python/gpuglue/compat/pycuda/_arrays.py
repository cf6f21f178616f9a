"""Array: rows of elements, which copies fill and read. Since CUDA 12 has no texture and surface references to bind one to, it is
device memory without a layout of its own."""

import enum

import numpy as np

import gpuglue
from gpuglue import _core

from ._copies import _host
from ._enums import _Number
from ._errors import LogicError, translated
from ._memory import locate
from ._regions import Memcpy3D


class array_format(_Number):
    """Types of the elements of an Array."""

    UNSIGNED_INT8 = 1
    UNSIGNED_INT16 = 2
    UNSIGNED_INT32 = 3
    SIGNED_INT8 = 8
    SIGNED_INT16 = 9
    SIGNED_INT32 = 10
    HALF = 16
    FLOAT = 32


class array3d_flags(enum.IntFlag):
    """Flags of an ArrayDescriptor3D. They are kept, and have no effect."""

    ARRAY3D_LAYERED = ARRAY3D_2DARRAY = LAYERED = locals()["2DARRAY"] = 1
    SURFACE_LDST = 2
    CUBEMAP = 4
    TEXTURE_GATHER = 8


class address_mode(_Number):
    """How a texture is read outside its range."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class filter_mode(_Number):
    """How a texture is read between its elements."""

    POINT = 0
    LINEAR = 1


class array_cubemap_face(_Number):
    """Faces of a cube."""

    POSITIVE_X = 0
    NEGATIVE_X = 1
    POSITIVE_Y = 2
    NEGATIVE_Y = 3
    POSITIVE_Z = 4
    NEGATIVE_Z = 5


_DTYPES = {array_format.UNSIGNED_INT8: "u1", array_format.UNSIGNED_INT16: "u2", array_format.UNSIGNED_INT32: "u4",
           array_format.SIGNED_INT8: "i1", array_format.SIGNED_INT16: "i2", array_format.SIGNED_INT32: "i4",
           array_format.HALF: "f2", array_format.FLOAT: "f4"}
_FORMATS = {np.dtype(code): form for form, code in _DTYPES.items()}


def dtype_to_array_format(dtype):
    """Return the format of elements of a dtype.

    Parameters
    ----------
    dtype : dtype
        Integers of up to 32 bits, float16 or float32.

    Returns
    -------
    array_format
        The format.

    Raises
    ------
    TypeError
        If there is none.

    Examples
    --------
    >>> drv.dtype_to_array_format(np.float32)
    <array_format.FLOAT: 32>
    """
    form = _FORMATS.get(np.dtype(dtype))
    if form is None:
        raise TypeError(f"an Array has no format for {np.dtype(dtype)}: expected one of {', '.join(map(str, _FORMATS))}")
    return form


class ArrayDescriptor:
    """The size of a two-dimensional Array and the type of its elements: `width`, `height`, `format`, `num_channels`.

    `width` and `height` count elements, each of `num_channels` numbers of `format`. A height of 0 is an array of one dimension.

    Examples
    --------
    >>> descriptor = drv.ArrayDescriptor()
    >>> descriptor.width, descriptor.height = 3, 2
    >>> descriptor.format, descriptor.num_channels = drv.array_format.FLOAT, 1
    """

    def __init__(self):
        self.width = self.height = 0
        self.format, self.num_channels = array_format.UNSIGNED_INT8, 1


class ArrayDescriptor3D(ArrayDescriptor):
    """The size of a three-dimensional Array: an ArrayDescriptor with `depth` and `flags`.

    Examples
    --------
    >>> descriptor = drv.ArrayDescriptor3D()
    >>> descriptor.width, descriptor.height, descriptor.depth = 3, 2, 4
    """

    def __init__(self):
        super().__init__()
        self.depth = self.flags = 0


class Array:
    """Rows of elements, which copies fill and read: see Memcpy2D.set_dst_array().

    Parameters
    ----------
    descriptor : ArrayDescriptor or ArrayDescriptor3D
        The sizes and the type of the elements.

    Raises
    ------
    LogicError
        If a size or the format is wrong, or if the program asks for `handle`: no texture reads this memory.
    MemoryError
        If the device has not enough memory.

    Examples
    --------
    >>> descriptor = drv.ArrayDescriptor()
    >>> descriptor.width, descriptor.height, descriptor.format = 3, 2, drv.array_format.FLOAT
    >>> array = drv.Array(descriptor)
    >>> drv.memcpy_htoa(array, 0, np.arange(6, dtype=np.float32))
    """

    @translated
    def __init__(self, descriptor):
        sizes = [int(getattr(descriptor, name, 0)) for name in ("width", "height", "depth")]
        channels = int(descriptor.num_channels)
        if sizes[0] < 1 or min(sizes) < 0 or channels not in (1, 2, 4):
            raise LogicError(f"an Array has a width, 1, 2 or 4 channels and no negative size: got {sizes} and {channels} channels")
        if descriptor.format not in _DTYPES:
            raise LogicError(f"an Array has no format {descriptor.format!r}: expected one of array_format")
        self._sizes, self._format, self._channels = sizes, array_format(descriptor.format), channels
        self._flags = int(getattr(descriptor, "flags", 0))
        self._row = sizes[0] * channels * np.dtype(_DTYPES[self._format]).itemsize
        self._rows, self._layers = max(sizes[1], 1), max(sizes[2], 1)
        self._buffer = gpuglue.alloc(self._row * self._rows * self._layers)

    def free(self):
        """Release the memory, once queued work on it is done.

        Raises
        ------
        LogicError
            If it was freed already.

        Examples
        --------
        >>> drv.matrix_to_array(np.zeros((2, 3), np.float32), "C").free()
        """
        self._memory().close()
        self._buffer = None

    def get_descriptor(self):
        """Return the sizes of a two-dimensional array.

        Returns
        -------
        ArrayDescriptor
            A new object.

        Examples
        --------
        >>> drv.matrix_to_array(np.zeros((2, 3), np.float32), "C").get_descriptor().width
        3
        """
        return self._describe(ArrayDescriptor())

    def get_descriptor_3d(self):
        """Return the sizes of a three-dimensional array.

        Returns
        -------
        ArrayDescriptor3D
            A new object.

        Examples
        --------
        >>> drv.np_to_array(np.zeros((4, 2, 3), np.float32), "C").get_descriptor_3d().depth
        4
        """
        found = self._describe(ArrayDescriptor3D())
        found.depth, found.flags = self._sizes[2], self._flags
        return found

    @property
    def handle(self):
        """A CUarray in PyCUDA; here a LogicError."""
        raise LogicError("an Array of gpuglue is memory in rows, and no CUarray: for a texture object, make the array with "
                         "cuda.bindings.driver.cuArrayCreate()")

    def _describe(self, found):
        found.width, found.height = self._sizes[:2]
        found.format, found.num_channels = self._format, self._channels
        return found

    def _check(self, first, shape):
        """LogicError unless the region of a copy, in layers, rows and bytes, is within the array."""
        whole = self._layers, self._rows, self._row
        if any(not 0 <= at <= size - count for at, count, size in zip(first, shape, whole)):
            raise LogicError(f"a copy of {shape} layers, rows and bytes at {tuple(first)} is not within an Array of {whole}")

    def _memory(self):
        if self._buffer is None:
            raise LogicError("this Array was freed")
        return self._buffer


def _move(to, at, source, start, nbytes):
    """Bytes between an Array and other memory: whichever ends are arrays are given as themselves."""
    for end, offset in ((to, at), (source, start)):
        if isinstance(end, Array) and not 0 <= offset <= end._memory().nbytes - nbytes:
            raise LogicError(f"{nbytes} bytes at {offset} are not in an Array of {end._memory().nbytes} bytes")
    ends = []
    for end, offset in ((to, at), (source, start)):
        ends += (end._memory(), offset) if isinstance(end, Array) else \
            (end, offset) if isinstance(end, np.ndarray) else locate(end, nbytes)
    _core._copy_bytes(*ends, nbytes, None, False)


@translated
def memcpy_dtoa(ary, index, src, len):  # noqa: A002
    """Copy from device memory to an Array.

    Parameters
    ----------
    ary : Array
        Destination.
    index : int
        The first byte in the array.
    src : DeviceAllocation or int
        Source.
    len : int
        Number of bytes.

    Raises
    ------
    LogicError
        If the array is too small.

    Examples
    --------
    >>> array = drv.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    >>> drv.memcpy_dtoa(array, 4, drv.to_device(np.ones(3, np.float32)), 12)
    """
    _move(ary, int(index), src, 0, int(len))


@translated
def memcpy_atod(dest, ary, index, len):  # noqa: A002
    """Copy from an Array to device memory.

    Parameters
    ----------
    dest : DeviceAllocation or int
        Destination.
    ary : Array
        Source.
    index : int
        The first byte in the array.
    len : int
        Number of bytes.

    Raises
    ------
    LogicError
        If the array is too small.

    Examples
    --------
    >>> array = drv.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    >>> drv.memcpy_atod(drv.mem_alloc(12), array, 4, 12)
    """
    _move(dest, 0, ary, int(index), int(len))


@translated
def memcpy_htoa(ary, index, src):
    """Copy from the host to an Array.

    Parameters
    ----------
    ary : Array
        Destination.
    index : int
        The first byte in the array.
    src : ndarray or buffer
        Source, contiguous.

    Raises
    ------
    LogicError
        If the array is too small.

    Examples
    --------
    >>> array = drv.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    >>> drv.memcpy_htoa(array, 4, np.ones(3, np.float32))
    """
    host = _host(src)
    _move(ary, int(index), host, 0, host.nbytes)


@translated
def memcpy_atoh(dest, ary, index):
    """Copy from an Array to the host.

    Parameters
    ----------
    dest : ndarray or buffer
        Destination, contiguous and writable.
    ary : Array
        Source.
    index : int
        The first byte in the array.

    Raises
    ------
    LogicError
        If the array is too small.

    Examples
    --------
    >>> array = drv.matrix_to_array(np.ones((2, 3), np.float32), "C")
    >>> host = np.zeros(3, np.float32)
    >>> drv.memcpy_atoh(host, array, 4)
    >>> host
    array([1., 1., 1.], dtype=float32)
    """
    host = _host(dest)
    _move(host, 0, ary, int(index), host.nbytes)


@translated
def memcpy_atoa(dest, dest_index, src, src_index, len):  # noqa: A002
    """Copy from an Array to another.

    Parameters
    ----------
    dest : Array
        Destination.
    dest_index : int
        The first byte in it.
    src : Array
        Source.
    src_index : int
        The first byte in it.
    len : int
        Number of bytes.

    Raises
    ------
    LogicError
        If an array is too small.

    Examples
    --------
    >>> one, two = (drv.matrix_to_array(np.zeros((2, 3), np.float32), "C") for _ in range(2))
    >>> drv.memcpy_atoa(one, 0, two, 12, 12)
    """
    _move(dest, int(dest_index), src, int(src_index), int(len))


_AS_INTEGERS = {np.dtype(np.float64): 2, np.dtype(np.complex64): 2, np.dtype(np.complex128): 4}


def _described(dtype, sizes, flags, channels):
    descriptor = ArrayDescriptor3D() if len(sizes) == 3 or flags else ArrayDescriptor()
    descriptor.width, descriptor.height, descriptor.num_channels = sizes[-1], sizes[-2], channels
    if len(sizes) == 3:
        descriptor.depth = sizes[0]
    descriptor.format = array_format.SIGNED_INT32 if dtype in _AS_INTEGERS else dtype_to_array_format(dtype)
    descriptor.flags = flags
    return descriptor


def _filled(memory, dtype, sizes, flags=0, channels=None):
    """A new Array with the elements of memory: a host array or an address."""
    dtype = np.dtype(dtype)
    array = Array(_described(dtype, [int(size) for size in sizes], flags, channels or _AS_INTEGERS.get(dtype, 1)))
    copy = Memcpy3D()
    copy.set_src_unified(memory)
    copy.set_dst_array(array)
    copy.width_in_bytes = copy.src_pitch = array._row
    copy.height = copy.src_height = array._rows
    copy.depth = array._layers
    copy()
    return array


def _check_order(order, also=()):
    if order not in ("C", "F", *also):
        raise LogicError(f"order must be 'C' or 'F': got {order!r}")


def matrix_to_array(matrix, order, allow_double_hack=False):
    """Return an Array with the elements of a matrix.

    Parameters
    ----------
    matrix : ndarray
        Two dimensions.
    order : {'C', 'F'}
        Which index is the row of the array: the first, or the last.
    allow_double_hack : bool, default False
        Whether elements of float64 become two integers each.

    Returns
    -------
    Array
        The array.

    Raises
    ------
    LogicError
        If the order is neither.
    TypeError
        If an Array has no format for the dtype.

    Examples
    --------
    >>> array = drv.matrix_to_array(np.zeros((2, 3), np.float32), "C")
    """
    _check_order(order, ("c", "f"))
    matrix = np.asarray(matrix, order=order.upper())
    if matrix.dtype in _AS_INTEGERS and not (allow_double_hack and matrix.dtype == np.float64):
        dtype_to_array_format(matrix.dtype)  # raises
    return _filled(matrix, matrix.dtype, matrix.shape if order in "Cc" else matrix.shape[::-1])


def _stacked(memory, array, order, surface):
    _check_order(order)
    if array.ndim not in (2, 3):
        raise LogicError(f"an Array has 2 or 3 dimensions: got {array.ndim}")
    flags = array3d_flags.SURFACE_LDST | (array3d_flags.ARRAY3D_LAYERED if array.ndim == 2 else 0) if surface else 0
    return _filled(memory, array.dtype, array.shape, flags)


def np_to_array(nparray, order, allowSurfaceBind=False):  # noqa: N803
    """Return an Array with the elements of an array of the host.

    Parameters
    ----------
    nparray : ndarray
        Two or three dimensions, contiguous in the order. The elements stay in the order of the memory.
    order : {'C', 'F'}
        The order of the memory.
    allowSurfaceBind : bool, default False
        Sets flags of the descriptor.

    Returns
    -------
    Array
        The array. Elements of float64, complex64 and complex128 are two or four integers each.

    Raises
    ------
    LogicError
        If the order or the number of dimensions is another.
    TypeError
        If an Array has no format for the dtype.

    Examples
    --------
    >>> array = drv.np_to_array(np.zeros((4, 2, 3), np.float32), "C")
    """
    return _stacked(np.asarray(nparray, order=order if order in ("C", "F") else None), nparray, order, allowSurfaceBind)


def gpuarray_to_array(gpuarray, order, allowSurfaceBind=False):  # noqa: N803
    """Return an Array with the elements of an array of the device.

    Parameters
    ----------
    gpuarray : GPUArray
        Two or three dimensions, contiguous in the order. The elements stay in the order of the memory.
    order : {'C', 'F'}
        The order of the memory.
    allowSurfaceBind : bool, default False
        Sets flags of the descriptor.

    Returns
    -------
    Array
        The array. Elements of float64, complex64 and complex128 are two or four integers each.

    Raises
    ------
    LogicError
        If the order or the number of dimensions is another.
    TypeError
        If an Array has no format for the dtype.

    Examples
    --------
    >>> array = drv.gpuarray_to_array(gpuarray.zeros((4, 2, 3), np.float32), "C")
    """
    return _stacked(gpuarray.gpudata, gpuarray, order, allowSurfaceBind)


def make_multichannel_2d_array(ndarray, order):
    """Return an Array whose elements are vectors.

    Parameters
    ----------
    ndarray : ndarray
        Three dimensions: the channels are the last one in C order, the first one in F order.
    order : {'C', 'F'}
        The order of the memory.

    Returns
    -------
    Array
        The array.

    Raises
    ------
    LogicError
        If the order is neither, or there are not 1, 2 or 4 channels.
    TypeError
        If an Array has no format for the dtype.

    Examples
    --------
    >>> array = drv.make_multichannel_2d_array(np.zeros((2, 3, 4), np.float32), "C")
    """
    _check_order(order, ("c", "f"))
    memory = np.asarray(ndarray, order=order.upper())
    dtype_to_array_format(memory.dtype)
    height, width, channels = memory.shape if order in "Cc" else memory.shape[::-1]
    return _filled(memory, memory.dtype, (height, width), channels=channels)
