"""The names that gpuglue exports; scripts/docstrings.py writes the docstrings, from python/docstrings."""

import ctypes
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final, Literal, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt
from _typeshed import structseq
from typing_extensions import Buffer as _HasBuffer
from typing_extensions import Self

_DeviceLike: TypeAlias = Device | str | SupportsIndex
_StreamLike: TypeAlias = Stream | SupportsIndex | Any  # __cuda_stream__, torch, CuPy, numba
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Order: TypeAlias = Literal["C", "F"]
_OrderLike: TypeAlias = Literal["C", "F", "A", "K"]
_Probe: TypeAlias = Literal["passive", "active", "isolated"]

__version__: str

def _library() -> tuple[str, str, str, str]: ...
def _shutdown() -> None: ...
def _register_plugin(path: str, /) -> None: ...
def _report_plugin_error(name: str, reason: str, /) -> None: ...
def _listed() -> tuple[BackendInfo, ...]: ...
def _add_library_directory(path: str, /) -> None: ...
def _event_hold(event: Event, /) -> Any: ...  # a capsule, or None
def _event_follows(held: Any, earlier: Any, /) -> bool: ...
def _poll_events(events: list[Any], /) -> list[tuple[int, Exception | None]]: ...
def _trace_start(path: str, device_times: bool, /) -> None: ...
def _trace_stop() -> None: ...
def _range_push(name: str, /) -> None: ...
def _range_pop() -> None: ...
def _comm_create(rank: int, size: int, host: str, port: int, id: str, timeout_ns: int, several_machines: bool = ..., /) -> Any: ...  # a capsule
def _comm_collective(
    comm: Any, operation: str, dst: int, src: int, count: int, type: int, reduction: int, root: int, type_name: str, /
) -> None: ...
def _comm_message(comm: Any, src: int, src_nbytes: int, to: int, dst: int, dst_nbytes: int, source: int, type_name: str, /) -> None: ...
def _comm_split(comm: Any, color: int, key: int, /) -> tuple[Any, int, int] | None: ...
def _comm_abort(comm: Any, /) -> None: ...
def _comm_open_device(comm: Any, device: Device | None, transport: str, /) -> tuple[str, str, str, int]: ...
def _comm_create_all(devices: list[Device], transport: str, timeout_ns: int, /) -> list[tuple[Any, str, str, str, int]]: ...
def _comm_borrow(device: Device | None, handle: int, timeout_ns: int, /) -> tuple[Any, int, int, str, str, int]: ...
def _comm_native(comm: Any, /) -> int: ...
def _comm_close_device(comm: Any, /) -> None: ...
def _comm_group_begin(comm: Any, /) -> None: ...
def _comm_group_end(comm: Any, drop: bool, /) -> None: ...
def _comm_queue(
    comm: Any, operation: int, x: Any, out: Any, op: str | int | None, root: int, source: int, stream: Any, /
) -> bool: ...
def _comm_queue_of(comm: Any, otherwise: Callable[..., bool] | None, /) -> Callable[..., bool]: ...
def _comm_staged(
    comm: Any, operation: int, dst: Any, src: Any, count: int, dst_count: int, type: int, reduction: int, root: int, source: int, type_name: str, /
) -> None: ...
def _is_capturing(device: Device | None, /) -> bool: ...
def _capture_begin(stream: Stream, /) -> Graph: ...
def _capture_end(graph: Graph, /) -> None: ...

# ---- errors ----------------------------------------------------------------------------------------

class Error(Exception):
    """An error that a driver or gpuglue itself reports.

    The message is one sentence with all details. Its parts are attributes, None where they are not known.

    Attributes
    ----------
    status : str
        Name of the status, such as 'ERR_OUT_OF_MEMORY'.
    backend : str
        Name of the backend.
    device : int
        Ordinal of the device.
    op : str
        Name of the operation, such as 'mem_alloc'.
    code : int
        The driver's error number.
    name : str
        The driver's name of the error, such as 'CUDA_ERROR_OUT_OF_MEMORY'.
    text : str
        The driver's description of the error.
    library : str
        Path of the driver's library.
    library_version : str
        Version of the driver's library.
    reports : tuple of BackendInfo
        Of BackendUnavailableError: the report of each backend.
    ranks : tuple of int
        Of CommunicatorError: the ranks that failed.

    Notes
    -----
    All exceptions of gpuglue derive from it. Arguments of a wrong type raise TypeError.

    Examples
    --------
    >>> try:
    ...     gg.alloc(1 << 50)
    ... except gg.Error as error:
    ...     error.op, error.device
    ('mem_alloc', 0)
    """

    status: str | None
    backend: str | None
    device: int | None
    op: str | None
    code: int | None
    name: str | None
    text: str | None
    library: str | None
    library_version: str | None
    reports: tuple[BackendInfo, ...] | None
    ranks: tuple[int, ...] | None

class OutOfMemoryError(Error, MemoryError):
    """Device memory or pinned host memory is exhausted: also a MemoryError.

    The message has the sizes: what was requested, what is free, what gpuglue has.

    Examples
    --------
    >>> try:
    ...     gg.empty(1 << 50)
    ... except MemoryError as error:
    ...     type(error).__name__
    'OutOfMemoryError'
    """
class InvalidArgumentError(Error, ValueError):
    """An argument is not valid, or the object is closed: also a ValueError.

    Examples
    --------
    >>> buffer = gg.alloc(8)
    >>> buffer.close()
    >>> buffer.ptr
    Traceback (most recent call last):
        ...
    gpuglue.InvalidArgumentError: Buffer is closed
    """
class BackendUnavailableError(Error):
    """None of the requested backends can be used.

    `reports` is the result of backends(), with the reason for each.

    Examples
    --------
    >>> try:
    ...     gg.Device("no_such_backend:0")
    ... except gg.BackendUnavailableError as error:
    ...     len(error.reports) > 0
    True
    """
class UnsupportedError(Error):
    """The device, the driver or the backend does not support the operation: nothing was done.

    See Also
    --------
    Device.supports : Check before the call.
    """
class DeviceError(Error):
    """The driver reported an error of this call, or of work that was queued earlier."""
class DeviceLostError(DeviceError):
    """This process cannot use the device any more.

    The message names the call that first reported it. Start a new process.
    """
class ForkError(Error):
    """The process was forked after the backend had been initialised.

    Start processes with the method 'spawn', or fork before the first use. A passive probe initialises nothing.

    See Also
    --------
    backends : The levels of a probe.
    """
class CommunicatorError(Error):
    """A rank of a communicator failed: it ended, did not take part in time, closed or aborted.

    `ranks` contains the ranks that failed, and the message the reason. The communicator cannot be used any more: close it, and
    create a new one from the remaining ranks.

    Attributes
    ----------
    ranks : tuple of int
        The ranks that failed, in ascending order. Empty if no rank caused the failure, such as when a port is in use.

    See Also
    --------
    Communicator : Processes that combine and exchange arrays.
    """
class NoDeviceWarning(RuntimeWarning):
    """No GPU was found: work runs on the host backend.

    It is issued once per process, and once per node with a launcher. ``python -m gpuglue doctor`` finds the reason; the
    environment variable ``GPUGLUE_BACKEND=host`` selects the host backend without a warning.
    """

# ---- backends ----------------------------------------------------------------------------------------

@final
class BackendInfo(structseq[Any], tuple[str, str, str, int | None, str, str, str, str, str, int, tuple[tuple[str, str], ...], tuple[str, ...]]):
    """The result of a probe for one backend: a named tuple."""

    __match_args__: Final = ("name", "status", "reason", "devices", "library", "version", "plugin", "plugin_version", "found_by", "priority", "tried", "notes")
    @property
    def name(self) -> str:
        """Name of the backend, such as 'cuda'."""
    @property
    def status(self) -> str:
        """'available', or one word for what is missing, such as 'library-not-found'."""
    @property
    def reason(self) -> str:
        """What is missing and what to do, a sentence; '' if available."""
    @property
    def devices(self) -> int | None:
        """Number of devices; None where this probe does not count them."""
    @property
    def library(self) -> str:
        """Path of the driver's library, or ''."""
    @property
    def version(self) -> str:
        """Version of the driver's library, or ''."""
    @property
    def plugin(self) -> str:
        """Path of the plugin; '' if it is linked in, or not found."""
    @property
    def plugin_version(self) -> str:
        """Version of the plugin, or ''."""
    @property
    def found_by(self) -> str:
        """How the library was found, such as 'environment', 'already loaded' or 'soname'."""
    @property
    def priority(self) -> int:
        """The backend with the highest number is preferred."""
    @property
    def tried(self) -> tuple[tuple[str, str], ...]:
        """Pairs of path and outcome, in the order of the search."""
    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts: visibility variables, other runtimes, a library loaded twice."""

def backends(probe: _Probe = "passive", *, timeout: float = 10.0) -> tuple[BackendInfo, ...]:
    """Report which backends work here, and why others do not.

    Parameters
    ----------
    probe : {'passive', 'active', 'isolated'}, default 'passive'
        'passive' opens libraries and initialises no driver, so that a later fork is safe. 'active' initialises drivers and
        counts devices. 'isolated' does so in child processes.
    timeout : float, default 10.0
        Seconds for all child processes of an isolated probe together. A driver that hangs or crashes is reported as such.

    Returns
    -------
    tuple of BackendInfo
        One per backend, the preferred ones first.

    Raises
    ------
    InvalidArgumentError
        If `probe` is none of these.
    TypeError
        If `probe` is not a str.

    See Also
    --------
    available_backends : Only the names of those that work.

    Notes
    -----
    A missing driver is reported and raises no exception. For a backend that is in use, each probe returns the full report.

    Examples
    --------
    >>> [info.status for info in gg.backends() if info.name == gg.default_backend()]
    ['available']
    """

def available_backends() -> list[str]:
    """List the backends that have a device.

    Returns
    -------
    list of str
        Names, the preferred ones first.

    See Also
    --------
    backends : The reasons why others are not available.

    Notes
    -----
    Drivers are initialised: do not fork afterwards.

    Examples
    --------
    >>> gg.default_backend() in gg.available_backends()
    True
    """

def default_backend() -> str:
    """Return the name of the backend that is used where none is named.

    Returns
    -------
    str
        The backend of `use_backend`, else of ``GPUGLUE_BACKEND``, else the first one with a device.

    Raises
    ------
    BackendUnavailableError
        If none of them can be used; `reports` has the reasons.
    InvalidArgumentError
        If the text of ``GPUGLUE_BACKEND`` is not valid.

    Warns
    -----
    NoDeviceWarning
        If no GPU was found and work runs on the host backend. Once per process, and once per node with a launcher.

    Notes
    -----
    The choice is made once.

    Examples
    --------
    >>> gg.Device().backend == gg.default_backend()
    True
    """

def use_backend(selection: str, /) -> None:
    """Choose the default backend.

    Parameters
    ----------
    selection : str
        'auto'; 'name' or 'name,name' for the first of these with a device; or '^name' for 'auto' without it. It replaces
        ``GPUGLUE_BACKEND``.

    Raises
    ------
    BackendUnavailableError
        If none of the backends can be used. The previous selection stays in effect.
    InvalidArgumentError
        If the text is not valid, such as ``'^^host'``.
    TypeError
        If `selection` is not a str.

    Notes
    -----
    Existing arrays and streams keep their device.

    Examples
    --------
    >>> gg.use_backend(gg.default_backend())
    """

def devices(backend: str | None = None) -> list[Device]:
    """List the devices.

    Parameters
    ----------
    backend : str, optional
        Name of a backend. None is all available ones.

    Returns
    -------
    list of Device
        Those of the preferred backend first, then by the driver's ordinal under its visibility variable.

    Raises
    ------
    BackendUnavailableError
        If the named backend cannot be used here.
    TypeError
        If `backend` is not a str.

    Notes
    -----
    Drivers are initialised: do not fork afterwards.

    Examples
    --------
    >>> gg.Device() in gg.devices()
    True
    """

# ---- devices -------------------------------------------------------------------------------------------

@final
class ProcessStats(structseq[Any], tuple[int, int | None]):
    """A process that uses a device: a named tuple, in `DeviceStats.processes`."""

    __match_args__: Final = ("pid", "memory")
    @property
    def pid(self) -> int:
        """Process id; in a container it may be that of the host."""
    @property
    def memory(self) -> int | None:
        """Device memory that the process uses in bytes, or None."""

@final
class DeviceStats(structseq[Any], tuple[Any, ...]):
    """The load and state of a device: a named tuple, from `Device.stats`.

    None stands for a value that the vendor does not report.
    """

    __match_args__: Final = (
        "compute_utilization",
        "memory_utilization",
        "memory_used",
        "memory_total",
        "power",
        "temperature",
        "compute_clock",
        "memory_clock",
        "throttle_reasons",
        "processes",
        "source",
    )
    @property
    def compute_utilization(self) -> float | None:
        """Share of time in which kernels ran, in percent."""
    @property
    def memory_utilization(self) -> float | None:
        """Share of time in which device memory was read or written, in percent."""
    @property
    def memory_used(self) -> int | None:
        """Device memory in use by all processes, in bytes."""
    @property
    def memory_total(self) -> int | None:
        """Size of the device's memory in bytes."""
    @property
    def power(self) -> float | None:
        """Power in watts."""
    @property
    def temperature(self) -> float | None:
        """Temperature in degrees Celsius."""
    @property
    def compute_clock(self) -> float | None:
        """Clock of the processors in MHz."""
    @property
    def memory_clock(self) -> float | None:
        """Clock of the memory in MHz."""
    @property
    def throttle_reasons(self) -> tuple[str, ...] | None:
        """Why the clocks are low: a tuple of words, such as ('power', 'thermal')."""
    @property
    def processes(self) -> tuple[ProcessStats, ...] | None:
        """The processes that use the device: a tuple of ProcessStats."""
    @property
    def source(self) -> str:
        """Where the values come from, such as 'NVML'."""

