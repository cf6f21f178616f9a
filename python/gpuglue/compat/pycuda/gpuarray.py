"""pycuda.gpuarray: arrays on the device: storage, views, copies. What they lie like is asked of NumPy: a
phantom array of the same shape and strides, whose elements nobody reads."""

import builtins

import numpy as np

import gpuglue
from gpuglue import _core

from . import _memory, driver
from ._errors import translated
from ._vectors import vec  # noqa: F401


def _phantom(shape, dtype, strides):
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)


def _shape_of(shape):
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(int(size) for size in np.atleast_1d(shape)) if isinstance(shape, np.ndarray) else tuple(map(int, shape))


def _is_basic(entry):
    return entry is None or entry is Ellipsis or isinstance(entry, slice) or (
        isinstance(entry, (int, np.integer)) and not isinstance(entry, bool))


def _strides_for(shape, dtype, order):
    strides, step = [], dtype.itemsize
    for size in (shape if order == "F" else shape[::-1]):
        strides.append(step)
        step *= builtins.max(size, 1)
    return tuple(strides if order == "F" else strides[::-1])


class GPUArray:
    """An array on the device, over memory of its own or over gpudata."""

    __array_priority__ = 100
    __array_ufunc__ = None

    def __init__(self, shape, dtype, allocator=driver.mem_alloc, base=None, gpudata=None, strides=None, order="C"):
        dtype, shape = np.dtype(dtype), _shape_of(shape)
        if any(size < 0 for size in shape):
            raise ValueError(f"negative sizes in the shape {shape}")
        if strides is None:
            if order not in ("C", "F"):
                raise ValueError(f"order is C or F, not {order!r}")
            strides = _strides_for(shape, dtype, order)
        elif isinstance(strides, (int, np.integer)):
            strides = (int(strides),)
        self.allocator, self.base = allocator, base
        self._set_layout(_phantom(shape, dtype, tuple(strides)))
        if gpudata is None:
            gpudata = allocator(self.size * dtype.itemsize) if self.size else None
            if base is not None:
                raise ValueError("base without gpudata")
        self.gpudata = gpudata

    def _set_layout(self, phantom):
        self._layout = phantom
        self.shape, self.dtype, self.strides = phantom.shape, phantom.dtype, phantom.strides
        self.size, self.ndim, self.flags = phantom.size, phantom.ndim, phantom.flags
        self.itemsize, self.nbytes, self.mem_size = phantom.dtype.itemsize, phantom.nbytes, phantom.size

    # ---- what it is

    @property
    def ptr(self):
        return _memory.address_of(self.gpudata) if self.gpudata is not None else 0

    @property
    def __cuda_array_interface__(self):
        backend = gpuglue.current_device().backend
        if backend not in ("cuda", "hip"):
            raise AttributeError(f"__cuda_array_interface__: the device is of {backend}")
        return {"shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "stream": None, "version": 3,
                "strides": None if self.flags.c_contiguous else self.strides, "data": (self.ptr, False)}

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __bool__(self):
        if self.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        return bool(self.get().reshape(-1)[0])

    def __repr__(self):
        return repr(self.get())

    __str__ = __repr__
    __hash__ = None  # type: ignore

    def __reduce__(self):
        return to_gpu, (self.get(),)

    def _compare(self, other):
        raise TypeError("gpuglue's gpuarray does no arithmetic and no comparisons")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare

    # ---- to and from the host

    def _span(self):
        """Bytes from the first to the last, and where element 0 is in them."""
        if not self.size:
            return 0, 0
        low = builtins.sum(min_ for min_ in ((n - 1) * s for n, s in zip(self.shape, self.strides)) if min_ < 0)
        high = builtins.sum(top for top in ((n - 1) * s for n, s in zip(self.shape, self.strides)) if top > 0)
        return high - low + self.itemsize, -low

    def _fetch(self, stream=None, pagelocked=False):
        """The memory that the elements lie in, as an array of the same layout on the host."""
        nbytes, first = self._span()
        raw = driver.pagelocked_empty(nbytes, np.uint8) if pagelocked or stream is not None else np.empty(nbytes, np.uint8)
        if nbytes:
            driver.memcpy_dtoh_async(raw, self.ptr - first, stream) if stream is not None else \
                driver.memcpy_dtoh(raw, self.ptr - first)
        return raw, np.ndarray(self.shape, self.dtype, raw, first, self.strides)

    def _result(self, ary):
        if ary is None:
            return None
        if ary.size != self.size or ary.dtype != self.dtype or ary.shape != self.shape:
            raise ValueError(f"ary has shape {ary.shape} and dtype {ary.dtype}, expected {self.shape} and {self.dtype}")
        return ary

    def get(self, ary=None, pagelocked=False, async_=None, stream=None):
        """A copy on the host, with the same order of strides."""
        ary = self._result(ary)
        if async_:
            return self.get_async(stream, ary)
        raw, fetched = self._fetch(None, pagelocked)
        if ary is not None:
            ary[...] = fetched
            return ary
        return fetched if self.flags.forc else fetched.copy(order="K")

    def get_async(self, stream=None, ary=None):
        """The same, perhaps not filled yet: the stream has to be waited for. Waits where it has to go
        through memory of our own."""
        ary = self._result(ary)
        if self.flags.forc and (ary is None or (ary.strides == self.strides)):
            if ary is None:
                return self._fetch(stream, True)[1]
            if self.size:
                driver.memcpy_dtoh_async(ary, self.gpudata, stream)
            return ary
        _, fetched = self._fetch(stream, True)
        if stream is not None:
            stream.synchronize()
        if ary is None:
            return fetched.copy(order="K")
        ary[...] = fetched
        return ary

    def set(self, ary, async_=False, stream=None):
        """Copy from the host."""
        ary = np.asarray(ary)
        if ary.size != self.size or ary.shape != self.shape:
            raise ValueError(f"ary has shape {ary.shape}, expected {self.shape}")
        if ary.dtype != self.dtype:
            raise ValueError(f"ary has dtype {ary.dtype}, expected {self.dtype}")
        if not self.size:
            return
        if self.flags.forc and ary.strides == self.strides:
            driver.memcpy_htod_async(self.gpudata, ary, stream) if async_ else driver.memcpy_htod(self.gpudata, ary)
            return
        raw, there = self._fetch()
        there[...] = ary
        driver.memcpy_htod(self.ptr - self._span()[1], raw)

    def set_async(self, ary, stream=None):
        return self.set(ary, async_=True, stream=stream)

    # ---- on the device

    @translated
    def copy(self, stream=None):
        new = GPUArray(self.shape, self.dtype, self.allocator, strides=self.strides if self.flags.forc else None)
        if self.flags.forc and self.size:
            driver.memcpy_dtod_async(new.gpudata, self.gpudata, self.nbytes, stream)
        elif self.size:
            if stream is not None:
                stream.synchronize()
            new.set(np.ascontiguousarray(self.get()))
        return new

    @translated
    def fill(self, value, stream=None):
        """Every element becomes value."""
        pattern = np.array(value, self.dtype)
        if pattern.ndim:
            raise TypeError(f"one value for all elements is expected, not {pattern.size}: assign an array of NumPy's")
        if self.flags.forc and self.size:
            buffer, offset = _memory.locate(self.gpudata, self.nbytes)
            _core._fill_bytes(buffer, offset, pattern.tobytes(), self.size, _memory._stream(stream))
        elif self.size:
            self.set(np.broadcast_to(pattern, self.shape))
        return self

    # ---- views

    def _view(self, phantom):
        offset = phantom.__array_interface__["data"][0] - self._layout.__array_interface__["data"][0]
        new = object.__new__(GPUArray)
        new.allocator, new.base = self.allocator, self.base if self.base is not None else self
        new._set_layout(phantom)
        new.gpudata = self.gpudata if not offset else _Place(self.gpudata, self.ptr + offset)
        return new

    def __getitem__(self, index):
        index = np_tuple(index)
        if builtins.any(isinstance(i, (list, np.ndarray, GPUArray)) for i in index):
            raise NotImplementedError("indexing by an array: gpuglue's gpuarray does basic indexing only")
        for entry in index:  # NumPy would copy the phantom for it, and read what is not there
            if not _is_basic(entry):
                raise IndexError(f"invalid subindex {entry!r}: expected an integer, a slice, None or ...")
        if not builtins.any(i is Ellipsis for i in index):
            index += (Ellipsis,)  # a view also where all axes are gone: nothing is read
        return self._view(self._layout[index])

    def __setitem__(self, index, value):
        part = self[index]
        if isinstance(value, GPUArray):
            if value.shape != part.shape or value.dtype != part.dtype:
                raise ValueError(f"cannot assign {value.shape} of {value.dtype} to {part.shape} of {part.dtype}")
            if part.flags.c_contiguous and value.flags.c_contiguous and part.size:
                driver.memcpy_dtod(part.gpudata, value.gpudata, part.nbytes)
            else:
                part.set(value.get())
        elif isinstance(value, np.ndarray):
            part.set(np.broadcast_to(value, part.shape).astype(part.dtype))
        else:
            part.fill(value)

    def reshape(self, *shape, order="C"):
        """A view; the array must be contiguous."""
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        if not self.flags.forc:
            raise RuntimeError("only contiguous arrays may be used as arguments to this operation")
        shape = np.broadcast_to(np.int8(0), self.shape).reshape(shape).shape  # -1, and whether it fits
        if order == "A":
            order = "F" if self.flags.f_contiguous and not self.flags.c_contiguous else "C"
        return self._view_as(shape, _strides_for(shape, self.dtype, order))

    def _view_as(self, shape, strides, dtype=None):
        new = GPUArray(shape, dtype or self.dtype, self.allocator, base=self.base if self.base is not None else self,
                       gpudata=self.gpudata if self.gpudata is not None else 0, strides=strides)
        new.gpudata = self.gpudata
        return new

    def ravel(self):
        return self.reshape(self.size)

    def view(self, dtype=None):
        """The same bytes as another type; the last axis changes its length."""
        dtype = np.dtype(dtype or self.dtype)
        if dtype.itemsize == self.itemsize:
            return self._view_as(self.shape, self.strides, dtype)
        fortran = self.flags.f_contiguous and not self.flags.c_contiguous
        axis = 0 if fortran else self.ndim - 1
        if not self.flags.forc or not self.ndim:
            raise ValueError("new type not compatible with array")
        nbytes = self.shape[axis] * self.itemsize
        if nbytes % dtype.itemsize:
            raise ValueError("new type not compatible with array")
        shape = tuple(nbytes // dtype.itemsize if i == axis else n for i, n in enumerate(self.shape))
        return self._view_as(shape, _strides_for(shape, dtype, "F" if fortran else "C"), dtype)

    def squeeze(self):
        return self._view(self._layout.squeeze())

    def transpose(self, axes=None):
        return self._view(self._layout.transpose(axes))

    T = property(transpose)


class _Place(driver.PointerHolderBase):
    """An address inside memory that it keeps."""

    def __init__(self, inside, address):
        self._inside, self._address = inside, address

    def get_pointer(self):
        return self._address


def np_tuple(index):
    return index if isinstance(index, tuple) else (index,)


# ---- making them


def to_gpu(ary, allocator=driver.mem_alloc):
    ary = np.asarray(ary)
    if not ary.flags.forc:
        ary = ary.copy(order="K")
    result = GPUArray(ary.shape, ary.dtype, allocator, strides=_compact(ary))
    result.set(ary)
    return result


def _compact(ary):
    return ary.strides if ary.flags.forc else None


def to_gpu_async(ary, allocator=driver.mem_alloc, stream=None):
    ary = np.asarray(ary)
    result = GPUArray(ary.shape, ary.dtype, allocator, strides=_compact(ary))
    result.set_async(ary, stream)
    return result


def empty(shape, dtype=np.float64, allocator=driver.mem_alloc, order="C"):
    return GPUArray(shape, dtype, allocator, order=order)


def zeros(shape, dtype=np.float64, allocator=driver.mem_alloc, order="C"):
    return empty(shape, dtype, allocator, order).fill(np.zeros((), dtype))


def ones(shape, dtype=np.float64, allocator=driver.mem_alloc, order="C"):
    return empty(shape, dtype, allocator, order).fill(np.ones((), dtype))


def empty_like(other_ary, dtype=None, order="K"):
    dtype = np.dtype(other_ary.dtype if dtype is None else dtype)
    allocator = getattr(other_ary, "allocator", driver.mem_alloc)
    fortran = other_ary.flags.f_contiguous and not other_ary.flags.c_contiguous
    if order == "K" and not other_ary.flags.forc:
        like = np.empty_like(_phantom(other_ary.shape, np.int8, tuple(s // other_ary.itemsize for s in other_ary.strides)),
                             subok=False, order="K")
        return GPUArray(other_ary.shape, dtype, allocator, strides=tuple(s * dtype.itemsize for s in like.strides))
    if order in ("A", "K"):
        order = "F" if fortran else "C"
    return GPUArray(other_ary.shape, dtype, allocator, order=order)


def zeros_like(other_ary, dtype=None, order="K"):
    return _filled(empty_like(other_ary, dtype, order), 0)


def ones_like(other_ary, dtype=None, order="K"):
    return _filled(empty_like(other_ary, dtype, order), 1)


def _filled(array, value):
    """Elements lie side by side in some order of the axes: filled as one line."""
    if array.size:
        buffer, offset = _memory.locate(array.gpudata, array.nbytes)
        _core._fill_bytes(buffer, offset, np.array(value, array.dtype).tobytes(), array.size, None)
    return array


def arange(*args, dtype=None, **kwargs):
    """np.arange, on the device."""
    return to_gpu(np.arange(*args, dtype=dtype, **kwargs))


def stack(arrays, axis=0, allocator=None):
    """Arrays of one shape side by side along a new axis; -1: the last."""
    arrays = list(arrays)
    axis = arrays[0].ndim if axis == -1 else axis
    if any(array.shape != arrays[0].shape for array in arrays):
        raise ValueError("arrays must have the same shapes")
    if not 0 <= axis <= arrays[0].ndim:
        raise ValueError(f"axis {axis} is none of the {arrays[0].ndim + 1} that the result has")
    return _joined([array[(slice(None),) * axis + (None,)] for array in arrays], axis, allocator)


def concatenate(arrays, axis=0, allocator=None):
    return _joined(list(arrays), axis, allocator)


def _joined(arrays, axis, allocator):
    if any(array.dtype != arrays[0].dtype for array in arrays):
        raise ValueError("arrays must have the same dtype")
    return to_gpu(np.concatenate([array.get() for array in arrays], axis), allocator or arrays[0].allocator)
