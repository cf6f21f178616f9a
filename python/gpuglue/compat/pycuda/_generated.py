"""What generated kernels share: arguments in C, sizes of launches, and kernels for each device."""

import re
import sys

import numpy as np

import gpuglue

from . import compiler
from ._array import GPUArray
from ._declarations import parts_of
from ._errors import of
from ._function import Function
from ._memory import _stream, argument_of
from ._types import dtype_of
from .driver import Module

BLOCK = 256
COUNTS = 4 * [np.dtype(np.int64)]  # the last arguments: the number of elements, and start, stop and step of those that take part
_COMPLEX = "#include <pycuda-complex.hpp>\n"  # gpuglue's, or that of a copy of PyCUDA: see compiler.compile


_ANY = sys.maxsize  # for arrays that may have any size
_EXACT = 2.0**53  # integers up to it are exact as float64


def number_of(dtype):
    """The function that makes a number of that type of a value: a Python number if a kernel takes it as the same one, which is faster."""
    if dtype == np.float64:
        return float
    make = dtype.type
    if dtype != np.float32:
        return make

    def single(value):
        kind = type(value)
        return float(value) if (kind is float or kind is int) and -_EXACT <= value <= _EXACT else make(value)

    return single


# Where x[i] may not be reached, beside macros: a preamble and the options of a compiler may define them.
_MACRO = re.compile(r"(?:#\s*define\s+|(?:^|\s)(?:-D|--define-macro)[\s=]*)(\w+)")
_ANY_MACRO = re.compile(r"#\s*(?!define\b)\w|(?:^|\s)--?(pre-)?include\b")
_CONDITIONAL = re.compile(r"\b(if|for|while|do|switch|return|continue|break|goto|sizeof|and|or|decltype)\b|typeof|[?#\x22]|&&|\|\||//|/\*|\bi\s*([-+*/%&|^]|<<|>>)?=[^=]|\bi\s*[({]|\+\+|--")


def _size_differs(declared, dtype):
    """Whether a kernel would read other numbers than those of an array. Bytes are read as any."""
    return (declared.kind in "fiu" and dtype.kind in "fiu" and declared.itemsize != dtype.itemsize and
            min(declared.itemsize, dtype.itemsize) > 1)


class Argument:
    """One argument of a list in C: its declaration, how a value becomes one, and whether statements read its element i."""

    def __init__(self, declaration, statements=""):
        kind, self.is_vector, self.name = parts_of(declaration)
        self.declaration = "__global " * self.is_vector + declaration.strip()
        dtype = dtype_of(kind)
        if not self.is_vector and (dtype is None or dtype.names):  # a struct, as bytes
            dtype = None
        self.dtype = dtype
        self.per_element = (self.is_vector and bool(
            re.search(rf"(?<![&.>])\b{self.name}\s*\[\s*i\s*\]", statements)))
        self.type = "P" if self.is_vector else dtype  # for Kernel.bind, or None
        self.value = (lambda given: given) if dtype is None else number_of(dtype)


def arguments_of(text, statements="", preamble="", options=None):
    """The list of Arguments that a program wrote as in C, or as a list of VectorArg and ScalarArg, for statements in C."""
    declarations = text.split(",") if isinstance(text, str) else [one.declarator() for one in text]
    around = f"{preamble}\n{' '.join(options or ())}"
    if _CONDITIONAL.search(statements) or _ANY_MACRO.search(around) or {*_MACRO.findall(around)} & {*re.findall(r"\w+", statements)}:
        statements = ""
    return [Argument(one, statements) for one in declarations]


def values_of(arguments, given):
    """(values, the first array, whether a kernel takes the values as they are, the smallest size of arrays with [i]) of a call."""
    if len(given) != len(arguments):
        raise TypeError(f"expected {len(arguments)} arguments ({', '.join(one.name for one in arguments)}), got {len(given)}")
    values, first, ready, least = [], None, True, _ANY
    for one, value in zip(arguments, given):
        if not one.is_vector:
            ready = ready and one.type is not None
            values.append(one.value(value))
            continue
        if first is None:
            first = value
        if type(value) is GPUArray:
            contiguous, buffer = value._form.contiguous, getattr(value.gpudata, "_gpuglue", None)
            values.append(buffer if buffer is not None else argument_of(value))
            if value.dtype is not one.dtype and one.dtype is not None and _size_differs(one.dtype, value.dtype):
                raise TypeError(f"{one.name} is declared as {one.dtype}, got an array of {value.dtype}: convert it by astype()")
            if one.per_element and value.size < least:
                least = value.size
        else:
            contiguous, ready = getattr(getattr(value, "flags", None), "forc", True), False
            values.append(value)
        if not contiguous:
            raise RuntimeError(f"{one.name}: generated kernels take contiguous arrays: copy the array first")
    if first is None:
        raise TypeError("expected an array among the arguments: its size is the number of elements")
    return values, first, ready, least


def beyond(element, least):
    """The error of an access beyond an array."""
    return ValueError(f"element {element} of an array with {least} elements would be accessed: pass a larger array or another range=")


def selected(size, range, slice, least):
    """(start, stop, step, their number) of the elements that take part."""
    if range is not None and slice is not None:
        raise TypeError("give range= or slice=, not both")
    start, stop, step = slice.indices(size) if slice is not None else (range.start, range.stop, range.step or 1)
    count = max(-(-(stop - start) // step), 0)
    for element in (start, start + (count - 1) * step) if count and least != _ANY else ():
        if not 0 <= element < least:
            raise beyond(element, least)
    return start, stop, step, count


_most_blocks: dict = {}


def blocks_for(count):
    """Number of blocks of a loop over so many elements."""
    if count <= BLOCK:
        return 1
    device = gpuglue.current_device()
    if device not in _most_blocks:  # a driver takes long for all attributes, longer than for a launch
        _most_blocks[device] = 16 * device.attributes.get("multiprocessors", 64)
    return min(-(-count // BLOCK), _most_blocks[device])


class Kernels:
    """The kernels of a source for each device, compiled at the first call on it. `types` has those of the arguments, for each name."""

    def __init__(self, source, types, keep, options):
        self._source = _COMPLEX * bool(re.search(r"\bcomplex\b", source)) + source
        self._types, self._keep, self._options, self._ready = types, keep, options, {}

    def current(self):
        """The kernels for the current device, with their types and the block."""
        device = gpuglue.current_device()
        ready = self._ready.get(device)
        if ready is None:
            if device.backend == "ze":
                image = compiler.in_opencl(self._source, self._options)
            else:
                image = compiler.compile(self._source.replace("__global ", ""), options=self._options, no_extern_c=True)
            module = Module(image)._module
            ready = self._ready[device] = [
                module[name if name in module else f"gg_{name}"].bind(types if all(one is not None for one in types) else None, block=BLOCK)
                for name, types in self._types.items()]
        return ready


def launch(kernel, values, blocks, stream, ready=True):
    """Launch a kernel; values that are not `ready` may be copied to the device first, as those of a Function."""
    if not ready:
        values = [np.int64(one) if type(one) is int else one for one in values]
        Function(kernel)(*values, grid=(blocks, 1), block=(BLOCK, 1, 1), stream=stream)
        return
    try:
        if stream is None:
            kernel(*values, grid=blocks)
        else:
            kernel(*values, grid=blocks, stream=_stream(stream))
    except gpuglue.Error as error:
        raise of(error) from error
