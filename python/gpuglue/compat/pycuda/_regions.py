"""Memcpy2D and Memcpy3D: boxes out of boxes, row by row."""

import numpy as np

from gpuglue import _core

from . import _memory
from ._errors import LogicError, translated


class _End:
    def __init__(self):
        self.kind, self.what = None, None

    def at(self, offset, nbytes):
        """What _copy_bytes takes."""
        if self.kind is None:
            raise LogicError("Memcpy: source or destination was not set")
        if self.kind == "host":
            return self.what, offset
        buffer, start = _memory.locate(self.what, offset + nbytes)
        return buffer, start + offset


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

    def _rows(self):
        for row in range(self.height):
            yield (self.dst_x_in_bytes + (self.dst_y + row) * (self.dst_pitch or self.width_in_bytes),
                   self.src_x_in_bytes + (self.src_y + row) * (self.src_pitch or self.width_in_bytes))

    @translated
    def __call__(self, how=None):
        """aligned=True or False, as in PyCUDA, which changes nothing here; or a stream."""
        stream = how._stream if hasattr(how, "_stream") else None
        for to, source in self._rows():
            _core._copy_bytes(*self._dst.at(to, self.width_in_bytes), *self._src.at(source, self.width_in_bytes),
                              self.width_in_bytes, stream, stream is not None)


class Memcpy3D(Memcpy2D):
    """depth slices of such rows, src_height and dst_height rows apart."""

    def __init__(self):
        super().__init__()
        self.src_z = self.dst_z = self.src_lod = self.dst_lod = 0
        self.src_height = self.dst_height = 0
        self.depth = 1

    def _rows(self):
        for layer in range(self.depth):
            to = (self.dst_z + layer) * (self.dst_height or self.height) * (self.dst_pitch or self.width_in_bytes)
            source = (self.src_z + layer) * (self.src_height or self.height) * (self.src_pitch or self.width_in_bytes)
            for row_to, row_source in super()._rows():
                yield to + row_to, source + row_source