@final
class MemoryInfo(structseq[Any], tuple[int, int]):
    """The memory of a device, in bytes: a named tuple."""

    __match_args__: Final = ("free", "total")
    @property
    def free(self) -> int:
        """Bytes that could be allocated now."""
    @property
    def total(self) -> int:
        """Bytes of the device."""

@final
class PoolStats(structseq[Any], tuple[int, int, int, int, int, int, int, int, int, int, int]):
    """The statistics of a pool: a named tuple."""

    __match_args__: Final = ("used_blocks", "used_bytes", "used_peak", "cached_blocks", "cached_bytes", "retired_blocks", "retired_bytes", "reserved_bytes", "reserved_peak", "allocations", "driver_calls")
    @property
    def used_blocks(self) -> int:
        """Number of blocks that are allocated and not closed."""
    @property
    def used_bytes(self) -> int:
        """Their size in bytes, as requested."""
    @property
    def used_peak(self) -> int:
        """Highest number of bytes in use at any time."""
    @property
    def cached_blocks(self) -> int:
        """Number of free blocks that can be reused."""
    @property
    def cached_bytes(self) -> int:
        """Their size in bytes."""
    @property
    def retired_blocks(self) -> int:
        """Number of closed blocks that queued work still uses, or that wait to be freed."""
    @property
    def retired_bytes(self) -> int:
        """Their size in bytes."""
    @property
    def reserved_bytes(self) -> int:
        """Bytes that the pool has taken from the driver."""
    @property
    def reserved_peak(self) -> int:
        """Highest number of bytes taken from the driver at any time."""
    @property
    def allocations(self) -> int:
        """Number of allocations so far."""
    @property
    def driver_calls(self) -> int:
        """Number of driver calls so far, to allocate and to free."""

@final
class Pool:
    """Free memory of a device that is reused without a driver call.

    `Device.pool` has the device's memory, `Device.pinned_pool` pinned memory.

    See Also
    --------
    set_allocator : Take device memory from another pool.

    Notes
    -----
    Memory that is closed or dropped returns to its pool. The stream that it was allocated for may reuse it at once, other
    streams once the work on it is done. Sizes are rounded up, by at most an eighth from 2 KiB to 256 MiB. Any thread may use a pool.

    Examples
    --------
    >>> pool = gg.Device().pool
    >>> a = gg.zeros(1000)
    >>> pool.stats().used_blocks > 0
    True
    """

    limit: int | None
    """Limit of the bytes taken from the driver, or None. Setting it below the bytes in use raises ValueError."""
    release_threshold: int | None
    """Limit of the bytes of free blocks that are kept, or None. The default for pinned memory is 256 MiB.

    Until it is set, free blocks of device memory above 256 MiB are kept up to an eighth of the device's memory.
    """
    def trim(self, keep: SupportsIndex = 0) -> None:
        """Return free blocks to the driver.

        Parameters
        ----------
        keep : int, default 0
            Bytes of free blocks that may stay.

        Raises
        ------
        InvalidArgumentError
            If `keep` is negative.
        DeviceError
            If the driver fails to free memory.

        See Also
        --------
        trim : The same for all pools.

        Notes
        -----
        The call waits for no work. Where the driver's free would wait for the device, the memory is freed later, at a call that
        allocates or waits after all of gpuglue's streams have become idle.

        Examples
        --------
        >>> gg.Device().pool.trim(keep=1 << 20)
        """
    def stats(self) -> PoolStats:
        """Return counts and sizes of the pool's blocks.

        Returns
        -------
        PoolStats
            Blocks and bytes in use, cached and reserved, at this time.

        Raises
        ------
        DeviceError
            If the device's context cannot be created.

        Examples
        --------
        >>> stats = gg.Device().pool.stats()
        >>> stats.used_bytes <= stats.used_peak
        True
        """

def trim() -> None:
    """Return the free memory of all pools to the drivers.

    Pinned memory for copies and the host memory of results are released as well. The call waits for no work.

    Raises
    ------
    DeviceError
        If a driver fails to free memory.

    See Also
    --------
    Pool.trim : One pool.

    Examples
    --------
    >>> gg.trim()
    """

@final
class Device:
    """A device: a GPU, or this machine's processor.

    There is one object per device, which lives as long as the process. ``with device:`` makes it the current device of
    the thread, and its context the CUDA or HIP current context.

    Parameters
    ----------
    device : str, int or Device, optional
        A name such as 'cuda:1' or 'cuda', or an ordinal of the default backend. None is the current device.
    pci : str, optional
        PCI address, such as '0000:65:00.0', in place of `device`.
    uuid : str or UUID, optional
        UUID of 16 or 32 hexadecimal digits, also with the prefix 'GPU-' or 'MIG-', in place of `device`.

    Raises
    ------
    InvalidArgumentError
        If there is no such device, or more than one of the three is given.
    BackendUnavailableError
        If the backend cannot be used here; `reports` has the reasons.
    TypeError
        If `device` is neither a name, an ordinal nor a Device.

    See Also
    --------
    devices : All devices.
    current_device : The device of calls that name none.
    Device.for_local_rank : The device for a process of MPI.

    Notes
    -----
    'cuda:1' is the driver's ordinal 1 under ``CUDA_VISIBLE_DEVICES``, as in other libraries. The device's context is
    created at the first use that needs it, not here.

    Examples
    --------
    >>> d = gg.Device()
    >>> gg.Device(f"{d.backend}:{d.ordinal}") is d
    True
    >>> with d:
    ...     a = gg.zeros(3)
    >>> a.device is d
    True
    """

    def __new__(cls, device: _DeviceLike | None = None, *, pci: str | None = None, uuid: object = None) -> Device: ...
    @classmethod
    def for_local_rank(cls, backend: str | None = None, /) -> Device:
        """Return the device for this process among those of its node.

        Parameters
        ----------
        backend : str, optional
            Name of the backend. None is the default backend.

        Returns
        -------
        Device
            The device whose ordinal is the local rank modulo the number of devices. Without a launcher it is device 0.

        Raises
        ------
        InvalidArgumentError
            If the variable with the rank is not a number.
        BackendUnavailableError
            If the backend cannot be used here.

        Notes
        -----
        The rank is read from the variables of Open MPI, Intel MPI, MPICH, MVAPICH, PALS, Flux, Slurm or torchrun.

        Examples
        --------
        >>> gg.Device.for_local_rank().set_current()
        """
    @classmethod
    def from_torch(cls, device: object, /) -> Device:
        """Return the device that PyTorch uses under a name.

        Parameters
        ----------
        device : torch.device, str, int or tensor
            Such as 'cuda:1', 'xpu:0' or 'cpu', or an object with an attribute `device`. Without a number it is torch's current one.

        Returns
        -------
        Device
            The same hardware: of backend cuda, or hip if torch was built for ROCm, for 'cuda'; of ze for 'xpu'; of host for 'cpu'.

        Raises
        ------
        InvalidArgumentError
            If gpuglue has no backend for it, or none of gpuglue's devices is that one.
        UnsupportedError
            If this version of torch does not report the UUID of an xpu device.
        BackendUnavailableError
            If the backend cannot be used here.
        ImportError
            If torch is not installed.

        See Also
        --------
        from_dlpack : A tensor's memory as an array.

        Notes
        -----
        torch.xpu counts SYCL's devices, so an xpu device is found by its UUID.

        Examples
        --------
        >>> # with torch: gg.Device.from_torch(tensor.device)
        """
    @property
    def backend(self) -> str:
        """Name of the backend, such as 'cuda'."""
    @property
    def ordinal(self) -> int:
        """Ordinal of the device, which depends on the backend's visibility variable."""
    @property
    def index(self) -> int:
        """The same as `ordinal`."""
    @property
    def name(self) -> str | None:
        """The driver's name of the device, or None."""
    @property
    def arch(self) -> str | None:
        """Architecture that images are built for, such as 'sm_90', or None."""
    @property
    def uuid(self) -> str | None:
        """UUID as 8-4-4-4-12 hexadecimal digits, or None."""
    @property
    def pci_bus_id(self) -> str | None:
        """PCI address, such as '0000:65:00.0', or None."""
    @property
    def numa_node(self) -> int | None:
        """NUMA node that the device is attached to, or None.

        For host it is the node of the processors that the process may use, or None if these are on several nodes.
        """
    @property
    def native_handles(self) -> tuple[int, ...]:
        """Handles of the vendor's driver, a tuple of ints.

        On cuda CUdevice and CUcontext; on hip the ordinal; on ze ze_device_handle_t, ze_context_handle_t and ze_driver_handle_t; on host
        empty.
        """
    @property
    def total_memory(self) -> int:
        """Size of the device's memory in bytes."""
    @property
    def integrated(self) -> bool:
        """Whether the device shares the memory of the host."""
    @property
    def attributes(self) -> dict[str, int]:
        """Limits and properties that the backend reports, a dict of int.

        The keys that a backend does not know are absent. Sizes are in bytes, clocks in kHz, and registers have
        32 bits.

        Examples
        --------
        >>> gg.Device().attributes["max_threads_per_block"]
        1024
        """
    @property
    def default_stream(self) -> Stream:
        """The Stream of calls that name none: on cuda and hip the legacy null stream."""
    @property
    def per_thread_stream(self) -> Stream:
        """CUDA's default stream of the calling thread; UnsupportedError on other backends."""
    @property
    def stream_priority_range(self) -> tuple[int, int]:
        """The least and the most urgent priority of streams, such as (0, -5)."""
    @property
    def pool(self) -> Pool:
        """The Pool of the device's memory."""
    @property
    def pinned_pool(self) -> Pool:
        """The Pool of pinned host memory for the device."""
    def memory_info(self) -> MemoryInfo:
        """Return the free and the total memory.

        Returns
        -------
        MemoryInfo
            `free` and `total` in bytes, as the driver reports them for all processes.

        Raises
        ------
        UnsupportedError
            If the driver does not report them.
        DeviceError
            If the driver fails.

        See Also
        --------
        Pool.stats : The memory that gpuglue's pools hold.

        Notes
        -----
        Free blocks in gpuglue's pools do not count as free here.

        Examples
        --------
        >>> info = gg.Device().memory_info()
        >>> 0 <= info.free <= info.total
        True
        """
    def stats(self) -> DeviceStats:
        """Measure load, memory, power, temperature, clocks and processes now.

        Returns
        -------
        DeviceStats
            None stands for a value that the vendor does not report. On host, and for load and power from Sysman, a value is the
            mean since the previous call, and None at the first.

        Raises
        ------
        UnsupportedError
            If the vendor's management library is missing, or does not know the device.

        See Also
        --------
        Device.memory_info : Free and total memory, from the driver.

        Notes
        -----
        The values are from NVML, AMD SMI or ROCm SMI, Sysman, or /proc, and need no context. The library is loaded at the first
        call, which may take a second. Other threads run meanwhile.

        Examples
        --------
        >>> stats = gg.Device("host").stats()
        >>> stats.memory_used < stats.memory_total
        True
        """
    def synchronize(self) -> None:
        """Wait for all work of the device.

        Raises
        ------
        DeviceError
            If work that was queued earlier failed.
        DeviceLostError
            If this process cannot use the device any more.
        UnsupportedError
            While any thread captures a stream of the device, or on hip of any device.
        KeyboardInterrupt
            If Ctrl-C ends the wait; the work continues.

        See Also
        --------
        Stream.synchronize : Wait for one stream.

        Notes
        -----
        This includes work on streams that gpuglue does not know. Other threads run meanwhile.

        Examples
        --------
        >>> gg.Device().synchronize()
        """
    def supports(self, op: str, /) -> bool:
        """Return whether device, driver and backend support an operation.

        Parameters
        ----------
        op : str
            Name of an operation of the backend, such as 'event_elapsed' or 'stream_host_func'; `gpuglue info --slots` lists them.

        Returns
        -------
        bool
            False if the operation would raise UnsupportedError.

        Raises
        ------
        InvalidArgumentError
            If there is no such operation.
        TypeError
            If `op` is not a str.

        Examples
        --------
        >>> gg.Device().supports("event_elapsed")
        True
        """
    def can_access(self, peer: _DeviceLike, /) -> bool:
        """Return whether a copy between two devices bypasses the host.

        Parameters
        ----------
        peer : Device, str, int or None
            The other device.

        Returns
        -------
        bool
            Whether each of the two can access the memory of the other. False for a device of another backend.

        Raises
        ------
        InvalidArgumentError
            If there is no such device.
        DeviceError
            If the driver fails.

        Examples
        --------
        >>> d = gg.Device()
        >>> d.can_access(d)
        True
        """
    def set_current(self) -> None:
        """Make this the current device of the thread.

        Raises
        ------
        DeviceError
            If the device's context cannot be created.
        BackendUnavailableError
            If the driver cannot be initialised.

        See Also
        --------
        current_device : How the current device is found.

        Notes
        -----
        Its context becomes the CUDA or HIP current context, so that your library runs there too. A ``with`` block takes
        precedence.

        Examples
        --------
        >>> gg.Device().set_current()
        """
    def __enter__(self) -> Self:
        """Make it the current device of the thread."""
    def __exit__(self, *args: object) -> None:
        """Restore exactly what was current before."""

