"""What generated kernels share: arguments in C, sizes of launches, and a module for each device."""

import gpuglue

from ._declarations import parts_of
from ._types import dtype_of
from .compiler import SourceModule

BLOCK = 256
_COMPLEX = "#include <pycuda-complex.hpp>\n"  # gpuglue's, or that of a copy of PyCUDA: see compiler.compile


class Argument:
    """One argument of a list in C: its declaration, and how a value becomes one."""

    def __init__(self, declaration):
        self.declaration = declaration.strip()
        kind, self.is_vector, self.name = parts_of(self.declaration)
        self._dtype = dtype_of(kind)

    def value(self, given):
        """The value as a Function takes it."""
        if self.is_vector:
            if getattr(given, "flags", None) is not None and not given.flags.forc:
                raise RuntimeError(f"{self.name}: generated kernels take contiguous arrays: copy the array first")
            return given
        if self._dtype is None or self._dtype.names:  # a struct, as bytes
            return given
        return self._dtype.type(given)


def arguments_of(text):
    """The list of Arguments that a program wrote as in C, or as a list of VectorArg and ScalarArg."""
    declarations = text.split(",") if isinstance(text, str) else [one.declarator() for one in text]
    return [Argument(one) for one in declarations]


def values_of(arguments, given):
    """(values, the first array) of a call."""
    if len(given) != len(arguments):
        raise TypeError(f"expected {len(arguments)} arguments ({', '.join(one.name for one in arguments)}), got {len(given)}")
    first = next((value for one, value in zip(arguments, given) if one.is_vector), None)
    if first is None:
        raise TypeError("expected an array among the arguments: its size is the number of elements")
    return [one.value(value) for one, value in zip(arguments, given)], first


_most_blocks: dict = {}


def blocks_for(count):
    """Number of blocks of a loop over so many elements."""
    device = gpuglue.current_device()
    if device not in _most_blocks:  # a driver takes long for all attributes, longer than for a launch
        _most_blocks[device] = 16 * device.attributes.get("multiprocessors", 64)
    return max(min(-(-count // BLOCK), _most_blocks[device]), 1)


class Kernels:
    """The kernels of a source for each device, compiled at the first call on it."""

    def __init__(self, source, names, keep, options):
        source = _COMPLEX * ("complex" in source) + source
        self._source, self._names, self._keep, self._options, self._functions = source, names, keep, options, {}

    def current(self):
        """The Functions for the current device."""
        device = gpuglue.current_device()
        if device not in self._functions:
            module = SourceModule(self._source, options=self._options, keep=self._keep, no_extern_c=True)
            self._functions[device] = [module.get_function(name) for name in self._names]
        return self._functions[device]
