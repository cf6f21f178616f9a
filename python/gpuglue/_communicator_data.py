"""What `Communicator` is made of: the variables of launchers, addresses, and arrays as the C functions take them."""

import math
import operator
import os
import re
import zlib
from typing import Any

import numpy as np

from . import _core

TYPES = {
    name: number
    for number, name in enumerate(
        "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128".split()
    )
}
REDUCTIONS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4}
LOGICAL = {"sum": 3, "prod": 2, "min": 2, "max": 3}  # of bool: or is the largest, and is the smallest

SLURM_STEP = ("SLURM_JOB_ID", "SLURM_STEP_ID")

# Of the usual launchers: the variables of the rank, of the number of ranks, and those that only the ranks of one run share.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID")),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
    ("PMI_RANK", "PMI_SIZE", SLURM_STEP),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", SLURM_STEP),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE", ("FLUX_JOB_ID",)),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", ("LSB_JOBID",)),
    ("SLURM_PROCID", "SLURM_NTASKS", SLURM_STEP),
)
# Of launchers of MPI: the number of ranks, and of those on this machine.
LOCAL_SIZES = {
    "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_SIZE": "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_SIZE": "MV2_COMM_WORLD_LOCAL_SIZE",
    "JSM_NAMESPACE_SIZE": "JSM_NAMESPACE_LOCAL_SIZE",
}
ID_MAX = 63  # bytes


def number(name: str) -> int:
    try:
        return int(os.environ[name])
    except ValueError:
        raise _core.InvalidArgumentError(f"{name} is {os.environ[name]!r}, expected a number") from None


def launched() -> "tuple[int, int, str]":
    """Rank, number of ranks, and a text that only the ranks of this run share; '' where the launcher has none."""
    for rank, size, run in LAUNCHERS:
        if rank in os.environ and size in os.environ:
            text = ".".join(os.environ[name] for name in run if name in os.environ)
            return number(rank), number(size), text.encode(errors="replace")[-ID_MAX:].decode(errors="ignore")
    raise _core.InvalidArgumentError(
        "Communicator() needs rank and size, or the environment variables of a launcher: "
        + ", ".join(f"{rank} and {size}" for rank, size, _ in LAUNCHERS)
    )


def master_port() -> int:
    if "GPUGLUE_COMM_PORT" in os.environ:
        return number("GPUGLUE_COMM_PORT")
    if "MASTER_PORT" in os.environ:
        port = number("MASTER_PORT")
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return port
        return port + 1 if port < 65535 else port - 1  # torch listens on MASTER_PORT itself, until the program ends
    if "SLURM_JOB_ID" in os.environ:
        return 20000 + number("SLURM_JOB_ID") % 10000
    raise _core.InvalidArgumentError("Communicator() needs an address 'host:port', or MASTER_ADDR and MASTER_PORT in the environment")


def nodes() -> int:
    """On how many machines Slurm started the ranks."""
    for name in ("SLURM_STEP_NUM_NODES", "SLURM_NNODES"):
        if name in os.environ and "SLURM_PROCID" in os.environ:
            return number(name)
    return 1


def first_node(size: int) -> str:
    """Of the ranks, as their launcher says; '' if there are several, and the first is unknown."""
    for name, local in LOCAL_SIZES.items():
        if name in os.environ and local in os.environ:
            return "127.0.0.1" if number(local) >= min(size, number(name)) else ""
    if nodes() == 1:
        return "127.0.0.1"
    listed = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")
    return re.sub(r"\[(\w+)[^]]*\]", r"\1", listed).partition(",")[0] if os.environ.get("SLURM_NTASKS") == str(size) else ""


def master_address(size: int) -> str:
    """Where rank 0 listens."""
    host = os.environ.get("MASTER_ADDR")
    if host is None and not (host := first_node(size)):
        raise _core.UnsupportedError(
            "the ranks are on several nodes: set MASTER_ADDR to the name of rank 0's, start them on one, or use Communicator.from_mpi"
        )
    return f"{host}:{master_port()}"