def current_device() -> Device:
    """Return the device of calls that name none.

    Returns
    -------
    Device
        The first of: the innermost ``with``; the thread's ``set_current``; ``GPUGLUE_DEVICE``; the device of the CUDA or
        HIP current context; the default backend's first device that is not integrated; its device 0.

    Raises
    ------
    BackendUnavailableError
        If no backend can be used.
    InvalidArgumentError
        If ``GPUGLUE_DEVICE`` or ``GPUGLUE_BACKEND`` is not valid, or there is no such device.

    See Also
    --------
    Device.set_current : Choose it for a thread.

    Notes
    -----
    It is evaluated at every call, so ``torch.cuda.set_device`` is respected.

    Examples
    --------
    >>> d = gg.devices()[-1]
    >>> with d:
    ...     gg.current_device() is d
    True
    """

def current_stream(device: _DeviceLike | None = None) -> Stream:
    """Return the stream of calls that name none.

    Parameters
    ----------
    device : Device, str or int, optional
        The device. None is the current one.

    Returns
    -------
    Stream
        The innermost stream of the device that was entered by ``with``, else the device's default stream.

    Raises
    ------
    InvalidArgumentError
        If there is no such device, or ``GPUGLUE_DEVICE`` or ``GPUGLUE_BACKEND`` is not valid.
    BackendUnavailableError
        If no backend can be used.

    Examples
    --------
    >>> gg.current_stream() == gg.Device().default_stream
    True
    >>> with gg.Stream() as s:
    ...     gg.current_stream() == s
    True
    """

def synchronize(device: _DeviceLike | None = None) -> None:
    """Wait for all work of a device.

    Parameters
    ----------
    device : Device, str or int, optional
        The device. None is the current one.

    Raises
    ------
    InvalidArgumentError
        If there is no such device.
    DeviceError
        If work that was queued earlier failed.
    UnsupportedError
        While any thread captures a stream of the device, or on hip of any device.

    See Also
    --------
    Stream.synchronize : Wait for one stream.

    Notes
    -----
    This includes work on streams that gpuglue does not know. Other threads run meanwhile; Ctrl-C ends the wait.

    Examples
    --------
    >>> gg.synchronize()
    """

# ---- streams and events ------------------------------------------------------------------------------------

@final
class Stream:
    """A queue of work that runs in order on a device.

    ``with stream:`` makes it the current stream of the thread, on which calls without ``stream=`` run.

    Parameters
    ----------
    device : Device, str or int, optional
        Where the work runs. None is the current device.
    nonblocking : bool, default False
        On cuda and hip a stream is ordered with the legacy default stream, unless this is True.
    priority : int, default 0
        Lower numbers are more urgent. Clamped to `Device.stream_priority_range`.

    Raises
    ------
    InvalidArgumentError
        If the device does not exist, or the priority has more than 32 bits.
    DeviceError
        If the driver cannot create the stream.

    See Also
    --------
    Stream.borrow : Use a stream of another library.
    current_stream : The stream of calls that name none.

    Notes
    -----
    Where a function takes a stream, it also takes an object with ``__cuda_stream__``, a stream of torch, CuPy, numba or dpctl, and
    a native handle. Any thread may use or release a stream; releasing it does not wait.

    Examples
    --------
    >>> s = gg.Stream()
    >>> with s:
    ...     a = gg.ones(3)         # runs on s
    >>> s.synchronize()
    >>> s.done
    True
    """

    def __new__(cls, device: _DeviceLike | None = None, nonblocking: bool = False, priority: int = 0) -> Stream: ...
    @classmethod
    def borrow(cls, obj: _StreamLike, device: _DeviceLike | None = None) -> Stream:
        """Use a stream that another library owns.

        Parameters
        ----------
        obj : object or int
            An object with ``__cuda_stream__``, a stream of torch, CuPy, numba or dpctl, or a native handle. On cuda and hip the
            handles 0 and 1 are the legacy default stream; on cuda 2 is the per-thread one.
        device : Device, str or int, optional
            Device of the stream. None is what the object reports, else the current device.

        Returns
        -------
        Stream
            It keeps `obj` alive, and never destroys its stream.

        Raises
        ------
        TypeError
            If `obj` is none of these.
        InvalidArgumentError
            If the stream is of another device, or the backend does not know the handle.
        UnsupportedError
            If a stream of CUDA or HIP is given for a device that is neither.

        Notes
        -----
        A handle given as a number keeps nothing alive: keep its stream alive until each call that uses it has returned.

        Examples
        --------
        >>> s = gg.Stream()
        >>> gg.Stream.borrow(s.handle, s.device).handle == s.handle
        True
        """
    @property
    def device(self) -> Device:
        """The Device on which the work runs."""
    @property
    def done(self) -> bool:
        """Whether all work queued so far is done; does not wait. UnsupportedError if the stream is captured."""
    @property
    def handle(self) -> int:
        """The native handle, an int: a CUstream, a hipStream_t, a ze_command_list_handle_t."""
    @property
    def __cuda_stream__(self) -> Callable[[], tuple[int, int]]:
        """The stream protocol, on cuda and hip: a function that returns (0, handle). AttributeError elsewhere."""
    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The handle as a ctypes.c_void_p: ctypes takes the stream as an argument."""
    def synchronize(self) -> None:
        """Wait until all work queued so far is done.

        Raises
        ------
        DeviceError
            If the work, or earlier work of the device, failed.
        InvalidArgumentError
            If the stream is closed.
        UnsupportedError
            If the stream is captured.
        KeyboardInterrupt
            If Ctrl-C ends the wait; the work continues.

        See Also
        --------
        Stream.done : Query without waiting.
        Stream.wait : Order streams without making the host wait.

        Notes
        -----
        Other threads run meanwhile.

        Examples
        --------
        >>> s = gg.Stream()
        >>> a = gg.zeros(3, stream=s)
        >>> s.synchronize()
        """
    def wait(self, other: Event | _StreamLike, /) -> None:
        """Make later work of this stream wait for an event or another stream.

        Parameters
        ----------
        other : Event or stream
            The last record of the event, or the work that is enqueued on the stream now.

        Raises
        ------
        InvalidArgumentError
            If one of the two is closed, they are of different backends, or the event was recorded in a capture that has ended.
        UnsupportedError
            If the stream is captured, and the work is outside of its capture.
        TypeError
            If `other` is neither an event nor a stream.

        Notes
        -----
        The device waits; the call returns at once. An event that was never recorded adds no wait. Streams of
        different devices of one backend may wait for each other.

        Examples
        --------
        >>> s, t = gg.Stream(), gg.Stream()
        >>> a = gg.ones(3, stream=s)
        >>> t.wait(s)
        >>> a.fill(2, stream=t)        # runs after the first fill
        >>> a.get(stream=t)
        array([2., 2., 2.])
        """
    def completion(self) -> Event:
        """Return an event for the work that is enqueued on this stream now, to be awaited.

        Returns
        -------
        Event
            A new event, recorded on this stream.

        Raises
        ------
        InvalidArgumentError
            If the stream is closed.

        See Also
        --------
        Stream.synchronize : Wait without asyncio.
        Event : Any event can be awaited.

        Notes
        -----
        The call does not wait. Awaiting raises the error of the work. One thread of gpuglue serves all awaits of the process.

        Examples
        --------
        >>> import asyncio
        >>> s = gg.Stream()
        >>> async def main():
        ...     a = gg.ones(3, stream=s)
        ...     await s.completion()
        >>> asyncio.run(main())
        >>> s.done
        True
        """
    def add_callback(self, callback: Callable[[], object], /) -> None:
        """Call a function when all work queued so far is done.

        Parameters
        ----------
        callback : callable
            Called without arguments, on a thread of gpuglue. The callbacks of a stream run in the order in which they were
            added.

        Raises
        ------
        TypeError
            If `callback` is not callable, or ``async``.
        InvalidArgumentError
            If the stream is closed.

        See Also
        --------
        Stream.completion : The same for asyncio.

        Notes
        -----
        The call does not wait, and later work of the stream does not wait for the callback. The callback may call gpuglue.
        While it runs, the other callbacks and awaits of the process wait, so start a thread for long work.

        ``synchronize()`` of the stream or its device returns after the callbacks that were added before it was called, and
        raises their exceptions; several are raised as an ExceptionGroup. An ``await`` or ``synchronize()`` of a later event of
        the stream, and a read on the stream, raise those of callbacks that have run, for which they do not wait. If the work
        fails, the callback is not called, and the wait raises the error. Exceptions that no wait has raised are printed at exit. Callbacks whose work is not
        complete at exit are not called.

        Examples
        --------
        >>> s = gg.Stream()
        >>> a = gg.zeros(3, stream=s)
        >>> seen = []
        >>> s.add_callback(lambda: seen.append("done"))
        >>> s.synchronize()
        >>> seen
        ['done']
        """
    def record(self, event: Event | None = None) -> Event:
        """Record the work that is enqueued on this stream in an event.

        Parameters
        ----------
        event : Event, optional
            The event; its former record is replaced. None creates a new event.

        Returns
        -------
        Event
            `event`, or the new one.

        Raises
        ------
        InvalidArgumentError
            If the stream or the event is closed, or the event is of another device.
        TypeError
            If `event` is not an Event.

        See Also
        --------
        Event.record : The same from the other side.

        Notes
        -----
        The call does not wait.

        Examples
        --------
        >>> s = gg.Stream()
        >>> e = s.record()
        >>> e.synchronize()
        >>> e.done
        True
        """
    def close(self) -> None:
        """Release the stream; queued work still runs.

        The call never waits, and may be repeated. Any other use of a closed stream raises InvalidArgumentError.

        Examples
        --------
        >>> s = gg.Stream()
        >>> s.close()
        """
    def __enter__(self) -> Self:
        """Make it the current stream of the thread."""
    def __exit__(self, *args: object) -> None:
        """Restore exactly what was current before."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Event:
    """A point in the work of a stream.

    Record it, then wait for it on the host or on other streams, or measure the time between two.

    Parameters
    ----------
    device : Device, str or int, optional
        The device. None is the device of the first stream that records the event.
    timing : bool, default False
        Whether `elapsed_since` can be used.
    blocking : bool, default False
        Whether a waiting thread sleeps at once, instead of spinning first. It saves processor time and costs latency.

    Raises
    ------
    InvalidArgumentError
        If the device does not exist.
    DeviceError
        If the driver cannot create the event.

    See Also
    --------
    Stream.wait : Make a stream wait for an event.
    Timer : Measure the work of a with-block.

    Notes
    -----
    Any thread may use or release an event. An event that was never recorded counts as done. In asyncio, ``await event`` waits for
    the last record without blocking the loop; cancelling the wait does not affect the work.

    Examples
    --------
    >>> start, stop = gg.Event(timing=True), gg.Event(timing=True)
    >>> start.record()
    <gpuglue.Event on ...>
    >>> a = gg.zeros(1000)
    >>> stop.record().synchronize()
    >>> stop.elapsed_since(start) >= 0
    True
    """

    def __new__(cls, device: _DeviceLike | None = None, timing: bool = False, blocking: bool = False) -> Event: ...
    def __await__(self) -> Generator[Any, None, None]: ...
    @property
    def device(self) -> Device | None:
        """The Device that the event is bound to; None before the first record."""
    @property
    def done(self) -> bool:
        """Whether the recorded point is reached; True if nothing was recorded. InvalidArgumentError if recorded in a capture."""
    @property
    def handle(self) -> int:
        """The native handle, an int: a CUevent, a hipEvent_t, a ze_event_handle_t."""
    @property
    def timing(self) -> bool:
        """Whether `elapsed_since` can be used."""
    @property
    def blocking(self) -> bool:
        """Whether a waiting thread sleeps at once."""
    def record(self, stream: _StreamLike | None = None) -> Self:
        """Record the work that is enqueued on a stream.

        Parameters
        ----------
        stream : stream, optional
            The stream. None is the current stream of the event's device.

        Returns
        -------
        Event
            The event itself.

        Raises
        ------
        InvalidArgumentError
            If the event or the stream is closed, or the two are of different devices.
        TypeError
            If `stream` is not a stream.

        Notes
        -----
        The call does not wait. A later record replaces this one; streams that already wait for this one are not affected.

        Examples
        --------
        >>> e = gg.Event().record()
        >>> e.synchronize()
        """
    def synchronize(self) -> None:
        """Wait until the recorded point is reached.

        Raises
        ------
        DeviceError
            If the work before it, or earlier work of the device, failed.
        InvalidArgumentError
            If the event is closed, or was recorded in a capture.
        KeyboardInterrupt
            If Ctrl-C ends the wait; the work continues.

        Notes
        -----
        The call returns at once if nothing was recorded. Other threads run meanwhile.

        Examples
        --------
        >>> gg.Event().record().synchronize()
        """
    def elapsed_since(self, start: Event, /) -> float:
        """Return the time between two records.

        Parameters
        ----------
        start : Event
            The earlier event.

        Returns
        -------
        float
            Milliseconds of the device from the record of `start` to that of this event.

        Raises
        ------
        InvalidArgumentError
            If one of them was made without ``timing=True``, is not recorded, is not done, was recorded in a capture, or is of
            another device.
        UnsupportedError
            If the device has no timers.
        TypeError
            If `start` is not an Event.

        Notes
        -----
        The call does not wait: synchronize the later event first.

        Examples
        --------
        >>> start = gg.Event(timing=True).record()
        >>> stop = gg.Event(timing=True).record()
        >>> stop.synchronize()
        >>> isinstance(stop.elapsed_since(start), float)
        True
        """
    def close(self) -> None:
        """Release the event.

        The call never waits, and may be repeated. Any other use of a closed event raises InvalidArgumentError.

        Examples
        --------
        >>> e = gg.Event().record()
        >>> e.close()
        """

