"""The functions of gpuarray that combine elements. See _compute for what computes."""

import numpy as np

import gpuglue

from . import _compute
from ._array import GPUArray
from ._layouts import form_of


def _reduce(name, arrays, dtype, stream, allocator, subset=None):
    """Combine all elements, or those that `subset` names, to one. The type None is the common one of the arrays."""
    try:
        key = (name, dtype, gpuglue.current_device(), subset if subset is None else subset._form, *[one._form for one in arrays])
    except AttributeError:
        for one in arrays if subset is None else (*arrays, subset):
            _compute.check(one)
        raise
    form, run = _compute._plans.get(key) or _compute.keep(key, _planned(name, arrays, dtype, subset))
    out = GPUArray._of_form(form, allocator or arrays[0].allocator)
    run(out, arrays, subset, stream)
    return out


def _planned(name, arrays, dtype, subset):
    """(Form of the result, function of (out, arrays, subset, stream))."""
    dtype = np.dtype(dtype or np.result_type(*(one.dtype for one in arrays)))
    if not (arrays[0] if subset is None else subset).size and name in ("min", "max"):
        raise ValueError(f"{name} of no elements")

    def run(out, arrays, subset, stream):
        chosen = _compute.library()
        with chosen.views([out, subset, *arrays], stream) as (target, chosen_elements, *views):
            if chosen_elements is not None:
                views = [view.reshape(-1)[chosen_elements] for view in views]
            target[...] = _of_library(chosen.module, name, dtype, *views)

    return form_of((), dtype), _compute.by_kernels("reduction", name, dtype, arrays, subset) or run


def _of_library(module, name, dtype, x, y=None):
    if name == "dot":
        return module.dot(*(one.reshape(-1).astype(dtype, copy=False) for one in (x, y)))
    return module.sum(x, dtype=dtype) if name == "sum" else getattr(module, name)(x)


def sum(a, dtype=None, stream=None, allocator=None):  # noqa: A001
    """Add all elements.

    Parameters
    ----------
    a : GPUArray
        The array.
    dtype : dtype, optional
        Type of the sum. None is that of the array.
    stream : Stream, optional
        The stream. None is the current one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        The sum, without dimensions.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.sum(gpuarray.arange(5)).get())
    10
    """
    return _reduce("sum", [a], dtype, stream, allocator)


def any(a, stream=None, allocator=None):  # noqa: A001
    """Return whether an element is not zero.

    Parameters
    ----------
    a : GPUArray
        The array.
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
    >>> bool(gpuarray.any(gpuarray.zeros(3)))
    False
    """
    return _reduce("any", [a], bool, stream, allocator)


def all(a, stream=None, allocator=None):  # noqa: A001
    """Return whether no element is zero.

    Parameters
    ----------
    a : GPUArray
        The array.
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
    >>> bool(gpuarray.all(gpuarray.ones(3)))
    True
    """
    return _reduce("all", [a], bool, stream, allocator)


def max(a, stream=None):  # noqa: A001
    """Return the greatest element.

    Parameters
    ----------
    a : GPUArray
        The array.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The element, without dimensions.

    Raises
    ------
    ValueError
        If there is no element.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.max(gpuarray.arange(5)).get())
    4
    """
    return _reduce("max", [a], None, stream, None)


def min(a, stream=None):  # noqa: A001
    """Return the least element.

    Parameters
    ----------
    a : GPUArray
        The array.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The element, without dimensions.

    Raises
    ------
    ValueError
        If there is no element.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.min(gpuarray.arange(5)).get())
    0
    """
    return _reduce("min", [a], None, stream, None)


def dot(a, b, dtype=None, stream=None, allocator=None):
    """Add the products of the elements of two arrays.

    Parameters
    ----------
    a, b : GPUArray
        Arrays of one size. Their shape plays no role.
    dtype : dtype, optional
        Type of the sum. None is the common type of both.
    stream : Stream, optional
        The stream. None is the current one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        The sum, without dimensions.

    Raises
    ------
    ValueError
        If the sizes differ.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.dot(gpuarray.arange(4), gpuarray.arange(4)).get())
    14
    """
    if a.size != b.size:
        raise ValueError(f"dot of {a.size} and {b.size} elements: expected one size")
    return _reduce("dot", [a, b], dtype, stream, allocator)


def subset_sum(subset, a, dtype=None, stream=None, allocator=None):
    """Add the elements at some indices.

    Parameters
    ----------
    subset : GPUArray
        The indices, integers.
    a : GPUArray
        The array, as if it had one dimension.
    dtype : dtype, optional
        Type of the sum. None is that of the array.
    stream : Stream, optional
        The stream. None is the current one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        The sum, without dimensions.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.subset_sum(gpuarray.to_gpu(np.array([1, 3])), gpuarray.arange(5)).get())
    4
    """
    return _reduce("sum", [a], dtype, stream, allocator, subset)


def subset_dot(subset, a, b, dtype=None, stream=None, allocator=None):
    """Add the products of the elements at some indices.

    Parameters
    ----------
    subset : GPUArray
        The indices, integers.
    a, b : GPUArray
        The arrays, as if they had one dimension.
    dtype : dtype, optional
        Type of the sum. None is the common type of both.
    stream : Stream, optional
        The stream. None is the current one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        The sum, without dimensions.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> x = gpuarray.arange(5)
    >>> int(gpuarray.subset_dot(gpuarray.to_gpu(np.array([1, 3])), x, x).get())
    10
    """
    return _reduce("dot", [a, b], dtype, stream, allocator, subset)


def subset_max(subset, a, stream=None):
    """Return the greatest of the elements at some indices.

    Parameters
    ----------
    subset : GPUArray
        The indices, integers.
    a : GPUArray
        The array, as if it had one dimension.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The element, without dimensions.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.subset_max(gpuarray.to_gpu(np.array([1, 3])), gpuarray.arange(5)).get())
    3
    """
    return _reduce("max", [a], None, stream, None, subset)


def subset_min(subset, a, stream=None):
    """Return the least of the elements at some indices.

    Parameters
    ----------
    subset : GPUArray
        The indices, integers.
    a : GPUArray
        The array, as if it had one dimension.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The element, without dimensions.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> int(gpuarray.subset_min(gpuarray.to_gpu(np.array([1, 3])), gpuarray.arange(5)).get())
    1
    """
    return _reduce("min", [a], None, stream, None, subset)
