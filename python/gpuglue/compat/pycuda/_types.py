"""Names of types in CUDA C++, and their dtypes."""

import re

import numpy as np

from ._vectors import vec

# Of several names of a type the first is that of the dtype.
_NAMES = {
    "bool": "?", "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "int": "i4",
    "unsigned int": "u4", "long long": "i8", "unsigned long long": "u8", "float": "f4", "double": "f8",
    "pycuda::complex<float>": "c8", "pycuda::complex<double>": "c16",
    "char": "i1", "unsigned": "u4", "long": "i8", "unsigned long": "u8", "size_t": "u8",
    **{f"{kind}{bits}_t": f"{kind[0]}{bits // 8}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{name: kind for name, kind in vars(vec).items() if not re.match("make_|long|ulong", name)}}
_dtypes = {name: np.dtype(kind) for name, kind in _NAMES.items()}


def dtype_of(name):
    """The dtype of a name, or None."""
    return _dtypes.get(name)


def dtype_to_ctype(dtype):
    """Return the CUDA C++ name of a dtype.

    Parameters
    ----------
    dtype : dtype
        Type of NumPy; a structured one must be that of a vector, or be registered.

    Returns
    -------
    str
        Such as 'unsigned int'.

    Raises
    ------
    ValueError
        If CUDA C++ has no such type.

    Examples
    --------
    >>> tools.dtype_to_ctype(np.uint32)
    'unsigned int'
    """
    dtype = np.dtype(dtype)
    name = next((name for name, known in _dtypes.items() if known == dtype), None)
    if name is None:
        raise ValueError(f"unable to map dtype {dtype!r}: register_dtype() gives it the name of a struct")
    return name


def get_or_register_dtype(c_names, dtype=None):
    """Give a dtype the name of a type in C, by which generated kernels know it.

    Parameters
    ----------
    c_names : str or sequence of str
        The name, or several.
    dtype : dtype, optional
        Type of NumPy, such as that of a struct. None is the one that has the name.

    Returns
    -------
    numpy.dtype
        The dtype.

    Raises
    ------
    KeyError
        If no dtype has the name, and none is given.
    RuntimeError
        If the name is that of another dtype.

    Examples
    --------
    >>> pair = tools.get_or_register_dtype("pair", [("first", "i4"), ("second", "i4")])
    >>> tools.dtype_to_ctype(pair)
    'pair'
    """
    names = [c_names] if isinstance(c_names, str) else list(c_names)
    dtype = np.dtype(dtype if dtype is not None else _dtypes[names[0]])
    for name in names:
        if _dtypes.setdefault(name, dtype) != dtype:
            raise RuntimeError(f"{name!r} is the name of {_dtypes[name]}, not of {dtype}: give the struct another name")
    return dtype


def register_dtype(dtype, name):
    """Give a dtype the name of a type in C: `get_or_register_dtype` of older programs.

    Parameters
    ----------
    dtype : dtype
        Type of NumPy.
    name : str or sequence of str
        The name, or several.

    Raises
    ------
    RuntimeError
        If the name is that of another dtype.

    Examples
    --------
    >>> tools.register_dtype(np.dtype([("low", "f4"), ("high", "f4")]), "interval")
    """
    get_or_register_dtype(name, dtype)