@final
class Timer:
    """Measure the time that the device takes for the work of a with-block.

    Parameters
    ----------
    stream : stream, optional
        The stream that is measured. None is the current stream at the beginning of the block.

    Raises
    ------
    InvalidArgumentError
        If the stream is closed.
    TypeError
        If `stream` is not a stream.

    See Also
    --------
    Event.elapsed_since : The time between any two points.

    Notes
    -----
    Neither the beginning nor the end of the block waits. Only `ms` does.

    Examples
    --------
    >>> with gg.Timer() as t:
    ...     a = gg.zeros(1000)
    >>> t.ms >= 0
    True
    """

    def __new__(cls, stream: _StreamLike | None = None) -> Timer: ...
    @property
    def ms(self) -> float:
        """Milliseconds between start and stop; waits for the stop."""
    def __enter__(self) -> Self:
        """Record the start."""
    def __exit__(self, *args: object) -> None:
        """Record the stop; does not wait."""

# ---- graphs ------------------------------------------------------------------------------------------------

@final
class Graph:
    """Work that `capture` recorded, and that each launch runs again.

    See Also
    --------
    capture : Make a graph.

    Notes
    -----
    A graph holds the memory of its operations, and the owners of host memory, until it is closed and its launches are done.

    Examples
    --------
    >>> stream = gg.Stream(nonblocking=True)
    >>> a = gg.zeros(4, np.float32)
    >>> gg.synchronize()
    >>> with gg.capture(stream) as graph:
    ...     a.fill(1)
    >>> graph.launch(stream)
    >>> a.get()
    array([1., 1., 1., 1.], dtype=float32)
    """

    def launch(self, stream: _StreamLike | None = None) -> None:
        """Queue all of the graph's work as one operation.

        Parameters
        ----------
        stream : stream, optional
            The stream to run on. None is the current stream of the graph's device, which first waits, on the device, for all
            unfinished uses of the graph's memory.

        Raises
        ------
        InvalidArgumentError
            If the graph is closed or still being captured, or the stream is closed or of another device.
        UnsupportedError
            If the stream is captured.
        DeviceError
            If the driver reports an error.

        See Also
        --------
        Graph.update : Change the arguments of later launches.

        Notes
        -----
        The call does not wait. Launches of one graph do not overlap on the device. For launches that overlap, capture the work
        twice.

        Examples
        --------
        >>> def repeat(graph, stream, times):
        ...     for _ in range(times):
        ...         graph.launch(stream)
        """
    def update(self, other: Graph, /) -> None:
        """Replace the arguments of later launches by those of another graph of the same operations.

        Parameters
        ----------
        other : Graph
            A graph of the same device, which stays as it is.

        Raises
        ------
        InvalidArgumentError
            If the graphs differ in more than arguments that the driver can change, or are of two devices. Nothing is changed
            then: use `other` itself.
        UnsupportedError
            If the driver cannot change graphs (before CUDA 12.0).
        TypeError
            If `other` is not a Graph.

        See Also
        --------
        capture : Make a graph.

        Notes
        -----
        Updating a graph is faster than creating one. Launches in flight are not affected.

        Examples
        --------
        >>> def again(graph, stream, work):
        ...     with gg.capture(stream) as other:
        ...         work()
        ...     graph.update(other)
        """
    def close(self) -> None:
        """Destroy the graph once its launches are done, and release its memory.

        The call may be repeated. Any other use of a closed graph raises InvalidArgumentError. In the block of `capture` it drops
        what was captured: later work of the block runs, and the end of the block raises InvalidArgumentError.

        Examples
        --------
        >>> def once(graph):
        ...     graph.launch()
        ...     graph.close()
        """
    @property
    def device(self) -> Device:
        """The Device of the captured stream."""

# ---- memory ------------------------------------------------------------------------------------------------

@final
class Buffer:
    r"""A block of device, pinned or managed memory.

    `alloc`, `alloc_pinned` and `alloc_managed` return one, and so do `host_register` and `Buffer.from_ptr` for existing
    memory. ``with buffer:`` closes it at the end.

    See Also
    --------
    GPUArray : Memory with a shape and a dtype.

    Notes
    -----
    ctypes takes a buffer as a pointer. The host reads and writes pinned and managed memory through the buffer protocol, which
    waits for queued work on it: ``numpy.asarray(buffer)``, ``memoryview(buffer)``. A closed buffer cannot be used; its
    memory is released once no view and no queued work uses it.

    Examples
    --------
    >>> with gg.alloc_pinned(4) as buffer:
    ...     view = np.asarray(buffer)
    ...     view[:] = [1, 2, 3, 4]
    >>> bytes(view)
    b'\x01\x02\x03\x04'
    """

    @property
    def ptr(self) -> int:
        """Address of the first byte, an int; 0 if there are no bytes."""
    @property
    def nbytes(self) -> int:
        """Size in bytes."""
    @property
    def device(self) -> Device:
        """The Device that the memory belongs to."""
    @property
    def stream(self) -> Stream | None:
        """The Stream that was given to `alloc`, or None."""
    @property
    def kind(self) -> Literal["device", "pinned", "managed"]:
        """Kind of memory: 'device', 'pinned' or 'managed'."""
    @property
    def numa_node(self) -> int | None:
        """NUMA node of the memory's first page, or None.

        It is None for the memory of a GPU, and for pages that nothing has touched yet. Pinned memory is allocated on its device's
        node (`Device.numa_node`), if that node has room and the calling thread has no memory policy of its own, as numactl sets
        it.
        """
    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The address as a ctypes.c_void_p: ctypes takes the buffer as an argument."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's description of pinned or managed memory; AttributeError for device memory."""
    @classmethod
    def from_ptr(
        cls, ptr: SupportsIndex, nbytes: SupportsIndex, device: _DeviceLike | None = None, *, owner: object = None
    ) -> Buffer:
        """Make a Buffer over memory that something else owns.

        Parameters
        ----------
        ptr : int
            Address of the first byte, of device, pinned or managed memory.
        nbytes : int
            Size in bytes.
        device : Device, str or int, optional
            The device. None is what the driver reports.
        owner : object, optional
            Object that keeps the memory alive. It is released when the buffer is closed and the queued work on it is done.

        Returns
        -------
        Buffer
            A buffer of the kind that the driver reports.

        Raises
        ------
        InvalidArgumentError
            If no driver in use knows the address, it is of another device, or its allocation ends before `nbytes`.

        See Also
        --------
        asarray : An array at an address.
        pointer_info : What the driver reports.

        Notes
        -----
        A part of gpuglue's own pinned memory shares the use tracking of the whole.

        Examples
        --------
        >>> whole = gg.alloc(1024)
        >>> part = gg.Buffer.from_ptr(whole.ptr + 512, 512, owner=whole)
        >>> part.nbytes, part.kind
        (512, 'device')
        """
    def prefetch(self, device: _DeviceLike | None = None, stream: _StreamLike | None = None) -> None:
        """Move managed memory to its device or to the host.

        Parameters
        ----------
        device : Device, str or int, optional
            The memory's own device, or 'host'. None is the device.
        stream : stream, optional
            Stream on which the memory moves. None is the current stream.

        Raises
        ------
        InvalidArgumentError
            If the memory is not managed, the buffer is closed, or the device is another one.
        UnsupportedError
            If the device cannot prefetch.

        See Also
        --------
        Buffer.advise : Advise the driver how the memory will be used.

        Notes
        -----
        The call does not wait. Without it, the driver moves the memory when it is accessed.

        Examples
        --------
        >>> if gg.Device().supports("mem_prefetch"):
        ...     with gg.alloc_managed(4096) as buffer:
        ...         buffer.prefetch("host")
        """
    def advise(self, advice: str, device: _DeviceLike | None = None) -> None:
        """Advise the driver how managed memory will be used.

        Parameters
        ----------
        advice : str
            'read_mostly', 'preferred_location', 'accessed_by' or 'coarse_grained' (hip only: writes are visible to others at the end
            of a kernel). To revoke it: 'not_read_mostly', 'no_preferred_location', 'not_accessed_by' or 'not_coarse_grained'.
        device : Device, str or int, optional
            The processor that the advice is for: the memory's own device, or 'host'. None is the device.

        Raises
        ------
        InvalidArgumentError
            If the advice is none of these, the memory is not managed, or the buffer is closed.
        UnsupportedError
            If the device takes no advice.

        Examples
        --------
        >>> if gg.Device().supports("mem_advise"):
        ...     with gg.alloc_managed(4096) as buffer:
        ...         buffer.advise("read_mostly")
        """
    def record_use(self, stream: _StreamLike, /) -> None:
        """Record that work which gpuglue did not submit uses the memory.

        Parameters
        ----------
        stream : stream
            Stream on which the work is enqueued.

        Raises
        ------
        InvalidArgumentError
            If the buffer or the stream is closed, or the stream is of another device.
        TypeError
            If the argument is not a stream.

        Notes
        -----
        Call it after your library has enqueued its work, and before you close the buffer. Implicit operations then wait for
        the work that is enqueued on the stream at this time, and the memory is not reused before it is complete. The call does not wait.

        Examples
        --------
        >>> s = gg.Stream()
        >>> buffer = gg.alloc(1024)
        >>> # your library: launch(buffer.ptr, s.handle)
        >>> buffer.record_use(s)
        >>> buffer.close()
        """
    def release_captured(self) -> None:
        """Declare that no captured graph that uses the memory will run again.

        Memory that was used during a stream capture is not freed before this call, because the graph may run again.

        Raises
        ------
        InvalidArgumentError
            If the buffer is closed.

        Examples
        --------
        >>> buffer = gg.alloc(1024)
        >>> # after the graphs that use it have been destroyed
        >>> buffer.release_captured()
        """
    def ipc_handle(self) -> IpcHandle:
        """Return a handle with which another process opens the memory.

        Returns
        -------
        IpcHandle
            Send it to the other process, by pickle or as bytes.

        Raises
        ------
        UnsupportedError
            If the backend or its driver has no such handles.
        InvalidArgumentError
            If the memory is not gpuglue's own device memory, or the buffer is closed.

        See Also
        --------
        IpcHandle.open : The other side.

        Notes
        -----
        The call waits for the work on the memory that gpuglue knows of: nothing orders the work of two processes. Keep the
        buffer open until the others have closed theirs.

        Examples
        --------
        >>> with gg.alloc(1024) as buffer:
        ...     if gg.Device().supports("ipc_export"):
        ...         handle = buffer.ipc_handle()
        """
    def close(self) -> None:
        """Release the memory, as soon as nothing uses it.

        The call never waits, and may be repeated. Any other use of a closed buffer raises InvalidArgumentError.

        Examples
        --------
        >>> buffer = gg.alloc(1024)
        >>> buffer.close()
        """
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """For NumPy: pinned or managed memory as an array of bytes. TypeError for device memory."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    __array_ufunc__: None
    def __enter__(self) -> Self:
        """Return the buffer itself."""
    def __exit__(self, *args: object) -> None:
        """Close the buffer."""

@final
class IpcHandle:
    """A handle of device memory for another process of this machine.

    `Buffer.ipc_handle` makes one. It can be pickled, compared, and written as bytes.

    Parameters
    ----------
    data : bytes
        What ``bytes(handle)`` returned in the other process.

    Raises
    ------
    InvalidArgumentError
        If the bytes are not those of a handle.
    TypeError
        If `data` is not bytes.

    See Also
    --------
    Buffer.ipc_handle : Make a handle.

    Notes
    -----
    The exporting process must keep its Buffer until the others have closed theirs: closed memory may be reused.

    Examples
    --------
    >>> with gg.alloc(1024) as buffer:
    ...     if gg.Device().supports("ipc_export"):
    ...         handle = buffer.ipc_handle()
    ...         assert gg.IpcHandle(bytes(handle)) == handle
    """

    def __new__(cls, data: bytes) -> Self: ...
    def open(self) -> Buffer:
        """Open the memory in this process.

        Returns
        -------
        Buffer
            The same memory as in the exporting process.

        Raises
        ------
        InvalidArgumentError
            If this is the process that made the handle, or the device is not visible here.
        UnsupportedError
            If the backend has no such handles.
        DeviceError
            If the exporting process has ended or released its memory.

        Notes
        -----
        gpuglue does not order the work of the two processes: synchronize before you notify the other one.
        """
    @property
    def backend(self) -> str:
        """Name of the backend, such as 'cuda'."""
    @property
    def device_uuid(self) -> str:
        """UUID of the device that has the memory."""
    @property
    def nbytes(self) -> int:
        """Size of the memory in bytes."""
    @property
    def offset(self) -> int:
        """Offset in bytes into the driver's allocation, all of which the other process maps."""
    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle."""
    def __bytes__(self) -> bytes:
        """All of the handle as bytes."""
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

def alloc(nbytes: SupportsIndex, device: _DeviceLike | None = None, stream: _StreamLike | None = None) -> Buffer:
    """Allocate device memory without initialising it.

    Parameters
    ----------
    nbytes : int
        Size in bytes; 0 is allowed.
    device : Device, str or int, optional
        Where the memory is. None is the current device, or that of `stream`.
    stream : stream, optional
        Stream on which the memory is first used. None is the current stream.

    Returns
    -------
    Buffer
        A block that is aligned to 256 bytes.

    Raises
    ------
    OutOfMemoryError
        If there is not enough device memory, or the pool's limit is reached. The message has the sizes.
    InvalidArgumentError
        If the size is negative, or the device does not exist.
    TypeError
        If the size is not an int.

    See Also
    --------
    empty : An array.
    alloc_pinned : Memory of the host.

    Notes
    -----
    The memory comes from `Device.pool`, or from `set_allocator`. The first use on another stream waits, on the device, for
    the work that was enqueued on the allocating stream. When memory has run out, the call waits up to two
    seconds for closed memory that is still in use.

    Examples
    --------
    >>> buffer = gg.alloc(1024)
    >>> buffer.nbytes, buffer.kind
    (1024, 'device')
    """

def alloc_pinned(nbytes: SupportsIndex, device: _DeviceLike | None = None) -> Buffer:
    """Allocate pinned (page-locked) host memory without initialising it.

    Parameters
    ----------
    nbytes : int
        Size in bytes; 0 is allowed.
    device : Device, str or int, optional
        Device that copies from and to it. None is the current device.

    Returns
    -------
    Buffer
        Memory that the host can access, and that can be copied asynchronously.

    Raises
    ------
    OutOfMemoryError
        If there is not enough memory, or the pool's limit is reached.
    InvalidArgumentError
        If the size is negative, or the device does not exist.
    TypeError
        If the size is not an int.

    See Also
    --------
    empty_pinned : A NumPy array in pinned memory.
    host_register : Pin memory that exists.

    Notes
    -----
    The memory comes from `Device.pinned_pool`. It is reused only when no stream uses it any more.

    Examples
    --------
    >>> buffer = gg.alloc_pinned(8)
    >>> np.asarray(buffer).shape
    (8,)
    """

def set_allocator(allocator: Literal["torch", "cupy", "rmm"] | Callable[[int, Device, Stream], object] | None, /) -> None:
    """Choose where later allocations of device memory come from.

    Parameters
    ----------
    allocator : {'torch', 'cupy', 'rmm'}, callable or None
        The package whose pool is used; None for gpuglue's own pool; or a function ``allocator(nbytes, device, stream)``. It
        returns an object that owns at least that many bytes on that device, ready for use on that stream, with the address
        in ``ptr`` and, if it has such an attribute, the size in ``nbytes`` or ``size``.

    Raises
    ------
    ValueError
        If `allocator` is none of these.
    ImportError
        If the package is not installed.

    See Also
    --------
    Pool : The memory that gpuglue keeps itself.

    Notes
    -----
    The setting applies to the whole process. The returned object is released once the memory is closed and all of gpuglue's work
    on it is done. Existing memory keeps its allocator. Pinned and managed memory is not affected. If the function raises a
    MemoryError, it is called once more, after `trim`.

    Examples
    --------
    >>> def allocator(nbytes, device, stream):
    ...     gg.set_allocator(None)
    ...     return gg.alloc(nbytes, device, stream)
    >>> gg.set_allocator(allocator)
    >>> gg.zeros(3).get()
    array([0., 0., 0.])
    """

def alloc_managed(nbytes: SupportsIndex, device: _DeviceLike | None = None) -> Buffer:
    """Allocate memory that the driver moves between host and device.

    Parameters
    ----------
    nbytes : int
        Size in bytes; 0 is allowed.
    device : Device, str or int, optional
        The device. None is the current device.

    Returns
    -------
    Buffer
        Memory that host and device access at one address.

    Raises
    ------
    UnsupportedError
        If the device has no managed memory.
    OutOfMemoryError
        If there is not enough memory.
    InvalidArgumentError
        If the size is negative, or the device does not exist.

    See Also
    --------
    Buffer.prefetch : Move the memory.
    Buffer.advise : Advise the driver how it will be used.

    Examples
    --------
    >>> if gg.Device().attributes.get("managed_memory"):
    ...     buffer = gg.alloc_managed(1024)
    """

def host_register(obj: _HasBuffer, device: _DeviceLike | None = None) -> Buffer:
    """Pin the memory of an existing array, so that copies can be asynchronous.

    Parameters
    ----------
    obj : ndarray or buffer
        A writable, contiguous object with the buffer protocol.
    device : Device, str or int, optional
        Device that copies from and to it. None is the current device.

    Returns
    -------
    Buffer
        The same memory. Once it is closed and the queued work on it is done, the next allocation or wait on the device unlocks
        the pages and releases `obj`.

    Raises
    ------
    BufferError
        If the memory is read-only or not contiguous.
    TypeError
        If `obj` has no buffer protocol.
    InvalidArgumentError
        If a part of it is registered already.
    UnsupportedError
        If the device cannot register memory.

    See Also
    --------
    empty_pinned : New pinned memory.

    Notes
    -----
    The system locks whole pages, which takes time: register memory that is copied often.

    Examples
    --------
    >>> host = np.zeros(1000)
    >>> if gg.Device().supports("mem_register"):
    ...     with gg.host_register(host):
    ...         a = gg.to_gpu(host)
    """

@final
class PointerInfo(structseq[Any], tuple[str | None, Device | None, Literal["host", "device", "pinned", "managed"], int | None, int | None]):
    """What the drivers in use report about an address: a named tuple."""

    __match_args__: Final = ("backend", "device", "kind", "base", "size")
    @property
    def backend(self) -> str | None:
        """Name of the backend; None for memory that no driver in use knows."""
    @property
    def device(self) -> Device | None:
        """The Device, or None."""
    @property
    def kind(self) -> Literal["host", "device", "pinned", "managed"]:
        """Kind of memory: 'host', 'device', 'pinned' or 'managed'."""
    @property
    def base(self) -> int | None:
        """Address of the driver's allocation, or None if it is not reported."""
    @property
    def size(self) -> int | None:
        """Size of the driver's allocation in bytes, or None."""

