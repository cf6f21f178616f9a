"""What gpuglue exports; the compiled module's own docstrings say more."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
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
def _refuse_plugin(name: str, reason: str, /) -> None: ...
def _listed() -> tuple[BackendInfo, ...]: ...
def _add_library_directory(path: str, /) -> None: ...

# ---- errors ----------------------------------------------------------------------------------------

class Error(Exception):
    """What a driver or gpuglue itself refused or failed at; the attributes are None where not known."""

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

class OutOfMemoryError(Error, MemoryError): ...
class InvalidArgumentError(Error, ValueError): ...
class BackendUnavailableError(Error): ...
class UnsupportedError(Error): ...
class DeviceError(Error): ...
class DeviceLostError(DeviceError): ...
class ForkError(Error): ...
class NoDeviceWarning(RuntimeWarning): ...

# ---- backends ----------------------------------------------------------------------------------------

@final
class BackendInfo(structseq[Any], tuple[str, str, str, int | None, str, str, str, str, str, int, tuple[tuple[str, str], ...], tuple[str, ...]]):
    """What was found of one backend."""

    __match_args__: Final = ("name", "status", "reason", "devices", "library", "version", "plugin", "plugin_version", "found_by", "priority", "tried", "notes")
    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def devices(self) -> int | None: ...
    @property
    def library(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def plugin(self) -> str: ...
    @property
    def plugin_version(self) -> str: ...
    @property
    def found_by(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def tried(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...

def backends(probe: _Probe = "passive", *, timeout: float = 10.0) -> tuple[BackendInfo, ...]:
    """One record per backend, the preferred ones first."""

def available_backends() -> list[str]:
    """Names of the backends that have a device. Initialises drivers."""

def default_backend() -> str:
    """The backend used where none is named."""

def use_backend(selection: str, /) -> None:
    """Choose the default backend: 'auto', 'name[,name…]' or '^name[,name…]'."""

def devices(backend: str | None = None) -> list[Device]:
    """The devices of one backend, or of all that are available."""

# ---- devices -------------------------------------------------------------------------------------------

@final
class MemoryInfo(structseq[Any], tuple[int, int]):
    """Device memory, in bytes."""

    __match_args__: Final = ("free", "total")
    @property
    def free(self) -> int: ...
    @property
    def total(self) -> int: ...

@final
class PoolStats(structseq[Any], tuple[int, int, int, int, int, int, int, int, int, int, int]):
    """What a pool holds and did."""

    __match_args__: Final = ("used_blocks", "used_bytes", "peak_bytes", "cached_blocks", "cached_bytes", "retired_blocks", "retired_bytes", "held_bytes", "held_peak", "allocations", "driver_calls")
    @property
    def used_blocks(self) -> int: ...
    @property
    def used_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def cached_blocks(self) -> int: ...
    @property
    def cached_bytes(self) -> int: ...
    @property
    def retired_blocks(self) -> int: ...
    @property
    def retired_bytes(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    @property
    def held_peak(self) -> int: ...
    @property
    def allocations(self) -> int: ...
    @property
    def driver_calls(self) -> int: ...

@final
class Pool:
    """Free memory of a device that is given out again without a call of the driver."""

    limit: int | None
    max_cached: int | None
    def trim(self, keep: SupportsIndex = 0) -> None:
        """Give free blocks back to the driver until at most keep bytes are left."""
    def stats(self) -> PoolStats:
        """What is in use, free and held, and how often."""

def trim() -> None:
    """Give the free memory of all pools back to the drivers."""

@final
class Device:
    """A device; there is one object for each."""

    def __new__(cls, device: _DeviceLike | None = None, *, pci: str | None = None, uuid: object = None) -> Device: ...
    @classmethod
    def for_local_rank(cls, backend: str | None = None, /) -> Device:
        """The device for this process among those of its node."""
    @property
    def backend(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def arch(self) -> str | None: ...
    @property
    def uuid(self) -> str | None: ...
    @property
    def pci_bus_id(self) -> str | None: ...
    @property
    def numa_node(self) -> int | None: ...
    @property
    def total_memory(self) -> int: ...
    @property
    def integrated(self) -> bool: ...
    @property
    def attributes(self) -> dict[str, int]: ...
    @property
    def default_stream(self) -> Stream: ...
    @property
    def per_thread_stream(self) -> Stream: ...
    @property
    def stream_priority_range(self) -> tuple[int, int]: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def pinned_pool(self) -> Pool: ...
    def memory_info(self) -> MemoryInfo:
        """Free and total bytes now."""
    def synchronize(self) -> None:
        """Wait for all work of the device."""
    def supports(self, op: str, /) -> bool:
        """Whether it can do an operation, such as 'event_elapsed'."""
    def can_access(self, peer: _DeviceLike, /) -> bool:
        """Whether a copy between the two needs no host."""
    def use(self) -> None:
        """Make it this thread's current device until the next use()."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...

