"""get_reduction_module of pycuda.reduction, for a copy of PyCUDA's own files (see `gpuglue pycuda`).

PyCUDA's kernel relies on lockstep of the threads of a warp, which there is not on host, and which newer devices do not
promise. This one has a barrier after each step. Its names begin with gg_ where PyCUDA's has none: expressions of programs
may use round() and half."""

from .compiler import SourceModule

_SOURCE = """#include <pycuda-complex.hpp>
#define REDUCE(a, b) ({reduce_expr})
#define READ_AND_MAP(i) ({map_expr})
{preamble}
typedef {out_type} out_type;

extern "C" __global__ void {name}(out_type *out, {arguments}, unsigned int seq_count, size_t n)
{{
    extern __shared__ out_type sdata[];
    unsigned int tid = threadIdx.x;
    out_type acc = {neutral};
    size_t i = (size_t)blockIdx.x * {block_size} * seq_count + tid;

    for (unsigned int gg_round = 0; gg_round < seq_count && i < n; gg_round++, i += {block_size})
        acc = REDUCE(acc, READ_AND_MAP(i));
    sdata[tid] = acc;
    __syncthreads();
    for (unsigned int gg_half = {block_size} / 2; gg_half > 0; gg_half /= 2) {{
        if (tid < gg_half)
            sdata[tid] = REDUCE(sdata[tid], sdata[tid + gg_half]);
        __syncthreads();
    }}
    if (tid == 0)
        out[blockIdx.x] = sdata[0];
}}
"""


def get_reduction_module(out_type, block_size, neutral, reduce_expr, map_expr, arguments, name="reduce_kernel", keep=False,
                         options=None, preamble=""):
    """Return the module of one stage of a reduction.

    Parameters
    ----------
    out_type : str
        Type of the result in C.
    block_size : int
        Threads per block, a power of 2.
    neutral : str
        The neutral element in C.
    reduce_expr : str
        An expression of ``a`` and ``b``.
    map_expr : str
        An expression of the element ``i``.
    arguments : str
        The arguments as in C.
    name : str, default 'reduce_kernel'
        Name of the kernel.
    keep : bool, default False
        As of SourceModule.
    options : list of str, optional
        Options of the compiler.
    preamble : str, default ''
        Source before the kernel.

    Returns
    -------
    SourceModule
        Its kernel takes the result, the arguments, the number of rounds and of elements.
    """
    source = _SOURCE.format(out_type=out_type, block_size=block_size, neutral=neutral, reduce_expr=reduce_expr, map_expr=map_expr,
                            arguments=arguments, name=name, preamble=preamble)
    return SourceModule(source, options=options, keep=keep, no_extern_c=True)