def pointer_info(ptr: SupportsIndex, /) -> PointerInfo:
    """Return what the drivers in use report about an address.

    Parameters
    ----------
    ptr : int
        The address.

    Returns
    -------
    PointerInfo
        Backend, device and kind, and the driver's allocation, which may be larger than a Buffer in it.

    Raises
    ------
    InvalidArgumentError
        If the number is not an address.
    BackendUnavailableError
        If no backend can be used.

    Notes
    -----
    For ordinary host memory `kind` is 'host', and the other members are None.

    Examples
    --------
    >>> a = gg.zeros(3)
    >>> gg.pointer_info(a.ptr).kind
    'device'
    """

def empty_pinned(
    shape: _Shape, dtype: npt.DTypeLike = ..., order: _Order = "C", device: _DeviceLike | None = None
) -> npt.NDArray[Any]:
    """Make a NumPy array in pinned memory without initialising it.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    device : Device, str or int, optional
        Device that copies from and to it. None is the current device.

    Returns
    -------
    ndarray
        An ordinary NumPy array; the memory is released with its last view.

    Raises
    ------
    OutOfMemoryError
        If there is not enough memory, or the pool's limit is reached.
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    TypeError
        If the dtype holds Python objects.

    See Also
    --------
    zeros_pinned : The same, filled with zeros.
    GPUArray.set_async : Copy from it asynchronously.

    Examples
    --------
    >>> host = gg.empty_pinned((2, 3), np.float32)
    >>> host.shape, host.dtype
    ((2, 3), dtype('float32'))
    """

def zeros_pinned(
    shape: _Shape, dtype: npt.DTypeLike = ..., order: _Order = "C", device: _DeviceLike | None = None
) -> npt.NDArray[Any]:
    """Make a NumPy array of zeros in pinned memory.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    device : Device, str or int, optional
        Device that copies from and to it. None is the current device.

    Returns
    -------
    ndarray
        An ordinary NumPy array; the memory is released with its last view.

    Raises
    ------
    OutOfMemoryError
        If there is not enough memory, or the pool's limit is reached.
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    TypeError
        If the dtype holds Python objects.

    See Also
    --------
    empty_pinned : The same, not initialised.

    Examples
    --------
    >>> gg.zeros_pinned(3)
    array([0., 0., 0.])
    """

def copy(
    dst: GPUArray | Buffer | _HasBuffer | npt.NDArray[Any],
    src: GPUArray | Buffer | _HasBuffer | npt.NDArray[Any],
    stream: _StreamLike | None = None,
    *,
    require_async: bool = False,
) -> None:
    """Copy between arrays, buffers and host memory.

    Parameters
    ----------
    dst : GPUArray, Buffer or ndarray
        Destination; at least one of the two is a GPUArray or a Buffer.
    src : GPUArray, Buffer or ndarray
        Source. Between arrays shape and dtype must be equal. A Buffer is bytes, at least as many as the other has.
    stream : stream, optional
        Stream on which the copy runs, of either device. None is the current stream, after all unfinished work on both.
    require_async : bool, default False
        Raise instead of waiting. Needs `stream`, unless both sides are on devices.

    Raises
    ------
    InvalidArgumentError
        If shapes or sizes differ, the two overlap, or the destination is read-only.
    TypeError
        If the dtypes differ, or one of the two is not an array or a buffer.
    UnsupportedError
        If ``require_async=True`` and the call would have to wait.

    See Also
    --------
    GPUArray.get : To the host.
    GPUArray.set : From the host.

    Notes
    -----
    Without a stream, host memory has been read or written on return. With a stream, the copy may still be running if the host
    memory is pinned. Copies between two devices are direct if these can access each other; otherwise they pass through the
    host and are complete on return.

    Examples
    --------
    >>> a, b = gg.arange(3), gg.empty(3, np.int64)
    >>> gg.copy(b, a)
    >>> b.tolist()
    [0, 1, 2]
    """

def fill(dst: GPUArray | Buffer, value: Any, stream: _StreamLike | None = None) -> None:
    r"""Set every element of an array, or the bytes of a buffer.

    Parameters
    ----------
    dst : GPUArray or Buffer
        Array or buffer to fill.
    value : scalar or bytes
        For an array one value, cast as NumPy assigns it. For a Buffer an int from 0 to 255, or up to 65536 bytes that are
        repeated to its end.
    stream : stream, optional
        Stream on which the fill runs. None is the current stream, after all unfinished work on the memory.

    Raises
    ------
    InvalidArgumentError
        If the array is read-only, or the number of bytes does not divide the size of the Buffer.
    ValueError or TypeError
        If `dst` is neither of the two, or the value cannot be cast.

    See Also
    --------
    GPUArray.fill : The same as a method.

    Notes
    -----
    The fill is queued. Pinned memory is filled by the host, after it has waited for the stream.

    Examples
    --------
    >>> buffer = gg.alloc_pinned(4)
    >>> gg.fill(buffer, b"\x01\x02")
    >>> bytes(buffer)
    b'\x01\x02\x01\x02'
    """

# ---- arrays --------------------------------------------------------------------------------------------------

