"""The functions of gpuarray that compute for each element. See _compute for what computes."""

import numpy as np

from . import _compute


def maximum(a, b, out=None, stream=None):
    """Return the greater of two elements, for each element.

    Parameters
    ----------
    a, b : GPUArray or number
        The operands, one of them an array.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The result. As in NumPy, NaN is greater.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.maximum(gpuarray.arange(4), 2).get()
    array([2, 2, 2, 3])
    """
    return _compute.elementwise("maximum", a, b, out=out, stream=stream)


def minimum(a, b, out=None, stream=None):
    """Return the lesser of two elements, for each element.

    Parameters
    ----------
    a, b : GPUArray or number
        The operands, one of them an array.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The result. As in NumPy, NaN is lesser.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.minimum(gpuarray.arange(4), 2).get()
    array([0, 1, 2, 2])
    """
    return _compute.elementwise("minimum", a, b, out=out, stream=stream)


def _choose(condition, criterion, then_, else_, out, stream):
    args = (criterion, then_, else_)
    _compute.check(criterion)
    _compute.check(*args)
    dtype = np.result_type(*(one.dtype if _compute.is_array(one) else one for one in args[1:]))
    out = _compute.checked(out, args, dtype) if out is not None else _compute.new(args, dtype)
    if not out.size:
        return out
    run = _compute.by_kernels("prepared", f"a {condition} 0 ? b : c", args, [criterion.dtype, dtype, dtype], out._form)
    if run:
        run(out, args, stream)
        return out
    chosen = _compute.library()
    with chosen.views([out, *args], stream) as (target, a, b, c):
        target[...] = chosen.module.where(a > 0 if condition == ">" else a != 0, b, c)
    return out


def if_positive(criterion, then_, else_, out=None, stream=None):
    """Choose each element from one of two arrays, by the sign of a third.

    Parameters
    ----------
    criterion : GPUArray
        Where it is greater than zero, the result is of `then_`.
    then_, else_ : GPUArray or number
        What to choose from.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The result.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.if_positive(gpuarray.arange(-1, 2), gpuarray.arange(3), gpuarray.zeros(3, int)).get()
    array([0, 0, 2])
    """
    return _choose(">", criterion, then_, else_, out, stream)


def where(criterion, then_, else_, out=None, stream=None):
    """Choose each element from one of two arrays, by a third.

    Parameters
    ----------
    criterion : GPUArray
        Where it is not zero, the result is of `then_`.
    then_, else_ : GPUArray or number
        What to choose from.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The result.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.where(gpuarray.arange(3), gpuarray.arange(3), -1).get()
    array([-1,  1,  2])
    """
    return _choose("!=", criterion, then_, else_, out, stream)


def take(a, indices, out=None, stream=None):
    """Return the elements at some indices.

    Parameters
    ----------
    a : GPUArray
        The array, as if it had one dimension.
    indices : GPUArray
        The indices, integers from 0 on, in any shape.
    out : GPUArray, optional
        Array for the result, of the shape of the indices. None makes a new one.
    stream : Stream, optional
        The stream. None is the current one.

    Returns
    -------
    GPUArray
        The elements.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.take(gpuarray.arange(0, 50, 10), gpuarray.to_gpu(np.array([3, 1]))).get()
    array([30, 10])
    """
    for one in (a, indices):
        _compute.check(one)
    out = _compute.checked(out, [indices], a.dtype) if out is not None else _compute.new([indices], a.dtype)
    if not out.size:
        return out
    run = _compute.by_kernels("take", a, indices)
    if run:
        run(out, a, indices, stream=stream)
        return out
    with _compute.library().views([out, a, indices], stream) as (target, view, chosen_elements):
        target[...] = view.reshape(-1)[chosen_elements]
    return out


def _logical(name, args, out, allocator):
    if not [one for one in args if _compute.is_array(one)]:
        from .gpuarray import empty

        out = out if out is not None else empty((), bool, *([allocator] if allocator else []))
        return out.fill(getattr(np, name)(*args))
    return _compute.elementwise(name, *args, out=out, allocator=allocator)


def logical_and(x1, x2, /, out=None, *, allocator=None):
    """Return whether two elements are not zero, for each element.

    Parameters
    ----------
    x1, x2 : GPUArray or number
        The operands.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        Elements of bool.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.logical_and(gpuarray.arange(3), 1).get()
    array([False,  True,  True])
    """
    return _logical("logical_and", (x1, x2), out, allocator)


def logical_or(x1, x2, /, out=None, *, allocator=None):
    """Return whether one of two elements is not zero, for each element.

    Parameters
    ----------
    x1, x2 : GPUArray or number
        The operands.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        Elements of bool.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.logical_or(gpuarray.arange(3), 0).get()
    array([False,  True,  True])
    """
    return _logical("logical_or", (x1, x2), out, allocator)


def logical_not(x, /, out=None, *, allocator=None):
    """Return whether an element is zero, for each element.

    Parameters
    ----------
    x : GPUArray or number
        The operand.
    out : GPUArray, optional
        Array for the result. None makes a new one.
    allocator : function, optional
        Called with a number of bytes; returns the memory.

    Returns
    -------
    GPUArray
        Elements of bool.

    Examples
    --------
    >>> # host only: elsewhere CuPy or the vendor's compiler is needed
    >>> gpuarray.logical_not(gpuarray.arange(3)).get()
    array([ True, False, False])
    """
    return _logical("logical_not", (x,), out, allocator)


def transpose(a, axes=None):
    """Permute the axes of an array.

    Parameters
    ----------
    a : GPUArray
        The array.
    axes : sequence of int, optional
        The old axis of each new one. None reverses them.

    Returns
    -------
    GPUArray
        A view.

    Examples
    --------
    >>> gpuarray.transpose(gpuarray.zeros((2, 3))).shape
    (3, 2)
    """
    return a.transpose(axes)
