"""pycuda.elementwise: kernels of one statement per element. gpuglue writes the loop, and compiles the program's source."""

from ._generated import COUNTS, Kernels, arguments_of, beyond, blocks_for, launch, selected, values_of
from ._missing import refusing

_SOURCE = """{preamble}
extern "C" __global__ void {name}({declarations}, long long n, long long gg_start, long long gg_stop, long long gg_step)
{{
  const long long gg_thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long gg_stride = (long long)gridDim.x * blockDim.x * gg_step;
  {loop_prep};
  for (long long i = gg_start + gg_thread * gg_step; gg_step > 0 ? i < gg_stop : i > gg_stop; i += gg_stride) {{
    {operation};
  }}
  {after_loop};
}}
"""


class ElementwiseKernel:
    """A kernel that runs a statement for each element: called with the arguments, range=, slice= and stream=.

    ``kernel(*args, range=None, slice=None, stream=None)``. The size of the first array is the number of elements; `range`
    or `slice` select some.

    Parameters
    ----------
    arguments : str or sequence
        The arguments as in C: ``float *x, float a``. Or a sequence of tools.VectorArg and tools.ScalarArg.
    operation : str
        The statement in C. ``i`` is the index of the element, ``n`` their number.
    name : str, default 'kernel'
        Name of the kernel.
    keep : bool, default False
        As of SourceModule.
    options : list of str, optional
        Options of the compiler.
    preamble : str, default ''
        Source before the kernel.
    loop_prep : str, default ''
        Statements before the loop.
    after_loop : str, default ''
        Statements after it.

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
    It is compiled at its first call on a device, and needs a compiler, as SourceModule does.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> from gpuglue.compat.pycuda.elementwise import ElementwiseKernel
    >>> add = ElementwiseKernel("float a, float *x, float *z", "z[i] = a + x[i]", "add")
    >>> x = gpuarray.arange(3, dtype=np.float32)
    >>> add(5, x, x)
    >>> x.get()
    array([5., 6., 7.], dtype=float32)
    """

    def __init__(self, arguments, operation, name="kernel", keep=False, options=None, *, preamble="", loop_prep="",
                 after_loop=""):
        self._arguments = arguments_of(arguments, f"{loop_prep};{operation}", preamble, options)
        declarations = ", ".join(one.declaration for one in self._arguments)
        self._kernels = Kernels(_SOURCE.format(
            name=name, declarations=declarations, operation=operation, preamble=preamble, loop_prep=loop_prep,
            after_loop=after_loop), {name: [*(one.type for one in self._arguments), *COUNTS]}, keep, options)

    def __call__(self, *args, range=None, slice=None, stream=None):
        values, first, ready, least = values_of(self._arguments, args)
        size = stop = count = first.size
        start, step = 0, 1
        if range is not None or slice is not None:
            start, stop, step, count = selected(size, range, slice, least)
        elif size > least:
            raise beyond(size - 1, least)
        if count:
            kernel, = self._kernels.current()
            launch(kernel, (*values, size, start, stop, step), blocks_for(count), stream, ready)


__getattr__ = refusing(__name__)