def split_address(address: str) -> "tuple[str, int]":
    host, colon, port = address.removeprefix("tcp://").rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or "\0" in host:
        raise _core.InvalidArgumentError(f"address is {address!r}, expected 'host:port', such as '127.0.0.1:29500'")
    return host.strip("[]"), int(port)


def nanoseconds(timeout: "float | None") -> int:
    if timeout is None:
        return (1 << 64) - 1
    if not math.isfinite(timeout) or timeout <= 0:
        raise _core.InvalidArgumentError(f"timeout is {timeout!r}, expected a positive number of seconds, or None for no limit")
    return min(int(timeout * 1e9), (1 << 64) - 1)


def integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an integer: pass an int, not a {type(value).__name__}") from None


def split_numbers(color: "int | None", key: int) -> "tuple[int | None, int]":
    """Those of gg_comm_split, and of MPI."""
    color, key = None if color is None else integer(color, "color"), integer(key, "key")
    if color is not None and not 0 <= color < 1 << 31:
        raise _core.InvalidArgumentError(f"split: color is {color}, expected 0 to {(1 << 31) - 1}, or None for no communicator")
    if not -1 << 31 <= key < 1 << 31:
        raise _core.InvalidArgumentError(f"split: key is {key}, expected an integer of 32 bits")
    return color, key


POINTERS = ("__sycl_usm_array_interface__", "ptr", "gpudata", "data_ptr")  # as asarray knows them


def wrapped(given: Any) -> Any:
    """A GPUArray or ndarray over the memory of another array or buffer; other objects as they are."""
    if given is None or isinstance(given, (np.ndarray, _core.GPUArray)):
        return given
    if isinstance(given, _core.Buffer) or hasattr(given, "__cuda_array_interface__"):
        return _core.asarray(given)
    if hasattr(given, "__array_interface__"):
        return given
    if hasattr(given, "__dlpack_device__"):
        on_host = given.__dlpack_device__()[0] == 1
        return np.asarray(_core.asarray(given, device="host", copy=False)) if on_host else _core.asarray(given)
    if any(hasattr(given, name) for name in POINTERS):
        return _core.asarray(given)
    try:
        return np.asarray(memoryview(given))
    except TypeError:
        return given


