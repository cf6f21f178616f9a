"""mpi4py with arrays in device memory: staged through pinned memory unless the MPI library takes device memory.

Imported on request: ``import gpuglue.mpi``. Its functions need mpi4py.
"""

import ctypes
import functools
import importlib
import logging
import os
import subprocess
import sys
from typing import Any

from . import _core

__all__ = ["Comm", "is_gpu_aware"]


def _mpi() -> Any:
    """mpi4py.MPI, whose import initialises MPI: the program may want to select a device before."""
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(f"this needs mpi4py, built for the MPI library of the launcher: pip install mpi4py ({error})") from error


# backend: its name in mpi_memory_alloc_kinds, its number in MPIX_GPU_query_support, functions without an argument
_QUERIES = {
    "cuda": ("cuda", 0, ("MPIX_Query_cuda_support",)),
    "hip": ("rocm", 2, ("MPIX_Query_rocm_support", "MPIX_Query_hip_support")),
    "ze": ("level_zero", 1, ("MPIX_Query_ze_support",)),
}

_SEND = (("buf", 0, "send"),)
_BOTH = (("sendbuf", 0, "send"), ("recvbuf", 1, "receive"))
# method: its buffers, by name, position and direction
_BUFFERS = {
    **dict.fromkeys(("Send", "Ssend", "Bsend", "Rsend"), _SEND),
    "Recv": (("buf", 0, "receive"),),
    "Sendrecv": (("sendbuf", 0, "send"), ("recvbuf", 3, "receive")),
    "Sendrecv_replace": (("buf", 0, "both"),),
    "Bcast": (("buf", 0, "both"),),
    **dict.fromkeys(
        ("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block", "Gather", "Gatherv", "Allgather",
         "Allgatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv"), _BOTH),
}  # fmt: skip
# method: the direction that matters at the root alone, and the position of the root
_ROOTED = {"Reduce": ("receive", 3), "Gather": ("receive", 2), "Gatherv": ("receive", 2), "Scatter": ("send", 2), "Scatterv": ("send", 2)}
_STATUS = {"Recv": 3, "Sendrecv": 6}  # a message may be shorter than its buffer
_PARTIAL = ("Exscan",)  # leaves a buffer as it is on some rank


def is_gpu_aware(backend: str) -> bool:
    """Return whether the MPI library reports that it takes device memory of a backend.

    Parameters
    ----------
    backend : str
        Name of the backend: 'cuda', 'hip', 'ze' or 'host'.

    Returns
    -------
    bool
        True for 'host', whose memory any library takes; False for a backend that MPI has no name for.

    See Also
    --------
    Comm : A communicator that stages where this is False.

    Notes
    -----
    The info key ``mpi_memory_alloc_kinds`` of MPI 4.1 is read first, then ``MPIX_GPU_query_support`` and
    ``MPIX_Query_cuda_support`` and its counterparts are called, if the library has them. The result describes how
    the library was built and started. Whether its transport works with device memory is known only at the first message.

    Examples
    --------
    >>> import gpuglue.mpi
    >>> gpuglue.mpi.is_gpu_aware("host")
    True
    """
    if backend == "host":
        return True
    kind, number, functions = _QUERIES.get(backend, (None, None, ()))
    if kind is None:
        return False
    library = ctypes.CDLL(_mpi().__file__)  # finds the functions of the library that it is linked with
    return kind in _memory_kinds() or _query(library, number) or any(_call(library, name) for name in functions)


def _memory_kinds() -> "list[str]":
    info = _mpi().COMM_WORLD.Get_info()
    try:
        kinds = info.Get("mpi_memory_alloc_kinds") or ""
    finally:
        info.Free()
    return [kind.partition(":")[0].strip() for kind in kinds.split(",")]


def _query(library: Any, number: "int | None") -> bool:
    answer = ctypes.c_int(0)
    function = getattr(library, "MPIX_GPU_query_support", None)
    if function is None:
        return False
    return function(number, ctypes.byref(answer)) == 0 and answer.value == 1


def _call(library: Any, name: str) -> bool:
    function = getattr(library, name, None)
    return False if function is None else function() == 1


# A message of a process to itself. What the launcher sets for this process is not for its child.
_MESSAGE = """
import sys
import gpuglue as gg
from mpi4py import MPI
with gg.Device(sys.argv[1]):
    sent, received = gg.full(1 << 16, 1.0), gg.zeros(1 << 16)
    gg.synchronize()
    MPI.COMM_SELF.Sendrecv(sent, 0, 0, received, 0, 0)
    sys.exit(0 if (received.get() == 1).all() else "a message arrived with other elements")
"""
_LAUNCHERS = ("PMI_", "PMI2_", "PMIX_", "PRTE_", "PALS_", "SLURM_", "HYDI_", "MPI_LOCAL", "OMPI_COMM_", "OMPI_UNIVERSE", "OMPI_FIRST_RANKS")


