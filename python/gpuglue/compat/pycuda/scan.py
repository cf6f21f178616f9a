"""pycuda.scan: prefix sums and other scans. gpuglue writes the loops, and compiles the program's source."""

import numpy as np

from . import gpuarray, tools
from ._generated import BLOCK, Kernels, launch
from ._memory import argument_of

# A block scans `gg_each` elements, a tile of its threads at a time. Three launches: the totals of all blocks (no gg_out), the
# scan of these totals by one block, and the results, which begin with the total of the blocks before.
_SOURCE = """{preamble}
#define GG_SCAN(a, b) ({scan_expr})
extern "C" __global__ void {name}(__global {kind} *gg_out, const __global {kind} *gg_in, const __global {kind} *gg_before,
                                  __global {kind} *gg_totals, long long gg_count, long long gg_each, int gg_exclusive)
{{
  __shared__ {kind} gg_shared[{block}];
  const int gg_thread = threadIdx.x;
  const long long gg_start = blockIdx.x * gg_each;
  const long long gg_stop = gg_start + gg_each < gg_count ? gg_start + gg_each : gg_count;
  bool gg_any = gg_before && blockIdx.x > 0;
  {kind} gg_carry = gg_any ? gg_before[blockIdx.x - 1] : {first};
  for (long long gg_tile = gg_start; gg_tile < gg_stop; gg_tile += {block}) {{
    const int gg_here = gg_stop - gg_tile < {block} ? (int)(gg_stop - gg_tile) : {block};
    if (gg_thread < gg_here)
      gg_shared[gg_thread] = gg_in[gg_tile + gg_thread];
    __syncthreads();
    if (gg_thread == 0 && gg_any)
      gg_shared[0] = GG_SCAN(gg_carry, gg_shared[0]);
    for (int gg_far = 1; gg_far < gg_here; gg_far *= 2) {{
      __syncthreads();
      const bool gg_combines = gg_thread >= gg_far && gg_thread < gg_here;
      {kind} gg_value = gg_shared[gg_thread < gg_here ? gg_thread : 0];
      if (gg_combines)
        gg_value = GG_SCAN(gg_shared[gg_thread - gg_far], gg_value);
      __syncthreads();
      if (gg_combines)
        gg_shared[gg_thread] = gg_value;
    }}
    __syncthreads();
    if (gg_out && gg_thread < gg_here)
      gg_out[gg_tile + gg_thread] = !gg_exclusive ? gg_shared[gg_thread] : gg_thread > 0 ? gg_shared[gg_thread - 1] : gg_carry;
    gg_carry = gg_shared[gg_here - 1];
    gg_any = true;
    __syncthreads();
  }}
  if (gg_totals && gg_thread == 0)
    gg_totals[blockIdx.x] = gg_carry;
}}
"""
_EACH = 16 * BLOCK  # elements of a block, at least
_BLOCKS = 1024  # at most: one block scans their totals


class _ScanKernel:
    _exclusive = False

    def __init__(self, dtype, scan_expr, neutral=None, name_prefix="scan", options=None, preamble="", devs=None):
        if self._exclusive and neutral is None:
            raise ValueError("an exclusive scan needs neutral=, its first result, as '0' of a sum")
        self.dtype, kind, name = np.dtype(dtype), tools.dtype_to_ctype(dtype), f"{name_prefix}_kernel"
        # Without a neutral element gg_carry begins with any element: it is not used.
        self._kernels = Kernels(_SOURCE.format(
            name=name, kind=kind, scan_expr=scan_expr, preamble=preamble, block=BLOCK,
            first=f"({kind})({neutral})" if neutral is not None else "gg_in[0]"), {name: [*"PPPPqqi"]}, False, options)

    def __call__(self, input_ary, output_ary=None, allocator=None, stream=None):
        out = self._output_for(input_ary, output_ary, allocator or input_ary.allocator)
        count = input_ary.size
        if not count:
            return out
        each = max(_EACH, -(-count // _BLOCKS // BLOCK) * BLOCK + BLOCK)
        blocks = -(-count // each)
        totals = gpuarray.empty(blocks, self.dtype, allocator or input_ary.allocator) if blocks > 1 else None
        if blocks > 1:
            self._launch(blocks, stream, None, input_ary, None, totals, count, each, False)
            self._launch(1, stream, totals, totals, None, None, blocks, blocks, False)
        self._launch(blocks, stream, out, input_ary, totals, None, count, each, self._exclusive)
        return out

    def _launch(self, blocks, stream, out, given, before, totals, count, each, exclusive):
        kernel, = self._kernels.current()
        arrays = [None if one is None else argument_of(one) for one in (out, given, before, totals)]
        launch(kernel, (*arrays, count, each, int(exclusive)), blocks, stream)

    def _output_for(self, given, out, allocator):
        if given.dtype != self.dtype:
            raise TypeError(f"a scan of {self.dtype} got an array of {given.dtype}: convert it first")
        if len(given.shape) != 1 or not given.flags.forc:
            raise RuntimeError(f"a scan takes contiguous arrays of one dimension, got the shape {given.shape}")
        if isinstance(out, str) and out == "new":
            return gpuarray.empty(given.shape, self.dtype, allocator)
        out = given if out is None else out
        if (out.shape, out.dtype) != (given.shape, self.dtype) or not out.flags.forc:
            raise ValueError(f"the output of a scan has to be contiguous, {given.shape} of {self.dtype}, as the input is; got "
                             f"{out.shape} of {out.dtype}")
        return out


_DOC = """A kernel that {what}: called with the input, output_ary=, allocator= and stream=.

    ``kernel(input_ary, output_ary=None, allocator=None, stream=None)`` returns the output. `output_ary` is an array, "new"
    for a new one, or None to replace the input.

    Parameters
    ----------
    dtype : dtype
        Type of the elements.
    scan_expr : str
        An expression of ``a`` and ``b``, associative: ``a+b``. ``a`` is what comes first.
    neutral : str, optional
        The neutral element in C, as ``0`` of a sum.{needed}
    name_prefix : str, default 'scan'
        The beginning of the kernel's name.
    options : list of str, optional
        Options of the compiler.
    preamble : str, default ''
        Source before the kernel.
    devs : sequence, optional
        Not used: it is compiled for the current device.

    Raises
    ------
    ValueError
        If there is no neutral element, or by a call with an output of another form.
    driver.CompileError
        By the first call, if the compiler rejects the source.
    TypeError
        By a call with another dtype.
    RuntimeError
        By a call with an array of several dimensions, or one that is not contiguous.

    Notes
    -----
    It is compiled at its first call on a device, and needs a compiler, as SourceModule does. How elements are grouped
    depends on their number only, so results of floating point are the same on each call.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> from gpuglue.compat.pycuda.scan import {name}
    >>> add_up = {name}(np.int32, "a+b", neutral="0")
    >>> add_up(gpuarray.to_gpu(np.array([3, 1, 4], np.int32))).get()
    array({result}, dtype=int32)
    """


class InclusiveScanKernel(_ScanKernel):
    __doc__ = _DOC.format(what="combines each element with all before it", needed=" Not used.", name="InclusiveScanKernel",
                          result="[3, 4, 8]")


class ExclusiveScanKernel(_ScanKernel):
    __doc__ = _DOC.format(what="combines all elements before each", needed=" It is the first result.",
                          name="ExclusiveScanKernel", result="[0, 3, 4]")

    _exclusive = True