class Data:
    """An array in memory that the processor can access, or on a device: then `staged`, of which `load` makes a pinned copy.

    One in Fortran order is represented by its transpose.
    """

    def __init__(self, given: Any, name: str, *, reads: bool, writes: bool):
        self.given: Any
        self.array: Any
        self.given = self.array = given if isinstance(given, (np.ndarray, _core.GPUArray)) else self._taken(given, name, writes)
        self.dtype, self.size, self.nbytes = self.given.dtype, self.given.size, self.given.nbytes
        if isinstance(given, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, whose mask other ranks would not get: pass {name}.filled() or {name}.data")
        self.fortran = self.given.flags.f_contiguous and not self.given.flags.c_contiguous
        if self.fortran:
            self.given = self.array = self.given.T
        if not self.given.flags.c_contiguous:
            raise _core.InvalidArgumentError(f"{name} has strides {self.given.strides}, expected a contiguous array: copy it first")
        if self.dtype.hasobject:
            raise _core.InvalidArgumentError(f"{name} has dtype {self.dtype}: objects cannot be sent to another process")
        if not self.given.flags.aligned:
            raise _core.InvalidArgumentError(f"{name} is not aligned for its dtype: copy it first")
        if writes and not self.given.flags.writeable:
            raise _core.InvalidArgumentError(f"{name} is read-only, but the operation writes to it")
        self._refuse_capture()
        self.staged, self._reads = False, reads
        self.view: "memoryview | None" = None
        if isinstance(self.given, _core.GPUArray):
            self._reach()

    @staticmethod
    def _taken(given: Any, name: str, writes: bool) -> Any:
        array = wrapped(given)
        if isinstance(array, (np.ndarray, _core.GPUArray)):
            return array
        if writes and not hasattr(given, "__array_interface__"):
            raise TypeError(f"{name} must be an array, not {type(given).__name__}")
        array = np.asarray(given)
        # NumPy's scalars, and some other objects, make a new array each time: the result would be lost.
        if writes and array.ctypes.data != np.asarray(given).ctypes.data:
            raise TypeError(f"{name} is a {type(given).__name__}, which cannot be written to: pass an array, such as np.array({name})")
        return array

    def _refuse_capture(self) -> None:
        on_device = isinstance(self.given, _core.GPUArray)
        if _core._is_capturing(self.given.device if on_device else None) and (on_device or _core.pointer_info(self.address).kind != "host"):
            raise _core.UnsupportedError("the ranks exchange through the host, which cannot be captured; call it after the capture")

    @property
    def type_name(self) -> str:
        """What ranks compare: at most 23 bytes."""
        order = "F" * self.fortran
        if self.dtype.names or self.dtype.subdtype:
            return f"{order}V{self.dtype.itemsize}-{zlib.crc32(repr(self.dtype).encode()):08x}"
        return (order + (self.dtype.name if self.dtype.kind == "V" else self.dtype.str))[:23]  # 'bfloat16' is '<V2' in NumPy

    def _reach(self) -> None:
        try:
            self.view = memoryview(self.given.reshape(-1).view("u1"))  # waits for pending work
        except BufferError:
            self.staged = True

    def load(self) -> None:
        """For transports that take memory of the host only."""
        if self.staged and self.array is self.given:
            self.array = _core.empty_pinned(self.given.shape, self.dtype, device=self.given.device)
            if self._reads:
                self.given.get(self.array)

    @property
    def address(self) -> int:
        return self.array.ptr if isinstance(self.array, _core.GPUArray) else self.array.ctypes.data

    def finish(self) -> None:
        """The operation has written the array."""
        if self.array is not self.given and self.staged:
            self.given.set(self.array)


def address_of(data: "Data | None") -> int:
    return 0 if data is None else data.address


def side_of(data: "Data | None") -> Any:
    """An address, or an array on a device."""
    return data.given if data is not None and data.staged else address_of(data)


def check_order(operation: str, *sides: "Data | None") -> None:
    """Raise an error unless the elements have the same order in memory on all ranks."""
    given = [data for data in sides if data is not None]
    if not any(data.fortran for data in given):
        return
    if operation not in ("broadcast", "all_reduce", "reduce", "message"):
        raise _core.InvalidArgumentError(f"{operation} divides arrays into blocks, expected a C-contiguous array")
    if not all(data.fortran and data.given.shape == given[0].given.shape for data in given):
        raise _core.InvalidArgumentError("x and out have different orders or shapes")


def same_dtype(out: Data, x: Data) -> None:
    if out.dtype != x.dtype:
        raise _core.InvalidArgumentError(f"out has dtype {out.dtype}, expected that of x: {x.dtype}")


def type_name(*arrays: "Data | None") -> str:
    """Of the arrays of an operation, which have one dtype; '' agrees with every type: a barrier has none."""
    return next((data.type_name for data in arrays if data is not None), "")


def required(array: Any, name: str) -> Any:
    if array is None:
        raise _core.InvalidArgumentError(f"{name} is None, expected an array on the root")
    return array


def reduction(dtype: Any, op: str, types: "dict[str, int]" = TYPES) -> "tuple[int, int]":
    """The numbers of the type and of the operator in C."""
    if op not in REDUCTIONS:
        raise _core.InvalidArgumentError(f"op is {op!r}, expected one of {', '.join(map(repr, REDUCTIONS))}")
    if op == "avg" and dtype.kind not in "fcV":
        raise _core.UnsupportedError(f"arrays of dtype {dtype!r} have no average of their own dtype: convert them to a float dtype")
    name = dtype.name
    if name == "bool":
        return TYPES["uint8"], LOGICAL[op]
    if name not in types or not dtype.isnative:
        raise _core.UnsupportedError(f"arrays of dtype {dtype!r} cannot be combined, only those of bool, {', '.join(types)}")
    if dtype.kind == "c" and op in ("min", "max"):
        raise _core.UnsupportedError(f"complex numbers have no {op}imum: expected op 'sum' or 'prod'")
    return types[name], REDUCTIONS[op]