def current_device() -> Device:
    """The device that calls of this thread without one use."""

def current_stream(device: _DeviceLike | None = None) -> Stream:
    """The stream that calls of this thread without one use."""

def synchronize(device: _DeviceLike | None = None) -> None:
    """Wait for all work of a device."""

# ---- streams and events ------------------------------------------------------------------------------------

@final
class Stream:
    """Work that runs in the order in which it was queued."""

    def __new__(cls, device: _DeviceLike | None = None, nonblocking: bool = False, priority: int = 0) -> Stream: ...
    @classmethod
    def borrow(cls, obj: _StreamLike, device: _DeviceLike | None = None) -> Stream:
        """Use a stream that someone else owns."""
    @property
    def device(self) -> Device: ...
    @property
    def done(self) -> bool: ...
    @property
    def handle(self) -> int: ...
    @property
    def __cuda_stream__(self) -> Callable[[], tuple[int, int]]: ...
    @property
    def _as_parameter_(self) -> ctypes.c_void_p: ...
    def synchronize(self) -> None:
        """Wait until all work queued so far is done."""
    def wait(self, other: Event | _StreamLike, /) -> None:
        """Later work of this stream waits, on the device, for an event or a stream."""
    def record(self, event: Event | None = None) -> Event:
        """Mark the point that this stream has reached."""
    def close(self) -> None:
        """Give the stream up. Never waits."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Event:
    """A point in the work of a stream."""

    def __new__(cls, device: _DeviceLike | None = None, timing: bool = False, blocking: bool = False) -> Event: ...
    @property
    def device(self) -> Device | None: ...
    @property
    def done(self) -> bool: ...
    @property
    def handle(self) -> int: ...
    @property
    def timing(self) -> bool: ...
    @property
    def blocking(self) -> bool: ...
    def record(self, stream: _StreamLike | None = None) -> Self:
        """Mark the point that a stream has reached."""
    def synchronize(self) -> None:
        """Wait until the recorded point is reached."""
    def elapsed_since(self, start: Event, /) -> float:
        """Milliseconds from what `start` recorded to what this event recorded."""
    def close(self) -> None:
        """Give the event up. Never waits."""

@final
class timer:
    """Measures, on the device, the work that a with-block queues on a stream."""

    def __new__(cls, stream: _StreamLike | None = None) -> timer: ...
    @property
    def ms(self) -> float: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...

# ---- memory ------------------------------------------------------------------------------------------------

@final
class Buffer:
    """A block of device or page-locked memory."""

    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def stream(self) -> Stream | None: ...
    @property
    def kind(self) -> Literal["device", "pinned", "managed"]: ...
    @property
    def _as_parameter_(self) -> ctypes.c_void_p: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @classmethod
    def from_ptr(
        cls, ptr: SupportsIndex, nbytes: SupportsIndex, device: _DeviceLike | None = None, *, owner: object = None
    ) -> Buffer:
        """A Buffer over memory that something else owns."""
    def prefetch(self, device: _DeviceLike | None = None, stream: _StreamLike | None = None) -> None:
        """Move managed memory to its device or to 'host'."""
    def advise(self, advice: str, device: _DeviceLike | None = None) -> None:
        """Say how managed memory will be used."""
    def record_use(self, stream: _StreamLike, /) -> None:
        """Announce work on it that gpuglue did not submit."""
    def release_captured(self) -> None:
        """Say that no captured graph that used it will run again."""
    def ipc_handle(self) -> IpcHandle:
        """By which another process opens this device memory."""
    def close(self) -> None:
        """Give the memory back as soon as nothing uses it. Never waits."""
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    __array_ufunc__: None
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...

@final
class IpcHandle:
    """Device memory for another process of this machine."""

    def __new__(cls, data: bytes) -> Self: ...
    def open(self) -> Buffer:
        """The same memory in this process."""
    @property
    def backend(self) -> str: ...
    @property
    def device_uuid(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def offset(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

def alloc(nbytes: SupportsIndex, device: _DeviceLike | None = None, stream: _StreamLike | None = None) -> Buffer:
    """Device memory, uninitialised."""

def alloc_pinned(nbytes: SupportsIndex, device: _DeviceLike | None = None) -> Buffer:
    """Page-locked host memory, uninitialised."""

def use_allocator(allocator: Literal["torch", "cupy", "rmm"] | Callable[[int, Device, Stream], object] | None, /) -> None:
    """Where device memory comes from, from now on."""

def alloc_managed(nbytes: SupportsIndex, device: _DeviceLike | None = None) -> Buffer:
    """Memory that the driver moves between host and device."""

def register(obj: _HasBuffer, device: _DeviceLike | None = None) -> Buffer:
    """Page-lock the memory of a writable buffer where it lies."""

@final
class PointerInfo(structseq[Any], tuple[str | None, Device | None, Literal["host", "device", "pinned", "managed"], int | None, int | None]):
    """What the drivers in use know of a pointer."""

    __match_args__: Final = ("backend", "device", "kind", "base", "size")
    @property
    def backend(self) -> str | None: ...
    @property
    def device(self) -> Device | None: ...
    @property
    def kind(self) -> Literal["host", "device", "pinned", "managed"]: ...
    @property
    def base(self) -> int | None: ...
    @property
    def size(self) -> int | None: ...

def pointer_info(ptr: SupportsIndex, /) -> PointerInfo:
    """What the drivers in use know of an address."""

def empty_pinned(
    shape: _Shape, dtype: npt.DTypeLike = ..., order: _Order = "C", device: _DeviceLike | None = None
) -> npt.NDArray[Any]:
    """A NumPy array in page-locked memory."""

def zeros_pinned(
    shape: _Shape, dtype: npt.DTypeLike = ..., order: _Order = "C", device: _DeviceLike | None = None
) -> npt.NDArray[Any]:
    """A NumPy array of zeros in page-locked memory."""

def copy(
    dst: GPUArray | Buffer | _HasBuffer | npt.NDArray[Any],
    src: GPUArray | Buffer | _HasBuffer | npt.NDArray[Any],
    stream: _StreamLike | None = None,
    *,
    require_async: bool = False,
) -> None:
    """Copy between arrays, buffers and host memory; between devices directly, or else through the host."""

def fill(dst: GPUArray | Buffer, value: Any, stream: _StreamLike | None = None) -> None:
    """Set every element of an array, or the bytes of a buffer."""

# ---- arrays --------------------------------------------------------------------------------------------------

@final
class GPUArray:
    """A typed and shaped piece of device memory."""

    def __new__(
        cls,
        shape_or_data: _Shape | _HasBuffer | npt.NDArray[Any],
        dtype: npt.DTypeLike = ...,
        order: _OrderLike | None = None,
        device: _DeviceLike | None = None,
        stream: _StreamLike | None = None,
    ) -> GPUArray: ...
    @property
    def ptr(self) -> int: ...
    @property
    def gpudata(self) -> int: ...
    @property
    def _as_parameter_(self) -> ctypes.c_void_p: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def base(self) -> object | None: ...
    def get(self, out: npt.NDArray[Any] | None = None, stream: _StreamLike | None = None) -> npt.NDArray[Any]:
        """The elements as a NumPy array, finished on return."""
    def set(self, a: npt.ArrayLike, stream: _StreamLike | None = None) -> None:
        """Copy from an array of equal shape and dtype."""
    def get_async(self, out: npt.NDArray[Any] | None = None, stream: _StreamLike | None = None) -> npt.NDArray[Any]:
        """Like get, but may return before the data is there."""
    def set_async(self, a: npt.ArrayLike, stream: _StreamLike | None = None) -> None:
        """Like set, but may return before the source was read."""
    def item(self, *index: SupportsIndex) -> Any:
        """One element as a Python scalar."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
    def fill(self, value: Any, stream: _StreamLike | None = None) -> None:
        """Set every element."""
    def copy(self, stream: _StreamLike | None = None) -> GPUArray:
        """A new array with the same elements, without gaps, its axes in the same order in memory."""
    def astype(self, dtype: npt.DTypeLike, order: _OrderLike = "K", copy: bool = True) -> GPUArray:
        """A new array of another dtype; NumPy converts, on the host."""
    def to_device(self, device: _DeviceLike, /, *, stream: _StreamLike | None = None) -> Any:
        """Itself, a copy on another device, or a numpy.ndarray for 'cpu'."""
    def reshape(self, /, *shape: Any, order: Literal["C", "F", "A"] = "C", copy: bool | None = None) -> GPUArray:
        """Another shape for the same elements."""
    def ravel(self, order: _OrderLike = "C") -> GPUArray:
        """One dimension; a view where that can be."""
    def flatten(self, order: _OrderLike = "C") -> GPUArray:
        """A copy of one dimension."""
    def squeeze(self, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None) -> GPUArray:
        """A view without axes of length one."""
    def transpose(self, *axes: Any) -> GPUArray:
        """A view with its axes in another order."""
    def view(self, dtype: npt.DTypeLike | None = None) -> GPUArray:
        """The same bytes as elements of another dtype."""
    @property
    def T(self) -> GPUArray: ...
    @property
    def flags(self) -> ArrayFlags: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device type and id."""
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The memory as an ndarray, where the host reaches it."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def record_use(self, stream: _StreamLike, /) -> None:
        """Announce work on it that gpuglue did not submit."""
    def release_captured(self) -> None:
        """Say that no captured graph that used it will run again."""
    def __getitem__(self, index: Any, /) -> GPUArray: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __iter__(self) -> Iterator[GPUArray]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __copy__(self) -> GPUArray: ...
    def __deepcopy__(self, memo: Any, /) -> GPUArray: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    __array_ufunc__: None
    __dlpack_c_exchange_api__: Any  # a capsule
    __hash__: None  # type: ignore[assignment]

@final
class ArrayFlags:
    """What GPUArray.flags is: numpy.ndarray.flags, for reading."""

    @property
    def c_contiguous(self) -> bool: ...
    @property
    def f_contiguous(self) -> bool: ...
    @property
    def contiguous(self) -> bool: ...
    @property
    def fortran(self) -> bool: ...
    @property
    def forc(self) -> bool: ...
    @property
    def fnc(self) -> bool: ...
    @property
    def owndata(self) -> bool: ...
    @property
    def writeable(self) -> bool: ...
    @property
    def aligned(self) -> bool: ...
    @property
    def num(self) -> int: ...
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
    """A GPUArray over the memory of another library's array, or at an address."""

