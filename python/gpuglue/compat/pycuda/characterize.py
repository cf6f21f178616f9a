"""pycuda.characterize: what the device and the compiler have."""

import numpy as np

from .tools import context_dependent_memoize


def platform_bits():
    """Return the size of an address of the host.

    Returns
    -------
    int
        64: gpuglue runs on such platforms only.

    Examples
    --------
    >>> characterize.platform_bits()
    64
    """
    return 64


def has_stack():
    """Return whether kernels can call functions.

    Returns
    -------
    bool
        True: devices without are too old for gpuglue's backends.

    Examples
    --------
    >>> characterize.has_stack()
    True
    """
    return True


def has_double_support():
    """Return whether kernels have numbers of double precision.

    Returns
    -------
    bool
        True: devices without are too old for gpuglue's backends.

    Examples
    --------
    >>> characterize.has_double_support()
    True
    """
    return True


@context_dependent_memoize
def sizeof(type_name, preamble=""):
    """Return the size of a type of device code.

    Parameters
    ----------
    type_name : str
        The type.
    preamble : str, default ''
        Source that declares it.

    Returns
    -------
    int
        Size in bytes. It is compiled once for each context.

    Raises
    ------
    driver.CompileError
        If there is no such type.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> characterize.sizeof("struct pair", "struct pair { double first; char second; };")
    16
    """
    from . import driver
    from .compiler import SourceModule

    size = np.zeros(1, np.uint64)
    source = f'{preamble}\nextern "C" __global__ void size_of_type(unsigned long long *size) {{ *size = sizeof({type_name}); }}'
    SourceModule(source, no_extern_c=True).get_function("size_of_type")(driver.Out(size), block=(1, 1, 1))
    return int(size[0])
