"""Dask with arrays on devices: serialisers, and a cluster with one device for each worker.

Imported on request: ``import gpuglue.dask``. Its functions need the packages dask and distributed.
"""

import importlib
import logging
import os
import pickle
from typing import Any

from . import _core, _dask_handles, _dask_pinned, _offers
from ._offers import VISIBLE

__all__ = ["DeviceStore", "LocalCluster", "register"]

_PLUGIN = "gpuglue"  # of this name Dask keeps one


def _distributed(name: str = "distributed") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"gpuglue.dask needs Dask with distributed: pip install distributed ({error})") from error


# ---- serialisers


def register(client: Any = None) -> Any:
    """Register serialisers for `GPUArray`, and `concatenate` for chunks of Dask arrays, in this process and in the workers of a client.

    Parameters
    ----------
    client : distributed.Client, optional
        Its present and future workers register the serialisers too. None is this process only.

    Returns
    -------
    None or awaitable
        None, except if the client is asynchronous: the workers register the serialisers when the result is awaited.

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

    The sender copies elements in device memory to pinned memory, or to pageable memory if they are more than 64 MiB, and Dask writes
    them to the connection from there; memory that the host can access is sent without a copy if the array is contiguous. The receiver copies from the memory that Dask
    received to its current device, not to the device of the same name. The order of a contiguous array is kept; a strided view
    arrives C-contiguous. The array that arrives is writeable.

    Through TCP and TLS the elements of arrays from 256 KiB on are received into pinned memory, and so is what else their message has,
    if the message has at most 64 MiB: to page-lock more memory takes longer than the copy from pageable memory.
    Dask copies the elements to pageable memory if it compresses (``distributed.comm.compression``), or if an array that is not
    the first of its message is larger than ``distributed.comm.shard``.

    Between processes of one machine that both have registered them, contiguous arrays in device memory from 256 KiB on are not sent: the receiver
    opens the sender's memory by an IPC handle and copies from it. The sender keeps the memory until then, or until the receiver has
    failed or ended. If the handle cannot be opened, the elements come through host memory, and the receiver's log says why. If the sender does
    not answer within 30 seconds, Dask fetches the array again. Through TCP and TLS the receiver waits on a thread, and its event loop continues.
    Connections that began before the registration do not use handles.

    A second call does nothing. ``dask worker --preload gpuglue.dask`` registers them in a worker that is started by hand.

    Examples
    --------
    >>> import gpuglue.dask
    >>> gpuglue.dask.register()                       # doctest: +SKIP
    """
    protocol = _distributed("distributed.protocol.serialize")
    protocol.dask_serialize.register(_core.GPUArray, _serialize)
    protocol.dask_deserialize.register(_core.GPUArray, _deserialize)
    _dask_handles.extend_handshake(_distributed("distributed.comm.core").Comm)
    tcp = _distributed("distributed.comm.tcp")
    _dask_handles.extend_reads(tcp, _distributed("distributed.protocol").loads)
    _dask_pinned.extend_reads(tcp)
    _register_chunks()
    if client is None:
        return None
    answers = client.register_plugin(_worker_plugin(), name=_PLUGIN)
    return answers if client.asynchronous else None


def _register_chunks() -> None:
    try:
        dispatch = importlib.import_module("dask.array.dispatch")
    except ImportError:  # an optional part of Dask
        return
    dispatch.concatenate_lookup.register(_core.GPUArray, importlib.import_module("gpuglue").concatenate)


def _worker_plugin() -> Any:
    """A plugin whose class is pickled by value: the worker needs no class of this process."""
    base: Any = _distributed().WorkerPlugin

    class Register(base):
        def setup(self, worker: Any) -> None:
            importlib.import_module("gpuglue.dask").register()

    return Register()


def _serialize(array: Any, context: Any = None) -> "tuple[dict[str, Any], list[memoryview]]":
    """What Dask sends: a header that msgpack takes, and the elements, or an offer of them in the header."""
    flags = array.flags
    transposed = flags.f_contiguous and not flags.c_contiguous
    header = {"shape": array.shape, "dtype": pickle.dumps(array.dtype), "transposed": transposed}
    if not array.nbytes:
        return header, []
    array = array.T if transposed else array
    offer = _dask_handles.offer(array, context) if array.flags.c_contiguous else None
    return ({**header, "offer": offer}, []) if offer else (header, [_frame(array)])


