"""Memcpy2D and Memcpy3D: copies between rectangular regions."""

import numpy as np

from gpuglue import _core

from . import _memory
from ._errors import LogicError, translated


class _End:
    """One side of a copy; place is (offset, bytes from layer to layer, bytes from row to row)."""

    def __init__(self):
        self.kind, self.what = None, None

    def at(self, place, shape):
        """(memory, place in it) as _copy_region takes them."""
        if self.kind is None:
            raise LogicError("Memcpy: source or destination was not set")
        if self.kind == "host":
            return self.what, place
        offset, layer, row = place
        if self.kind == "array":
            return self.what._memory(), place
        buffer, start = _memory.locate(self.what, offset + _reach(place, shape))
        return buffer, (start + offset, layer, row)


def _reach(place, shape):
    """Bytes from the start of the first row to the end of the last."""
    return (shape[0] - 1) * place[1] + (shape[1] - 1) * place[2] + shape[2] if all(shape) else 0


def _parts(dst, src, shape):
    """The region; row by row where source and destination overlap, as columns of one allocation may."""
    (to, at), (source, start) = dst, src
    disjoint = at[0] + _reach(at, shape) <= start[0] or start[0] + _reach(start, shape) <= at[0]
    if to is not source or disjoint:
        yield dst, src, shape
        return
    for layer in range(shape[0]):
        for row in range(shape[1]):
            places = (((place[0] + layer * place[1] + row * place[2]), 0, 0) for place in (at, start))
            yield (to, next(places)), (source, next(places)), (1, 1, shape[2])


def _on_host(dst, to, src, source, shape):
    """A copy from host to host."""
    views = []
    for memory, place in ((dst, to), (src, source)):
        if place[0] < 0 or place[0] + _reach(place, shape) > memory.nbytes:
            raise LogicError(f"the rows of a copy do not fit into {memory.nbytes} bytes")
        views.append(np.ndarray(shape, np.uint8, memory, place[0], (place[1], place[2], 1)))
    views[0][...] = views[1]


def _bytes(array, writable=False):
    """A host array's memory from its first element to the end of its last, as a one-dimensional array of bytes."""
    if not isinstance(array, np.ndarray):
        return np.frombuffer(array, np.uint8)
    if writable and not array.flags.writeable:
        raise ValueError("the destination of a Memcpy is a read-only array")
    if array.flags.forc:
        return array.reshape(-1, order="A").view(np.uint8)
    first = array[(slice(1),) * array.ndim].reshape(-1).view(np.uint8)
    reach = sum((length - 1) * max(step, 0) for length, step in zip(array.shape, array.strides))
    return np.lib.stride_tricks.as_strided(first, (reach + array.itemsize,), (1,))


def _is_host(buffer):
    """Whether it is a host array and not an address or an object that has one."""
    return isinstance(buffer, np.ndarray) or not any(
        hasattr(buffer, name) for name in ("ptr", "gpudata", "__index__"))