def from_dlpack(
    x: Any, /, *, device: _DeviceLike | None = None, copy: bool | None = None, stream: _StreamLike | None = None
) -> GPUArray:
    """A GPUArray over the memory of any array with DLPack."""

def _unpickle(host: npt.NDArray[Any], device: str, /) -> GPUArray: ...
def _is_pending(array: GPUArray, /) -> bool: ...

_C_API: Any  # a capsule, for gpuglue/python.h

def to_gpu(a: npt.ArrayLike, device: _DeviceLike | None = None, stream: _StreamLike | None = None) -> GPUArray:
    """Copy a NumPy array, or what numpy.asarray makes one of, to a new GPUArray."""

def empty(
    shape: _Shape,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """A new, uninitialised array."""

def zeros(
    shape: _Shape,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """An array of zeros."""

def ones(
    shape: _Shape,
    dtype: npt.DTypeLike = ...,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """An array of ones."""

def full(
    shape: _Shape,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: _Order = "C",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """An array of one value."""

def empty_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """An uninitialised array in the likeness of another."""

def zeros_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Zeros in the likeness of another array."""

def ones_like(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """Ones in the likeness of another array."""

def full_like(
    a: Any,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: _OrderLike = "K",
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """One value in the likeness of another array."""

def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> GPUArray:
    """numpy.arange, computed on the host and copied to a new array."""

# ---- kernels -------------------------------------------------------------------------------------------------

_Dims: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Parameters: TypeAlias = tuple[tuple[int, int, str], ...]

@final
class Module:
    """Device code on a device."""

    def __new__(cls, image: _HasBuffer | str | Any, device: _DeviceLike | None = None) -> Module: ...
    def __getitem__(self, name: str, /) -> Kernel: ...
    def get_global(self, name: str, /) -> Buffer: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    @property
    def device(self) -> Device: ...
    @property
    def format(self) -> str: ...
    @property
    def arch(self) -> str: ...

@final
class Kernel:
    """A kernel of a Module."""

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
    ) -> Kernel: ...
    def max_active_blocks(self, block: _Dims, smem: SupportsIndex = 0) -> int: ...
    def suggest_block(self, smem: SupportsIndex = 0, limit: SupportsIndex = 0) -> tuple[int, int]: ...
    @property
    def name(self) -> str: ...
    @property
    def module(self) -> Module: ...
    @property
    def device(self) -> Device: ...
    @property
    def attributes(self) -> dict[str, int]: ...
    @property
    def parameters(self) -> _Parameters | None: ...

@final
class raw:
    """An argument of a kernel, byte by byte."""

    def __new__(cls, bytes: _HasBuffer) -> raw: ...

@final
class local:
    """An argument of a kernel that is memory which each block has to itself."""

    nbytes: Final[int]

    def __new__(cls, nbytes: SupportsIndex) -> local: ...

def _read_image(image: Any, /) -> tuple[str, str, dict[str, _Parameters | None]]: ...
def _copy_bytes(
    dst: Any, dst_offset: int, src: Any, src_offset: int, nbytes: int, stream: _StreamLike | None, asynchronous: bool, /
) -> None: ...
def _copy_box(
    dst: Any, dst_place: tuple[int, int, int], src: Any, src_place: tuple[int, int, int], shape: tuple[int, int, int],
    stream: _StreamLike | None, asynchronous: bool, /
) -> None: ...
def _fill_bytes(
    buffer: Buffer, offset: int, pattern: _HasBuffer, count: int, stream: _StreamLike | None, /
) -> None: ...
def _wrap_pointer(pointer: int, nbytes: int, device: _DeviceLike, owner: object, /) -> Buffer: ...
