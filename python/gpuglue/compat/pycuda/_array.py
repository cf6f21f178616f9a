"""GPUArray: storage, views and copies. NumPy computes the layout of views, on a phantom array of the same shape and
strides, whose elements are never read."""

import builtins
import warnings

import numpy as np

import gpuglue
from gpuglue import _core

from . import _memory, driver
from ._errors import LogicError, translated
from ._layouts import form_like, form_of, strides_for
from ._missing import TEXTURES
from ._operators import Operators


def _shape_of(shape):
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(np.atleast_1d(shape).tolist()) if isinstance(shape, np.ndarray) else tuple(shape)


def _is_basic(entry):
    return entry is None or entry is Ellipsis or isinstance(entry, slice) or (
        isinstance(entry, (int, np.integer)) and not isinstance(entry, bool))


class GPUArray(Operators):
    """An array on the device, over memory of its own or over gpudata.

    Operators compute for each element, by NumPy's rules for types: NumPy on host, elsewhere kernels, which need a compiler, or
    CuPy, if it is installed, for what they do not compute.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype
        Type of the elements.
    allocator : function, default driver.mem_alloc
        Called with a number of bytes; returns the memory.
    base : object, optional
        What `gpudata` is a part of.
    gpudata : DeviceAllocation or int, optional
        Memory of the array. None allocates it.
    strides : sequence of int, optional
        Bytes between elements per dimension.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory, without `strides`.

    Raises
    ------
    ValueError
        If a length is negative, or `base` is given without `gpudata`.

    See Also
    --------
    to_gpu : A copy of an array of the host.

    Examples
    --------
    >>> a = gpuarray.GPUArray((2, 3), np.float32)
    >>> a.nbytes, a.strides
    (24, (12, 4))
    """

    __module__ = "pycuda.gpuarray"  # by which libraries recognise PyCUDA's arrays
    __array_priority__ = 100
    __array_ufunc__ = None

    def __init__(self, shape, dtype, allocator=driver.mem_alloc, base=None, gpudata=None, strides=None, order="C"):
        if base is not None and gpudata is None:
            raise ValueError("base= needs gpudata=")
        if isinstance(strides, (int, np.integer)):
            strides = (strides,)
        form = form_of(_shape_of(shape), np.dtype(dtype), strides, order)
        self.__dict__.update(form.attributes)
        self.allocator, self.base = allocator, base
        self.gpudata = gpudata if gpudata is not None or not form.size else allocator(form.nbytes)

    @staticmethod
    def _of_form(form, allocator):
        """A new array: what `_compute` makes for each result."""
        self = object.__new__(GPUArray)
        self.__dict__ = attributes = form.attributes.copy()
        attributes["allocator"] = allocator
        attributes["gpudata"] = allocator(form.nbytes) if form.size else None
        return self

    # ---- attributes

    @property
    def ptr(self):
        """Address of the first element, an int."""
        return _memory.address_of(self.gpudata) if self.gpudata is not None else 0

    @property
    def __cuda_array_interface__(self):
        backend = gpuglue.current_device().backend
        if backend not in ("cuda", "hip"):
            raise AttributeError(f"__cuda_array_interface__: the device is of {backend}: copy by get()")
        if self.size:
            buffer, _ = _memory.locate(self.gpudata, 1)
            getattr(gpuglue.asarray(buffer), "__cuda_array_interface__")  # which records a use by streams that are not known
        return {"shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "stream": None, "version": 3,
                "strides": self.strides, "data": (self.ptr, False)}

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

    def __reduce__(self):
        from .gpuarray import to_gpu  # which imports this file
        return to_gpu, (self.get(),)

    def bind_to_texref(self, *args, **kwargs):
        """Raise: there are no textures.

        Parameters
        ----------
        *args : object
            Not used.
        **kwargs : object
            Not used.

        Raises
        ------
        LogicError
            Always.
        """
        raise LogicError(TEXTURES)

    bind_to_texref_ext = bind_to_texref

    # ---- to and from the host

    def _fetch(self, stream=None, pagelocked=False):
        """The memory of the elements, as a host array of the same layout."""
        nbytes, first = self._form.span
        raw = driver.pagelocked_empty(nbytes, np.uint8) if pagelocked or stream is not None else np.empty(nbytes, np.uint8)
        if nbytes:
            driver.memcpy_dtoh_async(raw, self.ptr - first, stream) if stream is not None else \
                driver.memcpy_dtoh(raw, self.ptr - first)
        return raw, np.ndarray(self.shape, self.dtype, raw, first, self.strides)

    def _shaped(self, ary, category):
        """An array of the host, in the shape of this one: with a warning, as PyCUDA's, if it has another."""
        if ary is None:
            return None
        if ary.size != self.size or ary.dtype != self.dtype:
            raise ValueError(f"ary has shape {ary.shape} and dtype {ary.dtype}, expected {self.shape} and {self.dtype}")
        if ary.shape == self.shape:
            return ary
        warnings.warn(f"ary has shape {ary.shape}, the array on the device {self.shape}: reshape ary", category, stacklevel=3)
        shaped = ary.reshape(self.shape)
        if category is DeprecationWarning and self.size and not np.may_share_memory(shaped, ary):
            raise ValueError(f"ary of shape {ary.shape} and strides {ary.strides} cannot receive {self.shape}: make it contiguous")
        return shaped

    def get(self, ary=None, pagelocked=False, async_=None, stream=None):
        """Copy the elements to the host.

        Parameters
        ----------
        ary : ndarray, optional
            Array of the same size and dtype that receives the elements. None makes a new one.
        pagelocked : bool, default False
            Whether a new array is in page-locked memory.
        async_ : bool, optional
            Whether to call `get_async`.
        stream : Stream, optional
            The stream, with ``async_=True``.

        Returns
        -------
        ndarray
            The elements, with strides in the same order.

        Examples
        --------
        >>> gpuarray.arange(3).get()
        array([0, 1, 2])
        """
        ary = self._shaped(ary, DeprecationWarning)
        if async_:
            return self.get_async(stream, ary)
        raw, fetched = self._fetch(None, pagelocked)
        if ary is not None:
            ary[...] = fetched
            return ary
        return fetched if self.flags.forc else fetched.copy(order="K")

    def get_async(self, stream=None, ary=None):
        """Queue a copy of the elements to the host.

        Parameters
        ----------
        stream : Stream, optional
            The stream. None is the current one.
        ary : ndarray, optional
            Array of the same size and dtype. None makes a new one in page-locked memory.

        Returns
        -------
        ndarray
            Synchronise the stream before you read it.

        Notes
        -----
        The call waits where the layout requires an intermediate copy.

        Examples
        --------
        >>> stream = drv.Stream()
        >>> host = gpuarray.arange(3).get_async(stream)
        >>> stream.synchronize()
        >>> host
        array([0, 1, 2])
        """
        ary = self._shaped(ary, DeprecationWarning)
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
        """Copy from an array of the host.

        Parameters
        ----------
        ary : ndarray
            Source of the same size and dtype.
        async_ : bool, default False
            Whether the call may return before a page-locked source was read.
        stream : Stream, optional
            The stream, with ``async_=True``.

        Raises
        ------
        ValueError
            If size or dtype differ.

        Examples
        --------
        >>> a = gpuarray.empty(3)
        >>> a.set(np.arange(3.0))
        >>> a.get()
        array([0., 1., 2.])
        """
        ary = self._shaped(np.asarray(ary), UserWarning)
        if not self.size:
            return
        if self.flags.forc and ary.strides == self.strides:
            driver.memcpy_htod_async(self.gpudata, ary, stream) if async_ else driver.memcpy_htod(self.gpudata, ary)
            return
        raw, there = self._fetch()
        there[...] = ary
        driver.memcpy_htod(self.ptr - self._form.span[1], raw)

    def set_async(self, ary, stream=None):
        """Queue a copy from an array of the host.

        Parameters
        ----------
        ary : ndarray
            Source of the same size and dtype.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        None
            Nothing.

        Examples
        --------
        >>> gpuarray.empty(3).set_async(np.arange(3.0))
        """
        return self.set(ary, async_=True, stream=stream)

    # ---- on the device

    @translated
    def copy(self, stream=None):
        """Copy the array on the device.

        Parameters
        ----------
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            A new array.

        Raises
        ------
        MemoryError
            If the device has not enough memory.

        Examples
        --------
        >>> gpuarray.arange(3).copy().get()
        array([0, 1, 2])
        """
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
        """Set every element to value.

        Parameters
        ----------
        value : scalar
            The value.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            The array itself.

        Raises
        ------
        TypeError
            If the value is more than one.

        Examples
        --------
        >>> gpuarray.empty(3).fill(7).get()
        array([7., 7., 7.])
        """
        pattern = np.array(value, self.dtype)
        if pattern.ndim:
            raise TypeError(f"expected one value, got {pattern.size}: assign a NumPy array instead")
        if self.flags.forc and self.size:
            buffer, offset = _memory.locate(self.gpudata, self.nbytes)
            _core._fill_bytes(buffer, offset, pattern.tobytes(), self.size, _memory._stream(stream))
        elif self.size:
            self.set(np.broadcast_to(pattern, self.shape))
        return self

    # ---- views

    def _view(self, phantom):
        offset = phantom.__array_interface__["data"][0] - self._form.origin
        new = object.__new__(GPUArray)
        new.__dict__.update(form_like(phantom).attributes)
        new.allocator, new.base = self.allocator, self.base if self.base is not None else self
        new.gpudata = self.gpudata if not offset else _Place(self.gpudata, self.ptr + offset)
        return new

    def __getitem__(self, index):
        index = np_tuple(index)
        if builtins.any(isinstance(i, (list, np.ndarray, GPUArray)) for i in index):
            raise NotImplementedError("indexing by an array: use pycuda.gpuarray.take(array, indices), or array.get() and NumPy")
        for entry in index:  # for other indices NumPy would copy the phantom and read invalid memory
            if not _is_basic(entry):
                raise IndexError(f"invalid subindex {entry!r}: expected an integer, a slice, None or ...")
        if not builtins.any(i is Ellipsis for i in index):
            index += (Ellipsis,)  # a view, not a scalar, also where no axis is left
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
        """Give the elements another shape.

        Parameters
        ----------
        *shape : int or sequence of int
            The new shape; one length may be -1.
        order : {'C', 'F', 'A'}, default 'C'
            Order in which the elements are placed.

        Returns
        -------
        GPUArray
            A view.

        Raises
        ------
        RuntimeError
            If the array is not contiguous.

        Examples
        --------
        >>> gpuarray.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        if not self.flags.forc:
            raise RuntimeError("only contiguous arrays may be used as arguments to this operation")
        shape = np.broadcast_to(np.int8(0), self.shape).reshape(shape).shape  # -1, and whether it fits
        if order == "A":
            order = "F" if self.flags.f_contiguous and not self.flags.c_contiguous else "C"
        return self._view_as(shape, strides_for(shape, self.dtype, order))

    def _view_as(self, shape, strides, dtype=None):
        new = GPUArray(shape, dtype or self.dtype, self.allocator, base=self.base if self.base is not None else self,
                       gpudata=self.gpudata if self.gpudata is not None else 0, strides=strides)
        new.gpudata = self.gpudata
        return new

    def ravel(self):
        """Return the elements in one dimension.

        Returns
        -------
        GPUArray
            A view; the array must be contiguous.

        Examples
        --------
        >>> gpuarray.zeros((2, 3)).ravel().shape
        (6,)
        """
        return self.reshape(self.size)

    def view(self, dtype=None):
        """Read the same bytes as another type; the last axis changes its length.

        Parameters
        ----------
        dtype : dtype, optional
            Type of the elements. None is the same type.

        Returns
        -------
        GPUArray
            A view.

        Raises
        ------
        ValueError
            If the bytes are not a whole number of elements, or the array is not contiguous.

        Examples
        --------
        >>> gpuarray.zeros(3, np.int64).view(np.int32).shape
        (6,)
        """
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
        return self._view_as(shape, strides_for(shape, dtype, "F" if fortran else "C"), dtype)

    def squeeze(self):
        """Remove axes of length one.

        Returns
        -------
        GPUArray
            A view.

        Examples
        --------
        >>> gpuarray.zeros((1, 3)).squeeze().shape
        (3,)
        """
        return self._view(self._layout.squeeze())

    def transpose(self, axes=None):
        """Permute the axes.

        Parameters
        ----------
        axes : sequence of int, optional
            The old axis of each new one. None reverses them.

        Returns
        -------
        GPUArray
            A view.

        Examples
        --------
        >>> gpuarray.zeros((2, 3)).transpose().shape
        (3, 2)
        """
        return self._view(self._layout.transpose(axes))

    T = property(transpose, doc="A view with its axes reversed.")


class _Place(driver.PointerHolderBase):
    """An address within memory that it keeps alive."""

    def __init__(self, inside, address):
        self._inside, self._address = inside, address

    def get_pointer(self):
        return self._address


def np_tuple(index):
    return index if isinstance(index, tuple) else (index,)