class Memcpy2D:
    """A copy of rows: set both sides and the sizes, then call it.

    `width_in_bytes` and `height` are the size, `src_pitch` and `dst_pitch` the bytes from one row to the next, and
    `src_x_in_bytes`, `src_y`, `dst_x_in_bytes` and `dst_y` the place. ``copy(aligned=None, stream=None)`` runs it;
    `aligned` has no effect. With a stream it may still run on return if the host's side is page-locked.

    Raises
    ------
    LogicError
        By a call before both sides are set, or if the rows do not fit.

    Examples
    --------
    >>> host = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> device, pitch = drv.mem_alloc_pitch(3, 2, 1)
    >>> copy = drv.Memcpy2D()
    >>> copy.set_src_host(host)
    >>> copy.set_dst_device(device)
    >>> copy.width_in_bytes, copy.height, copy.dst_pitch = 3, 2, pitch
    >>> copy()
    """

    def __init__(self):
        self._src, self._dst = _End(), _End()
        self.src_x_in_bytes = self.src_y = self.dst_x_in_bytes = self.dst_y = 0
        self.src_pitch = self.dst_pitch = 0
        self.width_in_bytes, self.height = 0, 1

    def set_src_host(self, array):
        """Copy from an array of the host.

        Parameters
        ----------
        array : ndarray or buffer
            The source. The pitches of the copy describe its rows; its own strides are not used.

        Examples
        --------
        >>> drv.Memcpy2D().set_src_host(np.zeros(3))
        """
        self._src.kind, self._src.what = "host", _bytes(array)

    def set_dst_host(self, array):
        """Copy to an array of the host.

        Parameters
        ----------
        array : ndarray or buffer
            The destination, writable. The pitches of the copy describe its rows; its own strides are not used.

        Raises
        ------
        ValueError
            If the array is read-only.

        Examples
        --------
        >>> drv.Memcpy2D().set_dst_host(np.zeros(3))
        """
        self._dst.kind, self._dst.what = "host", _bytes(array, writable=True)

    def set_src_device(self, pointer):
        """Copy from device or managed memory.

        Parameters
        ----------
        pointer : DeviceAllocation or int
            The source.

        Examples
        --------
        >>> drv.Memcpy2D().set_src_device(drv.mem_alloc(24))
        """
        self._src.kind, self._src.what = "device", pointer

    def set_dst_device(self, pointer):
        """Copy to device or managed memory.

        Parameters
        ----------
        pointer : DeviceAllocation or int
            The destination.

        Examples
        --------
        >>> drv.Memcpy2D().set_dst_device(drv.mem_alloc(24))
        """
        self._dst.kind, self._dst.what = "device", pointer

    def set_src_unified(self, buffer):
        """Copy from an array of the host, or from device memory.

        Parameters
        ----------
        buffer : ndarray, buffer, DeviceAllocation or int
            The source. Managed and page-locked arrays are arrays of the host.

        Examples
        --------
        >>> drv.Memcpy2D().set_src_unified(np.zeros(3))
        >>> drv.Memcpy2D().set_src_unified(drv.mem_alloc(24))
        """
        (self.set_src_host if _is_host(buffer) else self.set_src_device)(buffer)

    def set_dst_unified(self, buffer):
        """Copy to an array of the host, or to device memory.

        Parameters
        ----------
        buffer : ndarray, buffer, DeviceAllocation or int
            The destination. Managed and page-locked arrays are arrays of the host.

        Raises
        ------
        ValueError
            If it is a read-only array.

        Examples
        --------
        >>> drv.Memcpy2D().set_dst_unified(np.zeros(3))
        >>> drv.Memcpy2D().set_dst_unified(drv.mem_alloc(24))
        """
        (self.set_dst_host if _is_host(buffer) else self.set_dst_device)(buffer)

    def set_src_array(self, array):
        """Copy from an Array, whose rows are its own.

        Parameters
        ----------
        array : Array
            The source. The pitch and the height of the copy's source are not used.

        Examples
        --------
        >>> drv.Memcpy2D().set_src_array(drv.matrix_to_array(np.zeros((2, 3), np.float32), "C"))
        """
        self._src.kind, self._src.what = "array", array

    def set_dst_array(self, array):
        """Copy to an Array, whose rows are its own.

        Parameters
        ----------
        array : Array
            The destination. The pitch and the height of the copy's destination are not used.

        Examples
        --------
        >>> drv.Memcpy2D().set_dst_array(drv.matrix_to_array(np.zeros((2, 3), np.float32), "C"))
        """
        self._dst.kind, self._dst.what = "array", array

    def _shape(self):
        return 1, int(self.height), int(self.width_in_bytes)

    def _place(self, end, x, y, pitch, z=0, height=0):
        if end.kind == "array":
            pitch, height = end.what._row, end.what._rows
            end.what._check((z, y, x), self._shape())
        row = int(pitch or self.width_in_bytes)
        layer = row * int(height or self.height)
        return int(x) + int(y) * row + int(z) * layer, layer, row

    def _places(self):
        return (self._place(self._dst, self.dst_x_in_bytes, self.dst_y, self.dst_pitch),
                self._place(self._src, self.src_x_in_bytes, self.src_y, self.src_pitch))

    @translated
    def __call__(self, aligned=None, stream=None):
        """aligned has no effect; a stream may be passed in its place."""
        if hasattr(aligned, "_stream"):
            stream = aligned
        shape = self._shape()
        dst, src = (end.at(place, shape) for end, place in zip((self._dst, self._src), self._places()))
        if self._dst.kind == self._src.kind == "host":
            return _on_host(*dst, *src, shape)
        how = _memory._stream(stream), stream is not None
        for (to, at), (source, start), part in _parts(dst, src, shape):
            _core._copy_region(to, at, source, start, part, *how)


class Memcpy3D(Memcpy2D):
    """A copy of slices of rows: a Memcpy2D with a depth.

    `depth` is the number of slices, `src_height` and `dst_height` the rows from one slice to the next, and `src_z` and
    `dst_z` the place.

    Examples
    --------
    >>> host = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    >>> copy = drv.Memcpy3D()
    >>> copy.set_src_host(host)
    >>> copy.set_dst_device(drv.mem_alloc(8))
    >>> copy.width_in_bytes, copy.height, copy.depth = 2, 2, 2
    >>> copy()
    """

    def __init__(self):
        super().__init__()
        self.src_z = self.dst_z = self.src_lod = self.dst_lod = 0
        self.src_height = self.dst_height = 0
        self.depth = 1

    def _shape(self):
        return int(self.depth), *super()._shape()[1:]

    def _places(self):
        return (self._place(self._dst, self.dst_x_in_bytes, self.dst_y, self.dst_pitch, self.dst_z, self.dst_height),
                self._place(self._src, self.src_x_in_bytes, self.src_y, self.src_pitch, self.src_z, self.src_height))


class Memcpy3DPeer(Memcpy3D):
    """A Memcpy3D between two devices. The memory knows its device, so the contexts have no effect.

    Examples
    --------
    >>> copy = drv.Memcpy3DPeer()
    >>> copy.set_src_device(drv.to_device(np.arange(8, dtype=np.uint8)))
    >>> copy.set_dst_device(drv.mem_alloc(8))
    >>> copy.width_in_bytes, copy.height, copy.depth = 2, 2, 2
    >>> copy()
    """

    def set_src_context(self, context):
        """Name the context of the source.

        Parameters
        ----------
        context : Context
            Not used.

        Examples
        --------
        >>> drv.Memcpy3DPeer().set_src_context(drv.Context.get_current())
        """

    def set_dst_context(self, context):
        """Name the context of the destination.

        Parameters
        ----------
        context : Context
            Not used.

        Examples
        --------
        >>> drv.Memcpy3DPeer().set_dst_context(drv.Context.get_current())
        """