@final
class GPUArray:
    """An array in device memory, with a shape and a dtype.

    It has NumPy's layout, but no arithmetic. ``get`` copies the elements to the host. Libraries with DLPack or the CUDA Array
    Interface can use the memory in place.

    Parameters
    ----------
    shape_or_data : int, sequence of int, or buffer
        An int, a tuple or a list is the shape of an uninitialised array. A NumPy array or another object with the buffer
        protocol is data, which is copied.
    dtype : dtype, default 'float64'
        Type of the elements. Data keeps its own type if `dtype` is not given, and is cast on the host otherwise.
    order : {'C', 'F', 'A', 'K'}, optional
        Order of the axes in memory. None is 'C' for a shape, and the order of the data for data.
    device : Device, str or int, optional
        Where the memory is. None is the current device.
    stream : stream, optional
        Stream that the memory is allocated for and that the copy runs on. None is the current stream.

    Raises
    ------
    TypeError
        If the first argument is neither a shape nor data, or is an array on a device.
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    OutOfMemoryError
        If there is not enough device memory.

    See Also
    --------
    empty : An uninitialised array of a shape.
    to_gpu : A copy of a host array.
    asarray : An array over memory that exists.

    Notes
    -----
    The data has been read when the call returns. ctypes takes an array as a pointer.
    The memory is released when the last reference is gone and the queued work on it has finished.

    Examples
    --------
    >>> a = gg.GPUArray((2, 3), np.float32)
    >>> a.shape, a.nbytes
    ((2, 3), 24)
    >>> gg.GPUArray(np.arange(3)).get()
    array([0, 1, 2])
    """

    def __new__(
        cls,
        shape_or_data: _Shape | _HasBuffer | npt.NDArray[Any],
        dtype: npt.DTypeLike = ...,
        order: _OrderLike | None = None,
        device: _DeviceLike | None = None,
        stream: _StreamLike | None = None,
    ) -> GPUArray: ...
    @property
    def ptr(self) -> int:
        """Address of the first element, an int; 0 if there are no elements."""
    @property
    def gpudata(self) -> int:
        """The same as `ptr`, as PyCUDA names it."""
    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """The address as a ctypes.c_void_p: ctypes takes the array as an argument."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension, a tuple of int."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each dimension, a tuple of int."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements, a numpy.dtype."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def device(self) -> Device:
        """The Device whose memory this is."""
    @property
    def base(self) -> object | None:
        """The object whose memory this is a view of, or None."""
    def get(self, out: npt.NDArray[Any] | None = None, stream: _StreamLike | None = None) -> npt.NDArray[Any]:
        """Copy the elements to the host.

        Parameters
        ----------
        out : ndarray, optional
            Array of the same shape and dtype that receives the elements. None makes a new one, in the order of this array.
        stream : stream, optional
            Stream on which the copy is ordered. None is the current stream, after all unfinished work on the memory.

        Returns
        -------
        ndarray
            The elements, complete: `out` if it was given.

        Raises
        ------
        InvalidArgumentError
            If `out` has another shape, or the stream is of another device.
        TypeError
            If `out` has another dtype, or is not an array.
        UnsupportedError
            If the stream is capturing.
        DeviceError
            If the copy, or earlier work on the stream, failed.

        See Also
        --------
        GPUArray.get_async : The same without waiting.
        GPUArray.item : One element.

        Notes
        -----
        The call waits for the copy, with or without `stream`. Other threads run meanwhile.

        Examples
        --------
        >>> a = gg.arange(4, dtype=np.int32)
        >>> a.get()
        array([0, 1, 2, 3], dtype=int32)
        >>> out = np.empty(4, np.int32)
        >>> a.get(out) is out
        True
        """
    def set(self, a: npt.ArrayLike, stream: _StreamLike | None = None) -> None:
        """Copy an array of the host or of a device into this one.

        Parameters
        ----------
        a : array_like
            Source: an array or a buffer of equal shape and dtype, or a list of that shape, which NumPy converts.
        stream : stream, optional
            Stream on which the copy is ordered. None is the current stream, after all unfinished work on the memory.

        Raises
        ------
        InvalidArgumentError
            If the shapes differ, the memory overlaps, or this array is read-only.
        TypeError
            If the dtypes differ: use `astype`.
        UnsupportedError
            If the stream is capturing and the source is not pinned.

        See Also
        --------
        GPUArray.set_async : The same, without waiting for pinned memory.
        copy : A copy between any two arrays.

        Notes
        -----
        A source on the host has been read when the call returns. The copy itself may still be queued if it has at most
        128 KiB, or if the source is on a device: work on another stream must wait for it.

        Examples
        --------
        >>> a = gg.empty(3, np.int64)
        >>> a.set([1, 2, 3])
        >>> a.tolist()
        [1, 2, 3]
        """
    def get_async(self, out: npt.NDArray[Any] | None = None, stream: _StreamLike | None = None) -> npt.NDArray[Any]:
        """Queue a copy of the elements to the host.

        Parameters
        ----------
        out : ndarray, optional
            Array of the same shape and dtype that receives the elements. None makes a new one in pinned memory.
        stream : stream, optional
            Stream on which the copy runs. None is the current stream, after all unfinished work on the memory.

        Returns
        -------
        ndarray
            The array that will hold the elements: `out` if it was given.

        Raises
        ------
        InvalidArgumentError
            If `out` has another shape, or the stream is of another device.
        TypeError
            If `out` has another dtype, or is not an array.
        OutOfMemoryError
            If there is no pinned memory for the result.

        See Also
        --------
        GPUArray.get : The same, complete on return.

        Notes
        -----
        If `out` is pinned, the call returns before the copy is complete: wait for the stream before you read it. If it is not
        pinned, the call waits. The memory of both sides is kept until the copy has run.

        Examples
        --------
        >>> s = gg.Stream()
        >>> a = gg.ones(3, stream=s)
        >>> host = a.get_async(stream=s)
        >>> s.synchronize()
        >>> host
        array([1., 1., 1.])
        """
    def set_async(self, a: npt.ArrayLike, stream: _StreamLike | None = None) -> None:
        """Queue a copy of an array into this one.

        Parameters
        ----------
        a : array_like
            Source: an array or a buffer of equal shape and dtype, or a list of that shape.
        stream : stream, optional
            Stream on which the copy runs. None is the current stream, after all unfinished work on the memory.

        Raises
        ------
        InvalidArgumentError
            If the shapes differ, the memory overlaps, or this array is read-only.
        TypeError
            If the dtypes differ: use `astype`.

        See Also
        --------
        GPUArray.set : The same; the source has been read on return.

        Notes
        -----
        If the source is pinned, the call may return before it was read: do not write to it before the stream has completed
        the copy. If it is not pinned, it has been read on return.

        Examples
        --------
        >>> s = gg.Stream()
        >>> host = gg.zeros_pinned(3)
        >>> a = gg.empty(3, stream=s)
        >>> a.set_async(host, stream=s)
        >>> s.synchronize()        # from here on host may be written
        >>> a.tolist()
        [0.0, 0.0, 0.0]
        """
    def item(self, *index: SupportsIndex) -> Any:
        """Return one element as a Python scalar.

        Parameters
        ----------
        *index : int
            One index per dimension, or one index into the elements in C order. Negative ones count from the end. Without an
            index the array must have one element.

        Returns
        -------
        scalar
            What NumPy's ``item`` returns, such as an int or a float.

        Raises
        ------
        IndexError
            If an index is out of bounds.
        ValueError
            If the number of indices is wrong.

        Notes
        -----
        Only that element is copied. The call waits for unfinished work on the memory.

        Examples
        --------
        >>> a = gg.to_gpu(np.arange(6).reshape(2, 3))
        >>> a.item(1, 2), a.item(4)
        (5, 4)
        """
    def tolist(self) -> Any:
        """Copy the elements into nested lists of Python scalars.

        Returns
        -------
        list or scalar
            Nested lists, one level per dimension; a scalar if the array has no dimensions.

        Raises
        ------
        DeviceError
            If the copy, or earlier work on the stream, failed.

        Notes
        -----
        The call waits for unfinished work on the memory.

        Examples
        --------
        >>> gg.ones((2, 2), np.int8).tolist()
        [[1, 1], [1, 1]]
        """
    def fill(self, value: Any, stream: _StreamLike | None = None) -> None:
        """Set every element to one value.

        Parameters
        ----------
        value : scalar
            The value, cast to the dtype as NumPy assigns it.
        stream : stream, optional
            Stream on which the fill runs. None is the current stream, after all unfinished work on the memory.

        Raises
        ------
        InvalidArgumentError
            If the array is read-only, or the stream is of another device.
        ValueError or TypeError
            If NumPy cannot cast the value, or it is not a single value.

        See Also
        --------
        full : A new array of one value.

        Notes
        -----
        The fill is queued. A view changes only its own elements.

        Examples
        --------
        >>> a = gg.empty((2, 2), np.int32)
        >>> a.fill(7)
        >>> a.get()
        array([[7, 7],
               [7, 7]], dtype=int32)
        """
    def copy(self, stream: _StreamLike | None = None) -> GPUArray:
        """Copy the array on its device.

        Parameters
        ----------
        stream : stream, optional
            Stream on which the copy runs. None is the current stream, after all unfinished work on the memory.

        Returns
        -------
        GPUArray
            A new array without gaps. Its axes are in memory as they are here, as with NumPy's ``order='K'``.

        Raises
        ------
        OutOfMemoryError
            If there is not enough device memory.
        InvalidArgumentError
            If the stream is of another device.

        See Also
        --------
        GPUArray.to_device : A copy on another device.

        Examples
        --------
        >>> a = gg.arange(3)
        >>> b = a.copy()
        >>> b.ptr != a.ptr, b.tolist()
        (True, [0, 1, 2])
        """
    def astype(self, dtype: npt.DTypeLike, order: _OrderLike = "K", copy: bool = True) -> GPUArray:
        """Convert to another dtype.

        Parameters
        ----------
        dtype : dtype
            Type of the new elements.
        order : {'C', 'F', 'A', 'K'}, default 'K'
            Order of the axes in memory. 'K' is that of this array.
        copy : bool, default True
            Whether to copy even if dtype and order already match. If False, the array itself is returned in that case.

        Returns
        -------
        GPUArray
            The converted elements, on the same device.

        Raises
        ------
        TypeError
            If NumPy cannot convert the elements, or the dtype holds Python objects.
        OutOfMemoryError
            If there is not enough device memory.

        See Also
        --------
        GPUArray.view : The same bytes as another dtype.

        Notes
        -----
        If gpuglue finds a compiler, arrays of 1 MiB or more are converted on the device, between bool, integers, floats and complex
        numbers in the native byte order. The result equals NumPy's, bit for bit. The first conversion of a pair of dtypes is compiled
        and compared with NumPy.

        The call does not wait if NumPy could not warn about any element. For floats to integers or to smaller floats, and large
        integers to float16, the kernel checks each element, and the call waits for it. If NumPy might warn about one (NaN or a number
        out of range; overflow or underflow, unless ``numpy.errstate`` ignores it), NumPy converts the array on the host, so that
        warnings and errors are its own. All other dtypes, such as dates and strings, are converted on the host, too.

        Examples
        --------
        >>> gg.arange(3).astype(np.float32).get()
        array([0., 1., 2.], dtype=float32)
        """
    def to_device(self, device: _DeviceLike, /, *, stream: _StreamLike | None = None) -> Any:
        """Copy the array to a device, unless it is there already.

        Parameters
        ----------
        device : Device, str, int or None
            The device; 'cpu' is the host's memory. None is the current device.
        stream : stream, optional
            Stream of this array's device on which the copy is ordered. None is the current stream.

        Returns
        -------
        GPUArray or ndarray
            The array itself if it is on that device, else a copy; for 'cpu' a complete NumPy array.

        Raises
        ------
        InvalidArgumentError
            If the device does not exist, or the stream is of another device.
        OutOfMemoryError
            If there is not enough device memory.

        See Also
        --------
        Device.can_access : Whether the copy bypasses the host.

        Notes
        -----
        Between two devices that cannot access each other the copy goes through the host, and is complete on return.

        Examples
        --------
        >>> a = gg.arange(3)
        >>> a.to_device(a.device) is a
        True
        >>> a.to_device("cpu")
        array([0, 1, 2])
        """
    def reshape(self, /, *shape: Any, order: Literal["C", "F", "A"] = "C", copy: bool | None = None) -> GPUArray:
        """Give the elements another shape.

        Parameters
        ----------
        *shape : int or sequence of int
            The new shape, as several ints or as one tuple. One length may be -1: it is computed from the size.
        order : {'C', 'F', 'A'}, default 'C'
            Order in which the elements are read and placed. 'A' is 'F' if the array is contiguous in Fortran order only.
        copy : bool, optional
            True copies always, False never. None copies only where a view is not possible.

        Returns
        -------
        GPUArray
            A view where NumPy returns one, else a copy on the device.

        Raises
        ------
        ValueError
            If the sizes differ, or ``copy=False`` and a copy is needed.
        OutOfMemoryError
            If there is not enough device memory for a copy.

        See Also
        --------
        GPUArray.ravel : One dimension.

        Examples
        --------
        >>> gg.arange(6).reshape(3, -1).get()
        array([[0, 1],
               [2, 3],
               [4, 5]])
        """
    def ravel(self, order: _OrderLike = "C") -> GPUArray:
        """Return the elements in one dimension.

        Parameters
        ----------
        order : {'C', 'F', 'A', 'K'}, default 'C'
            Order in which the elements are read. 'K' is that of the memory.

        Returns
        -------
        GPUArray
            A view if the elements are in that order, else a copy on the device.

        Raises
        ------
        ValueError
            If the order is not one of these.
        OutOfMemoryError
            If there is not enough device memory for a copy.

        See Also
        --------
        GPUArray.flatten : The same, always a copy.

        Examples
        --------
        >>> a = gg.to_gpu(np.array([[1, 2], [3, 4]]))
        >>> a.ravel().base is a
        True
        >>> a.ravel(order="F").tolist()
        [1, 3, 2, 4]
        """
    def flatten(self, order: _OrderLike = "C") -> GPUArray:
        """Copy the elements into one dimension, on the device.

        Parameters
        ----------
        order : {'C', 'F', 'A', 'K'}, default 'C'
            Order in which the elements are read. 'K' is that of the memory.

        Returns
        -------
        GPUArray
            A copy.

        Raises
        ------
        ValueError
            If the order is not one of these.
        OutOfMemoryError
            If there is not enough device memory.

        See Also
        --------
        GPUArray.ravel : The same, a view where possible.

        Examples
        --------
        >>> gg.ones((2, 2), np.int8).flatten().tolist()
        [1, 1, 1, 1]
        """
    def squeeze(self, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None) -> GPUArray:
        """Remove axes of length one.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to remove. None removes all of length one.

        Returns
        -------
        GPUArray
            A view.

        Raises
        ------
        ValueError
            If an axis is out of bounds, is repeated, or has another length than one.

        Examples
        --------
        >>> gg.zeros((1, 3, 1)).squeeze().shape
        (3,)
        """
    def transpose(self, *axes: Any) -> GPUArray:
        """Permute the axes.

        Parameters
        ----------
        *axes : int or sequence of int
            The old axis of each new one, as several ints or as one tuple. Without any, the axes are reversed.

        Returns
        -------
        GPUArray
            A view.

        Raises
        ------
        ValueError
            If the axes are not a permutation.

        See Also
        --------
        GPUArray.T : All axes reversed.

        Examples
        --------
        >>> gg.zeros((2, 3, 4)).transpose(1, 0, 2).shape
        (3, 2, 4)
        """
    def view(self, dtype: npt.DTypeLike | None = None) -> GPUArray:
        """Read the same bytes as elements of another dtype.

        Parameters
        ----------
        dtype : dtype, optional
            Type of the elements. Without it the view has the same type.

        Returns
        -------
        GPUArray
            A view. If the sizes of the elements differ, so does the length of the last axis.

        Raises
        ------
        ValueError
            If the sizes differ and the last axis is not contiguous, or does not hold a whole number of elements.

        See Also
        --------
        GPUArray.astype : Converted elements.

        Examples
        --------
        >>> gg.zeros((2, 3), np.int64).view(np.int32).shape
        (2, 6)
        """
    @property
    def T(self) -> GPUArray:
        """A view with its axes reversed."""
    @property
    def flags(self) -> ArrayFlags:
        """Contiguity, writability and alignment, as in NumPy: an ArrayFlags."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's description of memory that the host can access; AttributeError for other memory."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA Array Interface, version 3, on cuda and hip; AttributeError elsewhere."""
    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """dpctl's description of the memory on ze, after all work on it is done; AttributeError elsewhere."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the array as a DLPack capsule.

        Parameters
        ----------
        stream : int, optional
            Handle of the consumer's stream, which waits on the device for pending work. None is the default stream; -1 adds
            no synchronization. On host and ze, where streams are not numbers, the host waits.
        max_version : tuple of int, optional
            Highest version that the consumer supports. (1, 0) and above give a versioned capsule.
        dl_device : tuple of int, optional
            Type and id of the device that the consumer wants: this array's own, or (1, 0) for the host.
        copy : bool, optional
            True copies always, False never.

        Returns
        -------
        PyCapsule
            The memory itself, or a copy that is marked as one.

        Raises
        ------
        BufferError
            If the dtype has no counterpart in DLPack, the array is read-only and the consumer older than DLPack 1.0, or
            the device is neither of the two.
        ValueError
            If ``copy=False`` and a copy is needed.

        See Also
        --------
        from_dlpack : The way back.

        Examples
        --------
        >>> a = gg.arange(3)
        >>> gg.from_dlpack(a).ptr == a.ptr
        True
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type and id of the device, such as (2, 0) for CUDA's first."""
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """For NumPy: an ndarray over memory that the host can access. TypeError for other memory: use get()."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def record_use(self, stream: _StreamLike, /) -> None:
        """Record that work which gpuglue did not submit uses the memory.

        Parameters
        ----------
        stream : stream
            Stream on which the work is enqueued.

        Raises
        ------
        InvalidArgumentError
            If the stream is of another device, or closed.
        TypeError
            If the argument is not a stream.

        See Also
        --------
        GPUArray.ptr : The address to pass to other code.

        Notes
        -----
        Call it after your library has enqueued its work. Implicit operations then wait for the work that is enqueued on
        the stream at this time, and the memory is not reused before it is complete. The call itself does not wait.

        Examples
        --------
        >>> s = gg.Stream()
        >>> a = gg.zeros(3)
        >>> # your library: launch(a.ptr, s.handle)
        >>> a.record_use(s)
        """
    def release_captured(self) -> None:
        """Declare that no captured graph that uses the memory will run again.

        Memory that was used during a stream capture is not freed before this call, because the graph may run again.

        See Also
        --------
        Buffer.release_captured : The same for a Buffer.

        Examples
        --------
        >>> a = gg.zeros(3)
        >>> # after the graphs that use a have been destroyed
        >>> a.release_captured()
        """
    def __getitem__(self, index: Any, /) -> GPUArray: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __iter__(self) -> Iterator[GPUArray]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex:
        """Return the only element as a complex number."""
    def __copy__(self) -> GPUArray:
        """The same as copy()."""
    def __deepcopy__(self, memo: Any, /) -> GPUArray:
        """The same as copy()."""
    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle: the elements, by way of the host, and the name of the device."""
    __array_ufunc__: None
    __dlpack_c_exchange_api__: Any  # a capsule
    __hash__: None  # type: ignore[assignment]

