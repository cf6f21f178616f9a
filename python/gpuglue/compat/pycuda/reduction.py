"""pycuda.reduction: kernels that combine all elements. gpuglue writes the loops, and compiles the program's source."""

import numpy as np

from . import driver, tools
from ._array import GPUArray
from ._generated import BLOCK, COUNTS, Kernels, arguments_of, beyond, blocks_for, launch, selected, values_of
from ._layouts import form_of
from ._memory import argument_of
from ._missing import refusing

_BEGINNING = """{preamble}
#define GG_REDUCE(a, b) ({reduce_expr})
"""
_STAGE = """
extern "C" __global__ void {name}(__global {kind} *gg_out, {declarations}, long long n, long long gg_start, long long gg_stop,
                                  long long gg_step)
{{
  __shared__ {kind} gg_shared[{block}];
  const unsigned gg_thread = threadIdx.x;
  {kind} gg_found = {neutral};
  for (long long gg_at = gg_start + ((long long)blockIdx.x * {block} + gg_thread) * gg_step;
       gg_step > 0 ? gg_at < gg_stop : gg_at > gg_stop; gg_at += (long long)gridDim.x * {block} * gg_step) {{
    const long long i = gg_at;
    gg_found = GG_REDUCE(gg_found, ({map_expr}));
  }}
  gg_shared[gg_thread] = gg_found;
  __syncthreads();
  for (unsigned gg_half = {block} / 2; gg_half > 0; gg_half /= 2) {{
    if (gg_thread < gg_half)
      gg_shared[gg_thread] = GG_REDUCE(gg_shared[gg_thread], gg_shared[gg_thread + gg_half]);
    __syncthreads();
  }}
  if (gg_thread == 0)
    gg_out[blockIdx.x] = gg_shared[0];
}}
"""

_ONE_BLOCK = 16 * BLOCK  # elements that one block combines: sooner than a second launch begins


class ReductionKernel:
    """A kernel that combines all elements to one: called with the arguments, range=, slice=, stream=, out= and allocator=.

    ``kernel(*args, range=None, slice=None, stream=None, out=None, allocator=None)`` returns a GPUArray without dimensions,
    or `out`.

    Parameters
    ----------
    dtype_out : dtype
        Type of the result.
    neutral : str
        The neutral element in C, as ``0`` of a sum.
    reduce_expr : str
        An expression of ``a`` and ``b``, associative and commutative: ``a+b``.
    map_expr : str, optional
        An expression of the element ``i``: ``x[i]*y[i]``. None is ``in[i]``.
    arguments : str or sequence, optional
        The arguments as in C, or a sequence of tools.VectorArg and tools.ScalarArg. None is a pointer ``in``.
    name : str, default 'reduce_kernel'
        Name of the kernel.
    keep : bool, default False
        As of SourceModule.
    options : list of str, optional
        Options of the compiler.
    preamble : str, default ''
        Source before the kernel.

    Raises
    ------
    LogicError
        If the arguments are not those of C.
    driver.CompileError
        By the first call, if the compiler rejects the source.
    TypeError
        By a call with another number of arguments, or without an array.
    ValueError
        By a call beyond an array.
    RuntimeError
        By a call with an array that is not contiguous.

    Notes
    -----
    It is compiled at its first call on a device, and needs a compiler, as SourceModule does. The order in which elements
    are combined differs between devices.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> from gpuglue.compat.pycuda.reduction import ReductionKernel
    >>> dot = ReductionKernel(np.float32, "0", "a+b", "x[i]*y[i]", "float *x, float *y")
    >>> x = gpuarray.arange(4, dtype=np.float32)
    >>> float(dot(x, x).get())
    14.0
    """

    def __init__(self, dtype_out, neutral, reduce_expr, map_expr=None, arguments=None, name="reduce_kernel", keep=False,
                 options=None, preamble=""):
        self.dtype_out, kind = np.dtype(dtype_out), tools.dtype_to_ctype(dtype_out)
        self._arguments = arguments_of(arguments or f"const {kind} *in", map_expr or "in[i]", preamble, options)

        def stage(name, arguments, map_expr):
            return _STAGE.format(name=name, kind=kind, declarations=", ".join(one.declaration for one in arguments),
                                 neutral=neutral, map_expr=map_expr, block=BLOCK)

        self._form, of_blocks = form_of((), self.dtype_out), name + "_of_blocks"
        self._kernels = Kernels(
            _BEGINNING.format(preamble=preamble, reduce_expr=reduce_expr) + stage(name, self._arguments, map_expr or "in[i]") +
            stage(of_blocks, arguments_of(f"const {kind} *gg_in"), "gg_in[i]"),
            {name: ["P", *(one.type for one in self._arguments), *COUNTS], of_blocks: ["P", "P", *COUNTS]}, keep, options)

    def __call__(self, *args, range=None, slice=None, stream=None, out=None, allocator=None):
        values, first, ready, least = values_of(self._arguments, args)
        size = stop = count = first.size
        start, step = 0, 1
        if range is not None or slice is not None:
            start, stop, step, count = selected(size, range, slice, least)
        elif size > least:
            raise beyond(size - 1, least)
        allocator = allocator or getattr(first, "allocator", None) or driver.mem_alloc
        out = out if out is not None else GPUArray._of_form(self._form, allocator)
        elements, of_blocks = self._kernels.current()
        blocks = blocks_for(count) if count > _ONE_BLOCK else 1
        if blocks == 1:
            launch(elements, (argument_of(out), *values, size, start, stop, step), 1, stream, ready)
            return out
        parts = allocator(blocks * self.dtype_out.itemsize)
        launch(elements, (argument_of(parts), *values, size, start, stop, step), blocks, stream, ready)
        launch(of_blocks, (argument_of(out), argument_of(parts), blocks, 0, blocks, 1), 1, stream)
        return out


__getattr__ = refusing(__name__)
