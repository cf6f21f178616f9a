"""Arguments of generated kernels as objects."""

import re

import numpy as np

from ._errors import LogicError
from ._types import dtype_of, dtype_to_ctype

_QUALIFIERS = re.compile(r"\b(const|volatile|restrict|__restrict|__restrict__)\b")


def parts_of(declaration):
    """(name of the type, whether it is a pointer, name) of an argument in C."""
    found = re.fullmatch(r"(.+?)([\s*]+)(\w+)", _QUALIFIERS.sub(" ", declaration.strip()))
    if not found:
        raise LogicError(f"expected an argument in C, as 'float *x', got {declaration!r}")
    kind, stars, name = found.groups()
    return " ".join(kind.split()), "*" in stars, name


class _DtypedArgument:
    def __init__(self, dtype, name):
        self.dtype, self.name = np.dtype(dtype), name

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.dtype})"


class VectorArg(_DtypedArgument):
    """An array among the arguments of a generated kernel: ElementwiseKernel and ReductionKernel take a list of arguments.

    Parameters
    ----------
    dtype : dtype
        Type of the elements.
    name : str
        Name of the argument.

    Examples
    --------
    >>> tools.VectorArg(np.float32, "x").declarator()
    'float *x'
    """

    struct_char = "P"

    def declarator(self):
        """Return the argument as in C.

        Returns
        -------
        str
            Such as 'float *x'.

        Raises
        ------
        ValueError
            If CUDA C++ has no such type.
        """
        return f"{dtype_to_ctype(self.dtype)} *{self.name}"


class ScalarArg(_DtypedArgument):
    """A number or a struct among the arguments of a generated kernel.

    Parameters
    ----------
    dtype : dtype
        Its type.
    name : str
        Name of the argument.

    Examples
    --------
    >>> tools.ScalarArg(np.int32, "count").declarator()
    'int count'
    """

    struct_char = property(lambda self: self.dtype.char, doc="Code of the struct module, as `prepare` takes it.")

    def declarator(self):
        """Return the argument as in C.

        Returns
        -------
        str
            Such as 'int count'.

        Raises
        ------
        ValueError
            If CUDA C++ has no such type.
        """
        return f"{dtype_to_ctype(self.dtype)} {self.name}"


def parse_c_arg(c_arg):
    """Return what an argument in C is.

    Parameters
    ----------
    c_arg : str
        Such as 'const float *x'.

    Returns
    -------
    VectorArg or ScalarArg
        Its type, without qualifiers, and its name.

    Raises
    ------
    LogicError
        If it is not an argument in C.
    ValueError
        If its type is not known: register_dtype() gives a struct a dtype.

    Examples
    --------
    >>> tools.parse_c_arg("const float *x")
    VectorArg('x', float32)
    """
    kind, is_vector, name = parts_of(c_arg)
    dtype = dtype_of(kind)
    if dtype is None:
        raise ValueError(f"unknown type {kind!r} in {c_arg!r}: register_dtype() gives a struct a dtype")
    return (VectorArg if is_vector else ScalarArg)(dtype, name)