@functools.lru_cache(maxsize=None)
def _carries(device: str) -> bool:
    """Whether MPI takes memory of the device in a child process, which may crash."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run([sys.executable, "-P", "-c", _MESSAGE, device], env=variables, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    else:
        if not done.returncode:
            return True
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1] + f" (exit status {done.returncode})"
    text = "MPI reports that it takes memory of %s, but a test in a child process failed: %s. Messages are staged: gpu_aware=True omits the test"
    logging.getLogger("gpuglue").warning(text, device, reason)
    return False


class _Staged:
    """A host copy of a device array in the order of its memory."""

    def __init__(self, array: Any):
        flags = array.flags
        if not flags.c_contiguous and not flags.f_contiguous:
            raise _core.InvalidArgumentError(f"MPI takes contiguous arrays only, got strides {array.strides}: copy it first")
        self.array = array if flags.c_contiguous else array.T
        self.host = _core.empty_pinned(self.array.shape, self.array.dtype, device=array.device)

    def download(self) -> None:
        self.array.get(self.host)

    def upload(self, received: "int | None") -> None:
        """Only the bytes that were received, if their number is known."""
        if received is not None and received < self.host.nbytes:
            whole = self.array.get()
            _bytes(whole)[:received] = _bytes(self.host)[:received]
            self.array.set(whole)
        else:
            self.array.set(self.host)


def _bytes(host: Any) -> Any:
    return host.reshape(-1).view("u1")


def _device_array(obj: Any) -> "_core.GPUArray | None":
    """The array, if the host cannot access its memory."""
    if not isinstance(obj, (_core.GPUArray, _core.Buffer)):
        described = hasattr(obj, "__cuda_array_interface__") or hasattr(obj, "__sycl_usm_array_interface__")
        if not described and (not hasattr(obj, "__dlpack_device__") or obj.__dlpack_device__()[0] == 1):  # kDLCPU
            return None
        obj = _core.asarray(obj)  # of torch, CuPy, numba or dpctl
    try:
        memoryview(obj).release()
    except BufferError:
        return obj if isinstance(obj, _core.GPUArray) else _core.asarray(obj)
    return None


def _split(given: Any) -> "tuple[Any, list[Any] | None]":
    """A buffer as mpi4py takes it: an array, or a list that begins with one."""
    if isinstance(given, (list, tuple)) and given:
        return given[0], list(given[1:])
    return given, None


class Comm:
    """A communicator of mpi4py that takes arrays in device memory.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        The communicator.
    gpu_aware : bool, optional
        Whether device memory is passed to MPI. None asks `is_gpu_aware` for the backend of each array. If that is True, a child process
        first sends itself a message, once for each device; if it fails, arrays are staged, and the log says why. Pass True, which omits
        this test, only if the library is GPU-aware: any other reads the device's address as one of the host, and the process crashes.

    See Also
    --------
    is_gpu_aware : Ask the MPI library.

    Notes
    -----
    It has all attributes of `comm`. The blocking methods that take buffers (``Send``, ``Recv``, ``Sendrecv``, ``Bcast``,
    ``Allreduce``, ``Allgather`` and so on) also take a GPUArray, a Buffer or an array of torch, CuPy, numba or dpctl, alone or as
    the first element of a list with counts and types. They wait for pending work on the array. If MPI cannot take the memory,
    they copy it to pinned memory before the call, and back after it. These calls are MPI's: they have no timeout, and Ctrl-C takes
    effect when they return.

    Nonblocking methods, such as ``Isend``, raise UnsupportedError for device memory that would have to be staged. Other objects of
    mpi4py, such as windows and files, are not covered.

    Examples
    --------
    >>> import gpuglue.mpi
    >>> from mpi4py import MPI
    >>> world = gpuglue.mpi.Comm(MPI.COMM_SELF)
    >>> total = gg.zeros(3)
    >>> world.Allreduce(gg.ones(3), total)
    >>> total.get()
    array([1., 1., 1.])
    """

    def __init__(self, comm: Any, gpu_aware: "bool | None" = None):
        self.comm = comm
        self.gpu_aware = gpu_aware

    def __getattr__(self, name: str) -> Any:
        if name == "comm":  # of an object that copy or pickle has only begun
            raise AttributeError(name)
        value = getattr(self.comm, name)
        if name in _BUFFERS:
            return functools.partial(self._call_staged, name, value)
        if (name[:1].isupper() or name in ("mprobe", "improbe")) and callable(value):
            return functools.partial(self._call_checked, name, value)
        return value

    def __repr__(self) -> str:
        return f"<gpuglue.mpi.Comm of {self.comm!r}>"

    def _takes(self, array: Any) -> bool:
        """Whether MPI takes the memory; then it is also ready."""
        device = array.device
        if not (is_gpu_aware(device.backend) and _carries(f"{device.backend}:{device.ordinal}") if self.gpu_aware is None else self.gpu_aware):
            return False
        _core._wait(array)
        return True

    def _call_checked(self, name: str, method: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple(given.comm if isinstance(given, Comm) else given for given in args)
        kwargs = {key: given.comm if isinstance(given, Comm) else given for key, given in kwargs.items()}
        for given in (*args, *kwargs.values()):
            array = _device_array(_split(given)[0])
            if array is not None and not self._takes(array):
                raise _core.UnsupportedError(
                    f"{name}: the MPI library does not take memory of {array.device}, and gpuglue.mpi stages blocking calls "
                    "only: pass array.get() or pinned memory"
                )
        result = method(*args, **kwargs)
        wrapper = Comm if isinstance(result, _mpi().Comm) else _Message if isinstance(result, _mpi().Message) else None
        return wrapper(result, self.gpu_aware) if wrapper and result else result  # COMM_NULL is false

    def _call_staged(self, name: str, method: Any, *args: Any, **kwargs: Any) -> Any:
        call = _Call(self, name, list(args), kwargs)
        for parameter, position, direction in _BUFFERS[name]:
            call.stage(parameter, position, direction)
        result = method(*call.args, **kwargs)
        call.finish()
        return result


class _Message(Comm):
    """The message of a matching probe, whose methods are staged as those of the communicator."""


class _Call:
    """The arguments of a blocking call, with host memory in place of device memory."""

    def __init__(self, owner: Comm, name: str, args: "list[Any]", kwargs: "dict[str, Any]"):
        self.owner, self.name, self.args, self.kwargs = owner, name, args, kwargs
        self.status = None
        self.uploads: "list[_Staged]" = []
        self.in_place = self.get("sendbuf", 0) is _mpi().IN_PLACE

    def get(self, parameter: str, position: int, default: Any = None) -> Any:
        return self.args[position] if position < len(self.args) else self.kwargs.get(parameter, default)

    def put(self, parameter: str, position: int, value: Any) -> None:
        if position < len(self.args):
            self.args[position] = value
        else:
            self.kwargs[parameter] = value

    def away_from_root(self, position: int) -> bool:
        comm = self.owner.comm
        return not comm.Is_inter() and comm.Get_rank() != self.get("root", position, 0)

    def stage(self, parameter: str, position: int, direction: str) -> None:
        given, rest = _split(self.get(parameter, position))
        array = _device_array(given)
        if array is None or self.owner._takes(array):
            return
        rooted, root = _ROOTED.get(self.name, (None, 0))
        if rooted == direction and self.away_from_root(root):
            self.put(parameter, position, None)  # MPI does not read it
            return
        staged = _Staged(array)
        reads, writes = self.directions(direction, rest)
        if reads:
            staged.download()
        if writes:
            self.uploads.append(staged)
        if writes and rest is None:  # else elements may lie apart: all of them were read before
            self.ask_status()
        self.put(parameter, position, staged.host if rest is None else [staged.host, *rest])

    def directions(self, direction: str, rest: Any) -> "tuple[bool, bool]":
        """Whether the elements are copied to the host before, and back after the call."""
        if direction == "send":
            return True, False
        if self.name == "Bcast":
            away = self.away_from_root(1)
            return not away or rest is not None, away or self.owner.comm.Is_inter()
        partly = self.name not in _STATUS and (self.in_place or self.name in _PARTIAL or self.owner.comm.Is_inter())
        return direction == "both" or rest is not None or partly, True

    def ask_status(self) -> None:
        position = 1 if isinstance(self.owner, _Message) else _STATUS.get(self.name)
        if position is None:
            return
        self.status = self.get("status", position)
        if self.status is None:
            self.status = _mpi().Status()
            self.put("status", position, self.status)

    def finish(self) -> None:
        received = -1 if self.status is None else self.status.Get_elements(_mpi().BYTE)  # which may exceed an int
        for staged in self.uploads:
            staged.upload(received if received >= 0 else None)
