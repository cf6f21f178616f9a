"""Dask with arrays on devices: serialisers, and a cluster with one device for each worker.

Imported on request: ``import gpuglue.dask``. Its functions need the packages dask and distributed.
"""

import importlib
import logging
import os
import pickle
from typing import Any

from . import _core

__all__ = ["LocalCluster", "register"]

_PLUGIN = "gpuglue"  # of this name Dask keeps one
# backend: the variables that restrict its devices; the first that is set counts
_VISIBLE = {"cuda": ("CUDA_VISIBLE_DEVICES",), "hip": ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"), "ze": ("ZE_AFFINITY_MASK",)}


def _distributed(name: str = "distributed") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"gpuglue.dask needs Dask with distributed: pip install distributed ({error})") from error


# ---- serialisers


def register(client: Any = None) -> None:
    """Register serialisers for `GPUArray` in this process, and in the workers of a client.

    Parameters
    ----------
    client : distributed.Client, optional
        Its present and future workers register the serialisers too. None is this process only.

    Raises
    ------
    ImportError
        If dask or distributed is not installed.

    See Also
    --------
    LocalCluster : A cluster whose workers have registered them.

    Notes
    -----
    The process that sends and the one that receives must both have registered them. Without them arrays
    are sent by pickle.

    The sender copies elements in device memory to page-locked memory, from which Dask writes them to the connection; memory
    that the host can access is sent without a copy if the array is contiguous. The receiver copies from the memory that Dask
    received to its current device, not to the device of the same name. The order of a contiguous array is kept; a strided view
    arrives C-contiguous. The array that arrives is writeable.

    A second call does nothing. ``dask worker --preload gpuglue.dask`` registers them in a worker that is started by hand.

    Examples
    --------
    >>> import gpuglue.dask
    >>> gpuglue.dask.register()                       # doctest: +SKIP
    """
    protocol = _distributed("distributed.protocol.serialize")
    protocol.dask_serialize.register(_core.GPUArray, _serialize)
    protocol.dask_deserialize.register(_core.GPUArray, _deserialize)
    if client is not None:
        client.register_plugin(_worker_plugin(), name=_PLUGIN)


def _worker_plugin() -> Any:
    """A plugin whose class is pickled by value: the worker needs no class of this process."""
    base: Any = _distributed().WorkerPlugin

    class Register(base):
        def setup(self, worker: Any) -> None:
            importlib.import_module("gpuglue.dask").register()

    return Register()


def _serialize(array: Any) -> "tuple[dict[str, Any], list[memoryview]]":
    """What Dask sends: a header that msgpack takes, and the elements."""
    flags = array.flags
    transposed = flags.f_contiguous and not flags.c_contiguous
    header = {"shape": array.shape, "dtype": pickle.dumps(array.dtype), "transposed": transposed}
    if not array.nbytes:
        return header, []
    return header, [_frame(array.T if transposed else array)]


def _frame(array: Any) -> Any:
    """The elements in C order as bytes, in memory that the host can access."""
    if array.flags.c_contiguous:
        try:
            return memoryview(array.reshape(-1).view("u1"))  # waits for pending work, and keeps the memory
        except BufferError:  # device memory
            pass
    pinned: Any = _core.empty_pinned(array.shape, array.dtype, device=array.device)
    array.get(pinned)
    return memoryview(pinned.reshape(-1).view("u1"))


def _deserialize(header: "dict[str, Any]", frames: "list[Any]") -> Any:
    np = importlib.import_module("numpy")
    shape, dtype = tuple(header["shape"]), pickle.loads(header["dtype"])
    if header["transposed"]:
        shape = shape[::-1]
    host = np.frombuffer(frames[0], dtype).reshape(shape) if frames else np.empty(shape, dtype)
    array = _core.to_gpu(host)
    return array.T if header["transposed"] else array


# ---- a cluster


