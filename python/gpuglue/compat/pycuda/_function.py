"""Kernels."""

import gpuglue

from . import _enums
from ._arguments import ArgumentHandler, Out, _HostArray, _prepared_types, _unwrap, _unwrap_all
from ._errors import LogicError, translated
from ._memory import _stream
from ._missing import TEXTURES, Refusing
from ._stateful import StatefulLaunch


@translated
def _wait(stream):
    (_stream(stream) or gpuglue.current_stream()).synchronize()


class Function(StatefulLaunch, Refusing):
    """A kernel: called with its arguments, block= and grid=.

    ``function(*args, grid=(1, 1), block, shared=0, stream=None, time_kernel=False)``. `shared` is in bytes. With
    ``time_kernel=True`` the call waits and returns seconds.

    Parameters
    ----------
    kernel : gpuglue.Kernel
        The kernel: Module.get_function makes the Function.

    Raises
    ------
    ValueError
        By a call without ``block=``.
    LogicError
        By a call with texture references, or with arguments that do not fit.
    TypeError
        By a call with a NumPy array that is not wrapped in In, Out or InOut, unless the kernel takes a struct there.

    Notes
    -----
    Arguments are arrays and allocations, NumPy scalars, NumPy arrays for structs by value, and In, Out and InOut. With
    Out and InOut the call waits.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> module = compiler.SourceModule("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
    >>> add = module.get_function("add")
    >>> x = gpuarray.ones(3, np.float32)
    >>> add(x, x, grid=(3, 1), block=(1, 1, 1))
    >>> x.get()
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, kernel):
        self._kernel, self._bound, self._converters, self._block, self._shared = kernel, None, (), None, 0

    @translated
    def _run(self, kernel, args, grid, block, shared, stream):
        try:
            args = [*map(_unwrap, args)]
        except _HostArray:
            args = _unwrap_all(args, kernel.parameters)
        kernel(*args, grid=grid, block=block, smem=shared,
               stream=_stream(stream))

    def __call__(self, *args, grid=(1, 1), block=None, shared=0, stream=None, texrefs=(), time_kernel=False):
        if block is None:
            raise ValueError("must specify block size")
        if texrefs:
            raise LogicError(TEXTURES)
        handlers = [argument for argument in args if isinstance(argument, ArgumentHandler)]
        for handler in handlers:
            handler.pre_call(stream)
        timer = _timer(stream) if time_kernel else None
        self._run(self._kernel, args, tuple(grid), tuple(block), shared, stream)
        elapsed = timer() if timer else None
        for handler in handlers:
            handler.post_call(stream)
        if stream is None and handlers or any(isinstance(handler, Out) for handler in handlers):
            _wait(stream)
        return elapsed

    @translated
    def prepare(self, arg_types, block=None, shared=None, texrefs=()):
        """Fix the types of the arguments.

        Parameters
        ----------
        arg_types : str or sequence
            Codes of the struct module, or dtypes. P is a pointer, F and D are complex numbers, and 12s is 12 bytes.
        block : tuple of int, optional
            Threads per block, for a `prepared_call` in the form of old programs: with the grid and the arguments only.
        shared : int, optional
            Dynamic shared memory in bytes, for such a call.
        texrefs : sequence, default ()
            Must be empty.

        Returns
        -------
        Function
            The function itself.

        Raises
        ------
        LogicError
            If the types do not fit the kernel, or there are texture references.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> module = compiler.SourceModule("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
        >>> x = gpuarray.ones(3, np.float32)
        >>> module.get_function("add").prepare("PP").prepared_call((3, 1), (1, 1, 1), x.gpudata, x.gpudata)
        >>> x.get()
        array([2., 2., 2.], dtype=float32)
        """
        if texrefs:
            raise LogicError(TEXTURES)
        types = tuple(_prepared_types(arg_types))
        self._bound = self._kernel.bind([kind for kind, _ in types])
        self._converters = tuple(convert for _, convert in types)
        self._block, self._shared = block, shared or 0
        return self

    def _called(self, block, args, shared):
        """(block, arguments, shared memory) of a call, which may be in the form of old programs."""
        if isinstance(block, (tuple, list)):
            return block, args, shared
        if self._block is None:
            raise LogicError(f"expected the block as a tuple after the grid, got {block!r}; or prepare(types, block=...)")
        return self._block, (block, *args), shared or self._shared

    def _prepared(self, args, grid, block, shared, stream):
        if self._bound is None:
            raise LogicError("call prepare() first")
        if len(args) == len(self._converters):  # else the launch raises
            args = [convert(argument) for convert, argument in zip(self._converters, args)]
        self._run(self._bound, args, tuple(grid), tuple(block), shared, stream)

    def prepared_call(self, grid, block, *args, shared_size=0):
        """Launch the prepared kernel on the current stream.

        Parameters
        ----------
        grid : tuple of int
            Number of blocks.
        block : tuple of int
            Threads per block.
        *args : object
            The arguments, of the prepared types.
        shared_size : int, default 0
            Dynamic shared memory in bytes.
        """
        block, args, shared_size = self._called(block, args, shared_size)
        self._prepared(args, grid, block, shared_size, None)

    def prepared_async_call(self, grid, block, stream, *args, shared_size=0):
        """Launch the prepared kernel on a stream.

        Parameters
        ----------
        grid : tuple of int
            Number of blocks.
        block : tuple of int
            Threads per block.
        stream : Stream or None
            The stream. None is the current one.
        *args : object
            The arguments, of the prepared types.
        shared_size : int, default 0
            Dynamic shared memory in bytes.
        """
        if not isinstance(block, (tuple, list)):  # in the form of old programs: the grid, the stream, the arguments
            stream, (block, args, shared_size) = block, self._called(stream, args, shared_size)
        self._prepared(args, grid, block, shared_size, stream)

    def prepared_timed_call(self, grid, block, *args, shared_size=0):
        """Launch the prepared kernel and measure it.

        Parameters
        ----------
        grid : tuple of int
            Number of blocks.
        block : tuple of int
            Threads per block.
        *args : object
            The arguments, of the prepared types.
        shared_size : int, default 0
            Dynamic shared memory in bytes.

        Returns
        -------
        function
            A call waits for the kernel, and returns the time in seconds.
        """
        block, args, shared_size = self._called(block, args, shared_size)
        timer = _timer(None)
        self._prepared(args, grid, block, shared_size, None)
        return timer.later()

    # ---- attributes

    def get_attribute(self, attribute):
        """Return one attribute of the kernel.

        Parameters
        ----------
        attribute : function_attribute
            The attribute.

        Returns
        -------
        int
            Its value; sizes are in bytes.

        Raises
        ------
        LogicError
            If the driver does not report it.
        """
        known = self._kernel.attributes
        name = _enums.FUNCTION_ATTRIBUTES.get(_enums.function_attribute(attribute))
        if name not in known:
            raise LogicError(f"{self._kernel} does not report {attribute!r}: see gpuglue.Kernel.attributes for what it does")
        return known[name]

    def set_attribute(self, attribute, value):
        """Accept MAX_DYNAMIC_SHARED_SIZE_BYTES, which each launch sets as needed.

        Parameters
        ----------
        attribute : function_attribute
            The attribute.
        value : int
            Not used.

        Raises
        ------
        LogicError
            If it is another attribute.
        """
        if attribute != _enums.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            raise LogicError(f"{attribute} cannot be set")

    def set_shared_config(self, config):
        """Do nothing: it is a hint.

        Parameters
        ----------
        config : shared_config
            Not used.
        """

    def set_cache_config(self, fc):
        """Do nothing: it is a hint.

        Parameters
        ----------
        fc : func_cache
            Not used.
        """

    num_regs = property(lambda self: self.get_attribute(_enums.function_attribute.NUM_REGS),
                        doc="Registers of a thread.")
    shared_size_bytes = property(lambda self: self.get_attribute(_enums.function_attribute.SHARED_SIZE_BYTES),
                                 doc="Static shared memory of a block in bytes.")
    local_size_bytes = property(lambda self: self.get_attribute(_enums.function_attribute.LOCAL_SIZE_BYTES),
                                doc="Local memory of a thread in bytes.")
    const_size_bytes = property(lambda self: self.get_attribute(_enums.function_attribute.CONST_SIZE_BYTES),
                                doc="Constant memory of the kernel in bytes.")
    max_threads_per_block = property(
        lambda self: self.get_attribute(_enums.function_attribute.MAX_THREADS_PER_BLOCK),
        doc="Most threads of a block.")


class _timer:
    """Two events around a launch. A call waits and returns seconds."""

    def __init__(self, stream):
        self.stream = _stream(stream) or gpuglue.current_stream()
        self.start = self.stream.record(gpuglue.Event(timing=True))

    def __call__(self):
        return self.later()()

    def later(self):
        start, stop = self.start, self.stream.record(gpuglue.Event(timing=True))

        def seconds():
            stop.synchronize()
            return stop.elapsed_since(start) * 1e-3

        return seconds
