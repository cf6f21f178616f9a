"""Memcpy2D and Memcpy3D: boxes out of boxes."""

import numpy as np

from gpuglue import _core

from . import _memory
from ._errors import LogicError, translated


class _End:
    """One side of a copy; place is (offset, bytes from layer to layer, bytes from row to row)."""

    def __init__(self):
        self.kind, self.what = None, None

    def at(self, place, shape):
        """(memory, place in it) as _copy_box takes them."""
        if self.kind is None:
            raise LogicError("Memcpy: source or destination was not set")
        if self.kind == "host":
            return self.what, place
        offset, layer, row = place
        buffer, start = _memory.locate(self.what, offset + _reach(place, shape))
        return buffer, (start + offset, layer, row)


def _reach(place, shape):
    """Bytes from the first to behind the last."""
    return (shape[0] - 1) * place[1] + (shape[1] - 1) * place[2] + shape[2] if all(shape) else 0


def _parts(dst, src, shape):
    """The box; row by row where its ends lie in each other, as columns of one allocation do."""
    (to, at), (source, start) = dst, src
    apart = at[0] + _reach(at, shape) <= start[0] or start[0] + _reach(start, shape) <= at[0]
    if to is not source or apart:
        yield dst, src, shape
        return
    for layer in range(shape[0]):
        for row in range(shape[1]):
            places = (((place[0] + layer * place[1] + row * place[2]), 0, 0) for place in (at, start))
            yield (to, next(places)), (source, next(places)), (1, 1, shape[2])


def _on_host(dst, to, src, source, shape):
    """A copy that no device has to do with."""
    views = []
    for memory, place in ((dst, to), (src, source)):
        if place[0] < 0 or place[0] + _reach(place, shape) > memory.nbytes:
            raise LogicError(f"the rows of a copy do not fit into {memory.nbytes} bytes")
        views.append(np.ndarray(shape, np.uint8, memory, place[0], (place[1], place[2], 1)))
    views[0][...] = views[1]


def _bytes(array):
    """A host array's memory, rows and all, as one line of bytes."""
    if not isinstance(array, np.ndarray):
        return np.frombuffer(array, np.uint8)
    base = array.reshape(-1, order="A") if array.flags.forc else array
    if not array.flags.forc:
        raise ValueError("the host array of a Memcpy must be contiguous")
    return base.view(np.uint8)


class Memcpy2D:
    """height rows of width_in_bytes, src_pitch and dst_pitch apart."""

    def __init__(self):
        self._src, self._dst = _End(), _End()
        self.src_x_in_bytes = self.src_y = self.dst_x_in_bytes = self.dst_y = 0
        self.src_pitch = self.dst_pitch = 0
        self.width_in_bytes, self.height = 0, 1

    def set_src_host(self, array):
        self._src.kind, self._src.what = "host", _bytes(array)

    def set_dst_host(self, array):
        self._dst.kind, self._dst.what = "host", _bytes(array)

    def set_src_device(self, pointer):
        self._src.kind, self._src.what = "device", pointer

    def set_dst_device(self, pointer):
        self._dst.kind, self._dst.what = "device", pointer

    set_src_unified, set_dst_unified = set_src_device, set_dst_device

    def set_src_array(self, array):
        raise LogicError("texture arrays are not part of gpuglue")

    set_dst_array = set_src_array

    def _shape(self):
        return 1, int(self.height), int(self.width_in_bytes)

    def _place(self, x, y, pitch, z=0, height=0):
        row = int(pitch or self.width_in_bytes)
        layer = row * int(height or self.height)
        return int(x) + int(y) * row + int(z) * layer, layer, row

    def _places(self):
        return (self._place(self.dst_x_in_bytes, self.dst_y, self.dst_pitch),
                self._place(self.src_x_in_bytes, self.src_y, self.src_pitch))

    @translated
    def __call__(self, aligned=None, stream=None):
        """aligned is PyCUDA's, and changes nothing here; a stream may stand in its place."""
        if hasattr(aligned, "_stream"):
            stream = aligned
        shape = self._shape()
        dst, src = (end.at(place, shape) for end, place in zip((self._dst, self._src), self._places()))
        if self._dst.kind == self._src.kind == "host":
            return _on_host(*dst, *src, shape)
        how = stream._stream if stream is not None else None, stream is not None
        for (to, at), (source, start), part in _parts(dst, src, shape):
            _core._copy_box(to, at, source, start, part, *how)


class Memcpy3D(Memcpy2D):
    """depth slices of such rows, src_height and dst_height rows apart."""

    def __init__(self):
        super().__init__()
        self.src_z = self.dst_z = self.src_lod = self.dst_lod = 0
        self.src_height = self.dst_height = 0
        self.depth = 1

    def _shape(self):
        return int(self.depth), *super()._shape()[1:]

    def _places(self):
        return (self._place(self.dst_x_in_bytes, self.dst_y, self.dst_pitch, self.dst_z, self.dst_height),
                self._place(self.src_x_in_bytes, self.src_y, self.src_pitch, self.src_z, self.src_height))