def LocalCluster(devices: Any = None, **kwargs: Any) -> Any:
    """Start a Dask cluster on this machine with one worker process for each device.

    Parameters
    ----------
    devices : str or sequence of Device or str, optional
        Name of a backend, whose devices are all used, or the device of each worker. Several workers may share a
        device: ``["host:0"] * 4``. None is all devices of the default backend.
    **kwargs
        ``asynchronous``, ``dashboard_address``, ``host``, ``protocol``, ``scheduler_port``, ``security`` and
        ``silence_logs`` as for ``distributed.LocalCluster``. All others are arguments of each worker, such as ``nthreads``
        (1 if not given), ``memory_limit``, ``env``, ``resources`` and ``preload``.

    Returns
    -------
    distributed.SpecCluster
        The cluster. It is a context manager. The names of its workers are the numbers of the devices in `devices`.

    Raises
    ------
    ImportError
        If dask or distributed is not installed.
    InvalidArgumentError
        If there is no such device, none at all, or Dask is configured to fork its workers.
    BackendUnavailableError
        If the backend cannot be used here.

    See Also
    --------
    register : Serialisers for workers that were started otherwise.

    Notes
    -----
    Each worker is a new process (`spawn`) with these variables, so that other libraries use the same device as gpuglue:

    - cuda: ``CUDA_VISIBLE_DEVICES``, and hip: ``HIP_VISIBLE_DEVICES``, with the worker's own device first and the others
      after it. The worker's device is ordinal 0; the others remain accessible as peers.
    - ze: ``ZE_AFFINITY_MASK`` with the worker's device only, because its order has no effect. If the variable is set already,
      it stays as it is, and only gpuglue uses the worker's device.
    - all: ``GPUGLUE_DEVICE`` and ``GPUGLUE_BACKEND``.

    A worker that does not find its device does not start. Workers of GPUs have the resource ``GPU=1``. All workers, and this
    process, register the serialisers of `register`.

    Examples
    --------
    >>> import gpuglue.dask
    >>> from dask.distributed import Client
    >>> with gpuglue.dask.LocalCluster("host") as cluster, Client(cluster) as client:  # doctest: +SKIP
    ...     client.submit(gg.ones, 3).result().get()
    array([1., 1., 1.])
    """
    distributed = _distributed()
    chosen = _devices(devices)
    _check_spawn()
    register()
    shared: "dict[str, Any]" = {"host": "127.0.0.1", "protocol": "tcp://"}
    shared.update({name: kwargs.pop(name) for name in ("host", "protocol", "security") if name in kwargs})
    dashboard = kwargs.pop("dashboard_address", ":8787")
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {**shared, "port": kwargs.pop("scheduler_port", 0), "dashboard": dashboard is not None, "dashboard_address": dashboard},
    }
    whole = {name: kwargs.pop(name) for name in ("asynchronous", "loop", "name") if name in kwargs}
    quiet = {"silence_logs": kwargs.pop("silence_logs", logging.WARN)}
    workers = {number: {"cls": distributed.Nanny, "options": _worker(device, len(chosen), {**shared, **quiet, **kwargs})} for number, device in enumerate(chosen)}
    return distributed.SpecCluster(scheduler=scheduler, workers=workers, security=shared.get("security"), **quiet, **whole)


def _devices(devices: Any) -> "list[Any]":
    if devices is None or isinstance(devices, str):
        chosen = list(_core.devices(_core.default_backend() if devices is None else devices))
    else:
        chosen = [_core.Device(device) for device in devices]
    if not chosen:
        raise _core.InvalidArgumentError(f"devices is {devices!r}, which has no device: a worker needs one")
    return chosen


def _check_spawn() -> None:
    method = importlib.import_module("dask").config.get("distributed.worker.multiprocessing-method")
    if method != "spawn":
        raise _core.InvalidArgumentError(
            f"Dask's distributed.worker.multiprocessing-method is {method!r}, expected 'spawn': a child of a fork cannot use a device "
            "that its parent has opened"
        )


def _worker(device: Any, count: int, options: "dict[str, Any]") -> "dict[str, Any]":
    """Arguments of a Nanny."""
    own: "dict[str, Any]" = {"nthreads": 1, "memory_limit": _memory_limit(count), "dashboard": False}
    if device.backend != "host":
        own["resources"] = {"GPU": 1}
    options = {**own, **options}
    options["env"] = {**_environment(device), **(options.get("env") or {})}
    given = options.get("preload") or []
    options["preload"] = ["gpuglue.dask", *([given] if isinstance(given, str) else given)]
    return options


def _memory_limit(count: int) -> Any:
    return _distributed("distributed.worker_memory").parse_memory_limit("auto", 1, count, logger=logging.getLogger(__name__))


def _environment(device: Any) -> "dict[str, str]":
    """The variables by which a worker uses the device."""
    visible, ordinal = _visibility(device)
    return {**visible, "GPUGLUE_BACKEND": device.backend, "GPUGLUE_DEVICE": f"{device.backend}:{ordinal}"}


def _visibility(device: Any) -> "tuple[dict[str, str], int]":
    """The vendor's variable, and the device's ordinal under it."""
    names = _VISIBLE.get(device.backend)
    if names is None:
        return {}, device.ordinal
    given = next((os.environ[name] for name in names if os.environ.get(name)), None)
    if device.backend == "ze":
        return ({}, device.ordinal) if given else ({names[0]: str(device.ordinal)}, 0)
    count = len(_core.devices(device.backend))
    entries = given.split(",")[:count] if given else [str(number) for number in range(count)]
    return {names[0]: ",".join(entries[device.ordinal :] + entries[: device.ordinal])}, 0


def dask_setup(worker: Any) -> None:
    """Called by Dask in each worker that preloads this module."""
    register()
    _core.current_device()  # raises now, with the reason, rather than in the first task