def _frame(array: Any) -> Any:
    """The elements in C order as bytes, in memory that the host can access."""
    if array.flags.c_contiguous:
        try:
            return memoryview(array.reshape(-1).view("u1"))  # waits for pending work, and keeps the memory
        except BufferError:  # device memory
            pass
    if array.nbytes > _dask_pinned.LARGEST:
        return memoryview(array.get().reshape(-1).view("u1"))
    pinned: Any = _core.empty_pinned(array.shape, array.dtype, device=array.device)
    array.get(pinned)
    return memoryview(pinned.reshape(-1).view("u1"))


def _deserialize(header: "dict[str, Any]", frames: "list[Any]") -> Any:
    np = importlib.import_module("numpy")
    shape, dtype = tuple(header["shape"]), pickle.loads(header["dtype"])
    if header["transposed"]:
        shape = shape[::-1]
    if "offer" in header:
        array = _offers.take(header["offer"], shape, dtype)
    else:
        array = _core.to_gpu(np.frombuffer(frames[0], dtype).reshape(shape) if frames else np.empty(shape, dtype))
    return array.T if header["transposed"] else array


# ---- a cluster


def LocalCluster(devices: Any = None, *, device_memory_limit: Any = None, **kwargs: Any) -> Any:
    """Start a Dask cluster on this machine with one worker process for each device.

    Parameters
    ----------
    devices : str, Device or sequence of Device or str, optional
        Name of a backend, whose devices are all used, or the device of each worker, such as ``"cuda:0"``. Several workers may share a
        device: ``["host:0"] * 4``. None is all devices of the default backend.
    device_memory_limit : int, float or str, optional
        How much device memory the results of each worker may use: bytes, a fraction of the device's memory (a float up to 1),
        or text such as ``"20 GiB"``. Least recently used results then move to host memory, and to disk beyond Dask's target
        for `memory_limit`: see `DeviceStore`. None is no limit: Dask then counts results in device memory as host memory.
    **kwargs
        ``asynchronous``, ``dashboard_address``, ``host``, ``protocol``, ``scheduler_port``, ``security`` and
        ``silence_logs`` as for ``distributed.LocalCluster``. All others are arguments of each worker, such as ``nthreads``
        (1 if not given), ``memory_limit``, ``env``, ``resources`` and ``preload``.
        The protocol is TLS if `security` requires encryption.

    Returns
    -------
    distributed.SpecCluster
        The cluster, whose ``scale`` cannot add workers. It is a context manager. The names of its workers are the numbers of the devices in `devices`.

    Raises
    ------
    ImportError
        If dask or distributed is not installed.
    InvalidArgumentError
        If there is no such device, none at all, `device_memory_limit` is not a number of bytes, an argument is one of
        ``distributed.LocalCluster`` that has no meaning here, or Dask is configured to fork its workers.
    BackendUnavailableError
        If the backend cannot be used here.

    See Also
    --------
    register : Serialisers for workers that were started otherwise.
    DeviceStore : Results of a worker that move to host memory and disk.

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
    _check_names(kwargs, device_memory_limit)
    register()
    shared = _connection(distributed, kwargs)
    dashboard = kwargs.pop("dashboard_address", ":8787")
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {**shared, "port": kwargs.pop("scheduler_port", 0), "dashboard": dashboard is not None, "dashboard_address": dashboard},
    }
    whole = {name: kwargs.pop(name) for name in ("asynchronous", "loop", "name") if name in kwargs}
    quiet = {"silence_logs": kwargs.pop("silence_logs", logging.WARN)}
    workers = {number: {"cls": distributed.Nanny, "options": _worker(device, len(chosen), device_memory_limit, {**shared, **quiet, **kwargs})} for number, device in enumerate(chosen)}
    cluster = distributed.SpecCluster(scheduler=scheduler, workers=workers, security=shared.get("security"), **quiet, **whole)
    cluster.new_worker_spec = _refuse_worker  # called by scale
    return cluster


def _refuse_worker() -> None:
    raise _core.UnsupportedError("LocalCluster has one worker for each device: start another with more devices")


def _devices(devices: Any) -> "list[Any]":
    if devices is None or (isinstance(devices, str) and ":" not in devices):
        chosen = list(_core.devices(_core.default_backend() if devices is None else devices))
    else:
        chosen = [_core.Device(device) for device in ([devices] if isinstance(devices, (str, _core.Device)) else devices)]
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


def _check_names(options: "dict[str, Any]", device_memory_limit: Any) -> None:
    """What distributed.LocalCluster takes, and a worker would refuse only when it starts."""
    advice = {
        "n_workers": "devices has one device for each worker: devices=['host:0'] * 2 starts two",
        "threads_per_worker": "use nthreads",
        "processes": "each worker is a process",
        "worker_class": "each worker is a distributed.Nanny",
    }
    for name in advice.keys() & options.keys():
        raise _core.InvalidArgumentError(f"LocalCluster has no argument {name}: {advice[name]}")
    if device_memory_limit is not None and "data" in options:
        raise _core.InvalidArgumentError("data and device_memory_limit are both given, but data takes the place of the store that has the limit: give one")


def _connection(distributed: Any, options: "dict[str, Any]") -> "dict[str, Any]":
    """The arguments of scheduler and workers; they are taken from the options."""
    security = options.pop("security", None)
    if security is True:
        security = distributed.Security.temporary()
    encrypted = security is not None and getattr(security, "require_encryption", False)
    shared = {"host": "127.0.0.1", "protocol": "tls://" if encrypted else "tcp://", **({"security": security} if security else {})}
    shared.update({name: options.pop(name) for name in ("host", "protocol") if options.get(name) is not None})
    return shared


def _worker(device: Any, count: int, device_memory_limit: Any, options: "dict[str, Any]") -> "dict[str, Any]":
    """Arguments of a Nanny."""
    own: "dict[str, Any]" = {"nthreads": 1, "memory_limit": _memory_limit(count), "dashboard": False}
    if device.backend != "host":
        own["resources"] = {"GPU": 1}
    options = {**own, **options}
    options["env"] = {**_environment(device), **(options.get("env") or {})}
    _add_preload(options)
    if device_memory_limit is not None:
        limit = _device_limit(device_memory_limit, device)
        options["data"] = (DeviceStore, {"device_memory_limit": limit, "host_memory_limit": _host_target(options)})
    return options


def _add_preload(options: "dict[str, Any]") -> None:
    """This module before those that are given or, as Dask has it, configured."""
    config = importlib.import_module("dask").config
    modules, arguments = options.get("preload"), options.get("preload_argv")
    modules = config.get("distributed.worker.preload") if modules is None else modules
    arguments = config.get("distributed.worker.preload-argv") if arguments is None else arguments
    modules = [modules] if isinstance(modules, str) else list(modules or [])
    if arguments and isinstance(arguments[0], str):  # of all modules
        arguments = [list(arguments)] * len(modules)
    options["preload"] = ["gpuglue.dask", *modules]
    options["preload_argv"] = [[], *(arguments or [[]] * len(modules))]


def _memory_limit(count: int) -> Any:
    return _distributed("distributed.worker_memory").parse_memory_limit("auto", 1, count, logger=logging.getLogger(__name__))


def _host_target(options: "dict[str, Any]") -> "int | None":
    """The bytes of results beyond which Dask writes to disk; None is no limit."""
    config = importlib.import_module("dask").config
    parse = _distributed("distributed.worker_memory").parse_memory_limit
    limit = parse(options["memory_limit"], options["nthreads"] or 1, logger=logging.getLogger(__name__))
    target = config.get("distributed.worker.memory.target")
    return int(limit * target) if limit and target else None


def _device_limit(limit: Any, device: Any) -> int:
    """The limit in bytes."""
    try:
        if isinstance(limit, bool):
            raise ValueError(limit)
        if isinstance(limit, float) and 0 < limit <= 1:
            count = int(limit * device.total_memory)
        else:
            count = int(importlib.import_module("dask.utils").parse_bytes(limit))
    except (AttributeError, TypeError, ValueError, OverflowError):
        count = 0
    if count <= 0:
        raise _core.InvalidArgumentError(
            f"device_memory_limit is {limit!r}, expected bytes above 0, a fraction of the device's memory such as 0.8, or text such as '20 GiB'"
        )
    return count


def _environment(device: Any) -> "dict[str, str]":
    """The variables by which a worker uses the device."""
    visible, ordinal = _visibility(device)
    return {**visible, "GPUGLUE_BACKEND": device.backend, "GPUGLUE_DEVICE": f"{device.backend}:{ordinal}"}


def _visibility(device: Any) -> "tuple[dict[str, str], int]":
    """The vendor's variable, and the device's ordinal under it."""
    names = VISIBLE.get(device.backend)
    if names is None:
        return {}, device.ordinal
    given = next((os.environ[name] for name in names if os.environ.get(name)), None)
    if device.backend == "ze":
        return ({}, device.ordinal) if given else ({names[0]: str(device.ordinal)}, 0)
    count = len(_core.devices(device.backend))
    entries = given.split(",")[:count] if given else [str(number) for number in range(count)]
    return {names[0]: ",".join(entries[device.ordinal :] + entries[: device.ordinal])}, 0


# ---- results that leave device memory


def DeviceStore(device_memory_limit: int, host_memory_limit: "int | None" = None, worker_local_directory: "str | None" = None) -> Any:
    """Create a mapping for the results of a worker that moves arrays from device memory to host memory, and to disk.

    Parameters
    ----------
    device_memory_limit : int
        Bytes of device memory that its arrays may use, on all devices together.
    host_memory_limit : int, optional
        Bytes of host memory that its values may use. None is no limit: nothing is written to disk for its size.
    worker_local_directory : str, optional
        Directory of the files; the worker gives its own. None is a temporary directory, which is removed with the mapping.

    Returns
    -------
    MutableMapping
        For the argument ``data`` of a worker; to another process pass ``(DeviceStore, {"device_memory_limit": limit})``. Its
        attributes ``device_bytes``, ``host_bytes`` and ``disk_bytes`` are the bytes of its values in each place.

    Raises
    ------
    ImportError
        If dask or distributed is not installed.
    InvalidArgumentError
        If `device_memory_limit` is not above 0.

    See Also
    --------
    LocalCluster : Its argument `device_memory_limit` gives each worker such a mapping.

    Notes
    -----
    When the arrays exceed `device_memory_limit`, least recently used values are copied to pinned memory, or to other host
    memory if that is exhausted. When values in host memory exceed `host_memory_limit`, distributed's own ``SpillBuffer`` writes
    the least recently used of them to disk, within ``distributed.worker.memory.max-spill``. At access a value returns to the
    devices that its arrays were on, after others have made room for it.

    Counted are the `GPUArray` of a value, also in its lists, tuples and dicts: each by its ``nbytes``, once in a value. A view counts
    its own elements only. Its memory is released when all arrays that share it have left; what returns has memory of its own and is
    writeable. Arrays in attributes of other objects are not counted, and remain where they are until Dask writes the object to disk.

    A value above the limit is kept in host memory, and copied for each access. A value that cannot be moved stays, which is logged
    once; the disk being full is logged, and the values remain in host memory. If device memory is exhausted when a value
    should return, all others leave it first. If that does not suffice, `OutOfMemoryError` names the key, and the value remains.

    All methods may be called from several threads. One at a time moves data.

    Examples
    --------
    >>> import gpuglue.dask
    >>> store = gpuglue.dask.DeviceStore(1000)        # doctest: +SKIP
    >>> store["x"] = gg.ones(100)                     # doctest: +SKIP
    >>> store["y"] = gg.ones(100)                     # doctest: +SKIP
    >>> store.device_bytes                            # doctest: +SKIP
    800
    """
    config = _distributed("dask").config
    _distributed()
    spill = config.get("distributed.worker.memory.max-spill")
    max_spill = spill if spill is False else importlib.import_module("dask.utils").parse_bytes(spill)
    if isinstance(device_memory_limit, bool) or not isinstance(device_memory_limit, int) or device_memory_limit <= 0:
        raise _core.InvalidArgumentError(f"device_memory_limit is {device_memory_limit!r}, expected a number of bytes above 0")
    store = importlib.import_module("gpuglue._dask_store")
    return store.DeviceStore(device_memory_limit, host_memory_limit, max_spill, worker_local_directory)


def dask_setup(worker: Any) -> None:
    """Called by Dask in each worker that preloads this module."""
    register()
    _core.current_device()  # raises now, with the reason, rather than in the first task