@final
class ArrayFlags:
    """The flags of an array: numpy.ndarray.flags, read-only.

    Each is an attribute, and an item under NumPy's key.

    Examples
    --------
    >>> flags = gg.zeros((2, 3), order="F").flags
    >>> flags.f_contiguous, flags["C_CONTIGUOUS"]
    (True, False)
    """

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements are in C order, without gaps."""
    @property
    def f_contiguous(self) -> bool:
        """Whether the elements are in Fortran order, without gaps."""
    @property
    def contiguous(self) -> bool:
        """The same as `c_contiguous`."""
    @property
    def fortran(self) -> bool:
        """The same as `f_contiguous`."""
    @property
    def forc(self) -> bool:
        """Whether the array is contiguous in Fortran or C order."""
    @property
    def fnc(self) -> bool:
        """Whether the array is contiguous in Fortran order and not in C order."""
    @property
    def owndata(self) -> bool:
        """Whether gpuglue allocated the memory, and the array is not a view."""
    @property
    def writeable(self) -> bool:
        """Whether the elements may be written."""
    @property
    def aligned(self) -> bool:
        """Whether the elements are aligned for their type."""
    @property
    def num(self) -> int:
        """All flags as NumPy's number."""
    def __getitem__(self, key: str, /) -> bool: ...

def asarray(
    obj: Any,
    dtype: npt.DTypeLike | None = None,
    *,
    device: _DeviceLike | None = None,
    copy: bool | None = None,
    shape: _Shape | None = None,
    strides: _Shape | None = None,
    owner: object = None,
) -> GPUArray:
    """Make an array over the memory of another library's array, or at an address.

    Parameters
    ----------
    obj : array_like or int
        An array with DLPack or the CUDA Array Interface; an object with ``ptr``, ``gpudata`` or ``data_ptr()`` and a shape
        and dtype; a Buffer, as bytes; data of the host; or an address.
    dtype : dtype, optional
        Type of the elements: at an address the type of what is there, otherwise the type to convert to.
    device : Device, str or int, optional
        Device of the result. None is where `obj` is, and the current device for data of the host.
    copy : bool, optional
        True copies always, False never. None copies only if the device or the dtype requires it.
    shape : int or sequence of int, optional
        Length of each dimension, for an address.
    strides : sequence of int, optional
        Bytes between elements per dimension, for an address. None is C order.
    owner : object, optional
        Object that keeps the memory at an address alive. It is released when nothing uses the memory any more.

    Returns
    -------
    GPUArray
        An array over the same memory, or a copy.

    Raises
    ------
    TypeError
        If `obj` is none of these, or `shape`, `strides` or `owner` is given without an address.
    ValueError
        If ``copy=False`` and a copy is needed.
    InvalidArgumentError
        If the driver reports that the address is of another device, or that the block there is smaller.

    See Also
    --------
    from_dlpack : Through DLPack only.
    to_gpu : Always a copy.
    Buffer.from_ptr : Bytes at an address.

    Notes
    -----
    Host data is shared with a host device and copied to any other. The current stream waits, on the device, for the work of the
    other library.

    Examples
    --------
    >>> buffer = gg.alloc(16)
    >>> a = gg.asarray(buffer.ptr, np.float32, shape=(2, 2), owner=buffer)
    >>> a.ptr == buffer.ptr
    True
    >>> gg.asarray([1, 2, 3]).get()
    array([1, 2, 3])
    """

def from_dlpack(
    x: Any, /, *, device: _DeviceLike | None = None, copy: bool | None = None, stream: _StreamLike | None = None
) -> GPUArray:
    """Make an array over the memory of any array that supports DLPack.

    Parameters
    ----------
    x : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    device : Device, str or int, optional
        Device of the result. None is the device of `x`.
    copy : bool, optional
        True copies always, False never. None copies only to another device.
    stream : stream, optional
        Stream that the producer makes wait for its pending work. None is the current stream.

    Returns
    -------
    GPUArray
        An array over the same memory, or a copy.

    Raises
    ------
    AttributeError
        If `x` does not support DLPack.
    BufferError
        If the dtype or the version of DLPack is not known.
    ValueError
        If ``copy=False`` and a copy is needed.
    BackendUnavailableError
        If no backend is available for the device of `x`.

    See Also
    --------
    asarray : Accepts other objects as well.

    Notes
    -----
    The producer makes the stream wait, on the device; the host does not wait. Host data becomes an array of ``host:0``, which
    shares its memory.

    Examples
    --------
    >>> a = gg.arange(3)
    >>> b = gg.from_dlpack(a)
    >>> b.ptr == a.ptr
    True
    """

def _unpickle(host: npt.NDArray[Any], device: str, /) -> GPUArray: ...
def _is_pending(array: GPUArray, /) -> bool: ...
def _wait(array: GPUArray, /) -> None: ...

_C_API: Any  # a capsule, for gpuglue/python.h

def to_gpu(a: npt.ArrayLike, device: _DeviceLike | None = None, stream: _StreamLike | None = None) -> GPUArray:
    """Copy host data to a new array.

    Parameters
    ----------
    a : array_like
        A NumPy array, or any object that numpy.asarray takes. C and Fortran order are kept.
    device : Device, str or int, optional
        Where the array is. None is the current device.
    stream : stream, optional
        Stream that the memory is allocated for and that the copy is ordered on. None is the current stream.

    Returns
    -------
    GPUArray
        A copy with the same shape and dtype.

    Raises
    ------
    TypeError
        If `a` is a GPUArray or a Buffer, or its dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.
    InvalidArgumentError
        If the device does not exist.

    See Also
    --------
    asarray : Without a copy where possible.
    GPUArray.get : The way back.

    Notes
    -----
    `a` may be changed as soon as the call returns. The copy itself may still be queued if it has at most 128 KiB.

    Examples
    --------
    >>> a = gg.to_gpu(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> a.shape, a.dtype
    ((2, 2), dtype('float64'))
    """

