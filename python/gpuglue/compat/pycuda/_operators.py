"""Arithmetic of GPUArray: the operators, and the methods that compute. See _compute for what computes."""

import numpy as np

from . import _compute


_NUMBERS = (float, int, complex, np.generic)


def _binary(name, swapped=False, in_place=False):
    def operator(self, other):
        if not (hasattr(other, "gpudata") or isinstance(other, _NUMBERS)):
            if not isinstance(other, np.ndarray) or other.ndim:
                if isinstance(other, np.ndarray) and name not in ("equal", "not_equal"):
                    _compute.check(self, other)
                return NotImplemented
            other = other[()]
        if swapped:
            return _compute.elementwise(name, other, self)
        return _compute.elementwise(name, self, other, out=self if in_place else None)
    return operator


class Operators:
    """The base of GPUArray that computes."""

    __add__, __radd__, __iadd__ = _binary("add"), _binary("add", True), _binary("add", in_place=True)
    __sub__, __rsub__, __isub__ = _binary("subtract"), _binary("subtract", True), _binary("subtract", in_place=True)
    __mul__, __rmul__, __imul__ = _binary("multiply"), _binary("multiply", True), _binary("multiply", in_place=True)
    __truediv__, __rtruediv__ = _binary("true_divide"), _binary("true_divide", True)
    __itruediv__ = _binary("true_divide", in_place=True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", True)
    __ifloordiv__ = _binary("floor_divide", in_place=True)
    __mod__, __rmod__, __imod__ = _binary("remainder"), _binary("remainder", True), _binary("remainder", in_place=True)
    __pow__, __rpow__, __ipow__ = _binary("power"), _binary("power", True), _binary("power", in_place=True)
    __and__, __rand__, __iand__ = _binary("bitwise_and"), _binary("bitwise_and", True), _binary("bitwise_and", in_place=True)
    __or__, __ror__, __ior__ = _binary("bitwise_or"), _binary("bitwise_or", True), _binary("bitwise_or", in_place=True)
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor"), _binary("bitwise_xor", True), _binary("bitwise_xor", in_place=True)
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __lt__, __le__, __gt__, __ge__ = _binary("less"), _binary("less_equal"), _binary("greater"), _binary("greater_equal")
    __hash__ = None  # type: ignore

    def __neg__(self):
        return _compute.elementwise("negative", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return _compute.elementwise("absolute", self)

    def mul_add(self, selffac, other, otherfac, add_timer=None, stream=None, out=None):
        """Compute ``selffac * self + otherfac * other``.

        Parameters
        ----------
        selffac : number
            Factor of the array.
        other : GPUArray
            The other array.
        otherfac : number
            Factor of the other array.
        add_timer : function, optional
            Not used.
        stream : Stream, optional
            The stream. None is the current one.
        out : GPUArray, optional
            Array for the result. None makes a new one.

        Returns
        -------
        GPUArray
            The result.

        Examples
        --------
        >>> # host only: elsewhere CuPy or the vendor's compiler is needed
        >>> gpuarray.arange(3).mul_add(2, gpuarray.ones(3, int), 1).get()
        array([1, 3, 5])
        """
        scaled = _compute.elementwise("multiply", other, otherfac, stream=stream)
        return _compute.elementwise("add", _compute.elementwise("multiply", self, selffac, stream=stream), scaled, stream=stream,
                                    out=out)

    def any(self, stream=None, allocator=None):
        """Return whether an element is not zero.

        Parameters
        ----------
        stream : Stream, optional
            The stream. None is the current one.
        allocator : function, optional
            Called with a number of bytes; returns the memory.

        Returns
        -------
        GPUArray
            A bool, without dimensions.

        Examples
        --------
        >>> # host only: elsewhere CuPy or the vendor's compiler is needed
        >>> bool(gpuarray.arange(3).any())
        True
        """
        from . import _reductions

        return _reductions.any(self, stream, allocator)

    def all(self, stream=None, allocator=None):
        """Return whether no element is zero.

        Parameters
        ----------
        stream : Stream, optional
            The stream. None is the current one.
        allocator : function, optional
            Called with a number of bytes; returns the memory.

        Returns
        -------
        GPUArray
            A bool, without dimensions.

        Examples
        --------
        >>> # host only: elsewhere CuPy or the vendor's compiler is needed
        >>> bool(gpuarray.arange(3).all())
        False
        """
        from . import _reductions

        return _reductions.all(self, stream, allocator)

    # ---- conversions: by way of the host where no library computes

    def _convert(self, function, dtype, stream=None):
        """A new array of `function`, which takes an array of NumPy or CuPy and returns one of the same shape."""
        new, chosen = _compute.new([self], np.dtype(dtype)), _compute.library()
        if not self.size:
            return new
        if chosen is None:
            if stream is not None:
                stream.synchronize()
            new.set(np.asarray(function(self.get()), dtype, order="F" if not new.flags.c_contiguous else "C"))
            return new
        with chosen.views([new, self], stream) as (target, view):
            target[...] = function(view)
        return new

    def astype(self, dtype, stream=None):
        """Convert the elements to another type.

        Parameters
        ----------
        dtype : dtype
            Type of the result.
        stream : Stream, optional
            The stream. None is the current one.

        Returns
        -------
        GPUArray
            A new array.

        Examples
        --------
        >>> gpuarray.arange(3).astype(np.float32).get()
        array([0., 1., 2.], dtype=float32)
        """
        return self._convert(lambda view: view.astype(dtype), np.dtype(dtype), stream)

    def reverse(self, stream=None):
        """Return the elements in reverse order.

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
        ValueError
            If the array has not one dimension.

        Examples
        --------
        >>> gpuarray.arange(3).reverse().get()
        array([2, 1, 0])
        """
        if len(self.shape) != 1:
            raise ValueError(f"reverse() is of arrays of one dimension, this one has the shape {self.shape}")
        return self._convert(lambda view: view[::-1], self.dtype, stream)

    def _part_dtype(self):
        return np.empty(0, self.dtype).real.dtype

    @property
    def real(self):
        """The real parts: a new array, or the array itself if it is real."""
        return self if self.dtype.kind != "c" else self._convert(lambda view: view.real, self._part_dtype())

    @property
    def imag(self):
        """The imaginary parts, a new array."""
        return self._convert(lambda view: view.imag, self._part_dtype())

    def conj(self, out=None):
        """Return the complex conjugates.

        Parameters
        ----------
        out : GPUArray, optional
            Array for the result. None makes a new one.

        Returns
        -------
        GPUArray
            The result; the array itself if it is real and there is no `out`.

        Examples
        --------
        >>> # host only: elsewhere CuPy is needed
        >>> gpuarray.to_gpu(np.array([1 + 2j])).conj().get()
        array([1.-2.j])
        """
        if self.dtype.kind != "c" and out is None:
            return self
        return _compute.elementwise("conjugate", self, out=out)

    conjugate = conj