def empty(
    shape: _Shape,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Allocate an array without initialising it.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    device : Device, str or int, optional
        Where the array is. None is the current device.
    stream : stream, optional
        Stream on which the memory is first used. None is the current stream.

    Returns
    -------
    GPUArray
        The array, uninitialised.

    Raises
    ------
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    TypeError
        If the dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.

    See Also
    --------
    zeros : The same, filled with zeros.
    empty_pinned : A NumPy array in pinned memory.

    Notes
    -----
    The first use on another stream waits, on the device, for the work that was enqueued on the allocating stream.

    Examples
    --------
    >>> gg.empty((2, 3), np.float32).nbytes
    24
    """

def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    device : Device, str or int, optional
        Where the array is. None is the current device.
    stream : stream, optional
        Stream on which the array is filled. None is the current stream.

    Returns
    -------
    GPUArray
        The array. The fill is queued.

    Raises
    ------
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    TypeError
        If the dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.

    Examples
    --------
    >>> gg.zeros(3, np.int32).get()
    array([0, 0, 0], dtype=int32)
    """

def ones(
    shape: _Shape,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of ones.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    dtype : dtype, default 'float64'
        Type of the elements.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    device : Device, str or int, optional
        Where the array is. None is the current device.
    stream : stream, optional
        Stream on which the array is filled. None is the current stream.

    Returns
    -------
    GPUArray
        The array. The fill is queued.

    Raises
    ------
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    TypeError
        If the dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.

    Examples
    --------
    >>> gg.ones((1, 2)).get()
    array([[1., 1.]])
    """

def full(
    shape: _Shape,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of one value.

    Parameters
    ----------
    shape : int or sequence of int
        Length of each dimension.
    fill_value : scalar
        The value, cast as NumPy assigns it.
    dtype : dtype, optional
        Type of the elements. None is the type of the value.
    order : {'C', 'F'}, default 'C'
        Order of the axes in memory.
    device : Device, str or int, optional
        Where the array is. None is the current device.
    stream : stream, optional
        Stream on which the array is filled. None is the current stream.

    Returns
    -------
    GPUArray
        The array. The fill is queued.

    Raises
    ------
    InvalidArgumentError
        If a length is negative, or the device does not exist.
    ValueError or TypeError
        If the dtype holds Python objects, or NumPy cannot cast the value.
    OutOfMemoryError
        If there is not enough device memory.

    Examples
    --------
    >>> gg.full(3, 2.5).get()
    array([2.5, 2.5, 2.5])
    """

def empty_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Allocate an array with the shape and dtype of another.

    Parameters
    ----------
    a : GPUArray or ndarray
        The other array. Only its form is used.
    dtype : dtype, optional
        Type of the elements. None is that of `a`.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of `a`.
    device : Device, str or int, optional
        Where the array is. None is the device of `a`, or the current one if `a` is on the host.
    stream : stream, optional
        Stream on which the memory is first used. None is the current stream.

    Returns
    -------
    GPUArray
        The array, uninitialised.

    Raises
    ------
    TypeError
        If `a` is not an array, or the dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.
    InvalidArgumentError
        If the device does not exist.

    Examples
    --------
    >>> a = gg.zeros((2, 3), np.float32)
    >>> b = gg.empty_like(a)
    >>> b.shape, b.dtype
    ((2, 3), dtype('float32'))
    """

def zeros_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of zeros with the shape and dtype of another.

    Parameters
    ----------
    a : GPUArray or ndarray
        The other array. Only its form is used.
    dtype : dtype, optional
        Type of the elements. None is that of `a`.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of `a`.
    device : Device, str or int, optional
        Where the array is. None is the device of `a`, or the current one if `a` is on the host.
    stream : stream, optional
        Stream on which the array is filled. None is the current stream.

    Returns
    -------
    GPUArray
        The array. The fill is queued.

    Raises
    ------
    TypeError
        If `a` is not an array, or the dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.
    InvalidArgumentError
        If the device does not exist.

    Examples
    --------
    >>> gg.zeros_like(np.arange(3)).get()
    array([0, 0, 0])
    """

def ones_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of ones with the shape and dtype of another.

    Parameters
    ----------
    a : GPUArray or ndarray
        The other array. Only its form is used.
    dtype : dtype, optional
        Type of the elements. None is that of `a`.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of `a`.
    device : Device, str or int, optional
        Where the array is. None is the device of `a`, or the current one if `a` is on the host.
    stream : stream, optional
        Stream on which the array is filled. None is the current stream.

    Returns
    -------
    GPUArray
        The array. The fill is queued.

    Raises
    ------
    TypeError
        If `a` is not an array, or the dtype holds Python objects.
    OutOfMemoryError
        If there is not enough device memory.
    InvalidArgumentError
        If the device does not exist.

    Examples
    --------
    >>> gg.ones_like(np.arange(3), np.float64).get()
    array([1., 1., 1.])
    """

def full_like(
    a: Any,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of one value with the shape and dtype of another.

    Parameters
    ----------
    a : GPUArray or ndarray
        The other array. Only its form is used.
    fill_value : scalar
        The value, cast as NumPy assigns it.
    dtype : dtype, optional
        Type of the elements. None is that of `a`.
    order : {'C', 'F', 'A', 'K'}, default 'K'
        Order of the axes in memory. 'K' is that of `a`.
    device : Device, str or int, optional
        Where the array is. None is the device of `a`, or the current one if `a` is on the host.
    stream : stream, optional
        Stream on which the array is filled. None is the current stream.

    Returns
    -------
    GPUArray
        The array. The fill is queued.

    Raises
    ------
    ValueError or TypeError
        If `a` is not an array, or NumPy cannot cast the value.
    OutOfMemoryError
        If there is not enough device memory.
    InvalidArgumentError
        If the device does not exist.

    Examples
    --------
    >>> gg.full_like(np.zeros(2), 3).get()
    array([3., 3.])
    """

def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Make an array of evenly spaced numbers.

    Parameters
    ----------
    start : number
        First number. If `stop` is not given, `start` is the end, and the first number is 0.
    stop : number, optional
        End of the interval, which is not included.
    step : number, default 1
        Difference between consecutive numbers.
    dtype : dtype, optional
        Type of the elements. None is what NumPy chooses.
    device : Device, str or int, optional
        Where the array is. None is the current device.
    stream : stream, optional
        Stream on which the copy is ordered. None is the current stream.

    Returns
    -------
    GPUArray
        A one-dimensional array.

    Raises
    ------
    ZeroDivisionError
        If the step is 0.
    OutOfMemoryError
        If there is not enough device memory.
    InvalidArgumentError
        If the device does not exist.

    Notes
    -----
    NumPy computes the numbers on the host, and they are copied.

    Examples
    --------
    >>> gg.arange(2, 10, 3).tolist()
    [2, 5, 8]
    """

# ---- kernels -------------------------------------------------------------------------------------------------

_Dims: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Parameters: TypeAlias = tuple[tuple[int, int, str], ...]

@final
class Module:
    """Device code, loaded on a device.

    ``module[name]`` is a Kernel, and `kernels` has the names. ``with module:`` closes it at the end.

    Parameters
    ----------
    image : bytes or path
        Compiled code, or the path of its file: a cubin, a fatbin, PTX, a code object or a bundle of them, SPIR-V, zebin, or
        a shared object of host kernels. The format is detected from the content.
    device : Device, str or int, optional
        Where the code runs. None is the current device.
    link : sequence of bytes or paths, optional
        Further SPIR-V, which has functions that `image` imports.
    options : sequence of str, optional
        Options for the driver's compiler of SPIR-V, such as '-ze-opt-level=1'.
    constants : dict, optional
        Values of SPIR-V's specialisation constants, by number.

    Raises
    ------
    InvalidArgumentError
        If the format is unknown, the image is damaged or for another architecture, or it is source text; if the driver's
        compiler refuses an option, or the image has no such constant.
    UnsupportedError
        If the backend loads no such images, or does not compile with `link`, `options` or `constants`.
    OSError
        If the file cannot be read.
    TypeError
        If `image` is neither bytes nor a path.
    DeviceError
        If the driver refuses the image.

    See Also
    --------
    compile : An image from source.

    Notes
    -----
    The code is unloaded once the module is closed or dropped, and neither a kernel nor queued work uses it. A shared object
    for the host backend is code that the dynamic loader runs, like any library: load only what you trust.

    Machine code that the driver compiles from SPIR-V is cached on disk, for this version of the driver: see
    ``GPUGLUE_CACHE_DIR``.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
    >>> module = gg.Module(gg.compile(source))
    >>> x = gg.zeros(3, np.float32)
    >>> module["add"](x, 1.5, grid=3, block=1)
    >>> x.get()
    array([1.5, 1.5, 1.5], dtype=float32)
    """

    def __new__(
        cls,
        image: _HasBuffer | str | Any,
        device: _DeviceLike | None = None,
        *,
        link: Sequence[_HasBuffer | str | Any] = (),
        options: Sequence[str] = (),
        constants: dict[int, Any] | None = None,
    ) -> Module: ...
    def __getitem__(self, name: str, /) -> Kernel: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def get_global(self, name: str, /) -> Buffer:
        """Return a variable of the module.

        Parameters
        ----------
        name : str
            Its name in the image.

        Returns
        -------
        Buffer
            The bytes of the variable. It keeps the module loaded.

        Raises
        ------
        InvalidArgumentError
            If there is no such variable, or the module is closed.
        UnsupportedError
            If the backend has no such variables.
        TypeError
            If `name` is not a str.

        Notes
        -----
        Launches of the module's kernels count as uses of the variable, so that implicit operations wait for them.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> module = gg.Module(gg.compile('extern "C" __device__ int limit = 3; extern "C" __global__ void k() {}'))
        >>> limit = module.get_global("limit")
        >>> gg.copy(limit, np.array([5], np.int32))
        >>> gg.asarray(limit).view(np.int32).tolist()
        [5]
        """
    def close(self) -> None:
        """Release the module; it stays loaded while kernels or queued work use it.

        The call never waits, and may be repeated. Any other use of a closed module raises InvalidArgumentError.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
        >>> module = gg.Module(gg.compile(source))
        >>> module.close()
        """
    def __enter__(self) -> Self:
        """Return the module itself."""
    def __exit__(self, *exc: object) -> None:
        """Close the module."""
    @property
    def device(self) -> Device:
        """The Device that the code is loaded on."""
    @property
    def format(self) -> str:
        """Format of the image, such as 'cubin', 'ptx' or 'code object'."""
    @property
    def arch(self) -> str:
        """Architectures of the image, separated by spaces."""
    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the module's kernels, a tuple of str.

        They are read from the image or, if the image hides them, as a compressed fatbin does, from the driver. ``name in module``
        tests for one, and iterating over a module yields them. C++ names are mangled; ``in`` also accepts the names in Image.names.

        Raises
        ------
        UnsupportedError
            If neither the image nor the driver lists them. ``in`` still works.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> module = gg.Module(gg.compile('extern "C" __global__ void f() {} extern "C" __global__ void g() {}'))
        >>> sorted(module.kernels)
        ['f', 'g']
        >>> "f" in module, "h" in module
        (True, False)
        """

@final
class Kernel:
    """A kernel of a Module: a function that runs on the device.

    It is called with its arguments: ``kernel(*args, grid=, block=, smem=0, stream=None)``. `grid` is the number of blocks
    and `block` the number of threads per block, each an int or a tuple of up to three. `smem` is the dynamic shared memory
    in bytes.

    See Also
    --------
    Kernel.bind : Fix the types of the arguments and the shape of the launch.

    Notes
    -----
    Arguments are GPUArrays, Buffers and other libraries' arrays on the device, scalars and structs of NumPy and ctypes, and
    RawArgument. A bare int or float is accepted where the image declares the parameter's type, or after `bind`.
    Arguments and limits are checked before the launch. Without ``stream=`` the kernel runs on the current stream,
    after all unfinished work on its arrays. The call does not wait; arrays are kept until the kernel has run.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
    >>> add = gg.Module(gg.compile(source))["add"]
    >>> x = gg.zeros(3, np.float32)
    >>> add(x, 2, grid=3, block=1)
    >>> x.tolist()
    [2.0, 2.0, 2.0]
    """

    def __call__(
        self,
        *args: Any,
        grid: _Dims = ...,
        block: _Dims = ...,
        smem: SupportsIndex = 0,
        stream: _StreamLike | None = None,
    ) -> None: ...
    def bind(
        self,
        signature: str | Sequence[Any] | None,
        grid: _Dims | None = None,
        block: _Dims | None = None,
        smem: SupportsIndex = 0,
        cooperative: bool = False,
    ) -> Kernel:
        """Fix the types of the arguments, and set defaults for launches.

        Parameters
        ----------
        signature : str, sequence or None
            A type per argument: codes of the struct module, where P is a pointer, or dtypes. None leaves them as they are.
        grid : int or sequence of int, optional
            Number of blocks for calls without ``grid=``.
        block : int or sequence of int, optional
            Threads per block for calls without ``block=``.
        smem : int, default 0
            Dynamic shared memory in bytes.
        cooperative : bool, default False
            Whether all blocks run at once and can synchronize.

        Returns
        -------
        Kernel
            The same kernel, which takes bare ints and floats.

        Raises
        ------
        InvalidArgumentError
            If the number or the sizes of the types differ from those in the image or the driver, or a code is unknown.
        TypeError
            If a type is not known to NumPy.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
        >>> add = gg.Module(gg.compile(source))["add"].bind("Pf", grid=3, block=1)
        >>> x = gg.zeros(3, np.float32)
        >>> add(x, 1.5)
        >>> x.tolist()
        [1.5, 1.5, 1.5]
        """
    def max_active_blocks(self, block: _Dims, smem: SupportsIndex = 0) -> int:
        """Return how many blocks a multiprocessor runs at once.

        Parameters
        ----------
        block : int or sequence of int
            Threads per block.
        smem : int, default 0
            Dynamic shared memory of each block in bytes.

        Returns
        -------
        int
            Number of blocks; 0 if not even one fits.

        Raises
        ------
        UnsupportedError
            If the driver does not report it.
        InvalidArgumentError
            If a number is out of range.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
        >>> kernel = gg.Module(gg.compile(source))["add"]
        >>> kernel.max_active_blocks(128)
        1
        """
    def suggest_block(self, smem: SupportsIndex = 0, limit: SupportsIndex = 0) -> tuple[int, int]:
        """Return the block size with the highest occupancy.

        Parameters
        ----------
        smem : int, default 0
            Dynamic shared memory of each block in bytes.
        limit : int, default 0
            Largest block size to consider; 0 is the limit of the kernel.

        Returns
        -------
        threads : int
            Threads per block.
        blocks : int
            Number of blocks that fill the device.

        Raises
        ------
        UnsupportedError
            If the driver does not report it.
        InvalidArgumentError
            If a number is out of range.

        Examples
        --------
        >>> # host only: elsewhere the source is compiled by the vendor's compiler
        >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
        >>> kernel = gg.Module(gg.compile(source))["add"]
        >>> threads, blocks = kernel.suggest_block(limit=256)
        >>> threads <= 256
        True
        """
    @property
    def name(self) -> str:
        """Name of the kernel in the image."""
    @property
    def module(self) -> Module:
        """The Module of the kernel."""
    @property
    def device(self) -> Device:
        """The Device that the kernel runs on."""
    @property
    def attributes(self) -> dict[str, int]:
        """Attributes that the driver reports, a dict of int.

        The keys are max_threads_per_block, registers, shared_size and local_size in bytes, and others; those that the driver
        does not report are absent.
        """
    @property
    def parameters(self) -> _Parameters | None:
        """Offset, size in bytes and kind of each parameter; None if neither image nor driver declares them."""

@final
class RawArgument:
    """An argument of a kernel as raw bytes.

    Parameters
    ----------
    bytes : bytes or buffer
        The value as the kernel reads it. It is copied.

    Raises
    ------
    TypeError
        If the argument has no bytes.

    Examples
    --------
    >>> argument = gg.RawArgument(np.float32(2.5).tobytes())
    """

    def __new__(cls, bytes: _HasBuffer) -> RawArgument: ...

@final
class LocalMemory:
    """An argument of a kernel: memory that is local to each block.

    It is for kernels with such parameters: ``local`` pointers of OpenCL C, on Level Zero.

    Parameters
    ----------
    nbytes : int
        Size in bytes.

    Raises
    ------
    InvalidArgumentError
        If the size is not positive.

    Examples
    --------
    >>> gg.LocalMemory(256).nbytes
    256
    """

    nbytes: Final[int]
    """Size in bytes."""

    def __new__(cls, nbytes: SupportsIndex) -> LocalMemory: ...

def _read_image(
    image: Any, /
) -> tuple[str, str, dict[str, _Parameters | None], dict[int, tuple[str, int, int]]]: ...
def _image_bytes(image: Any, /) -> Any: ...
def _load_spirv(
    device: Device, inputs: list[Any], flags: str | None, constants: tuple[tuple[int, int], ...], binary: bytes | None, /
) -> Module: ...
def _module_binary(module: Module, /) -> bytes: ...
def _copy_bytes(
    dst: Any, dst_offset: int, src: Any, src_offset: int, nbytes: int, stream: _StreamLike | None, asynchronous: bool, /
) -> None: ...
def _copy_region(
    dst: Any, dst_place: tuple[int, int, int], src: Any, src_place: tuple[int, int, int], shape: tuple[int, int, int],
    stream: _StreamLike | None, asynchronous: bool, /
) -> None: ...
def _fill_bytes(
    buffer: Buffer, offset: int, pattern: _HasBuffer, count: int, stream: _StreamLike | None, /
) -> None: ...
def _wrap_pointer(pointer: int, nbytes: int, device: _DeviceLike, owner: object, /) -> Buffer: ...
