"""Ray with arrays on devices: the devices that Ray assigns, and arrays that actors take from each other by IPC handles.

Imported on request: ``import gpuglue.ray``. Its functions need the package ray.
"""

import importlib
import os
from typing import Any

from . import _core
from ._offers import VISIBLE

__all__ = ["devices", "register"]


def _ray(name: str = "ray") -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"gpuglue.ray needs Ray: pip install ray ({error})") from error


def devices() -> "list[Any]":
    """Return the devices that Ray has assigned to this task or actor.

    Returns
    -------
    list of Device
        In Ray's order: as many as its ``num_gpus``, so none for 0.

    Raises
    ------
    BackendUnavailableError
        If `GPUGLUE_BACKEND` names no backend that can be used here.
    InvalidArgumentError
        If Ray has assigned a GPU which the default backend does not have.
    ImportError
        If ray is not installed.

    Notes
    -----
    Ray assigns a GPU by its number in ``CUDA_VISIBLE_DEVICES``, ``HIP_VISIBLE_DEVICES`` or ``ZE_AFFINITY_MASK``, and sets that
    variable to the assigned GPUs only. They are then all devices that gpuglue has, and the first is the default.
    With ``RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=1`` (or ``…_HIP_…``, ``…_ZE_AFFINITY_MASK``) all devices remain visible; this
    function then finds the assigned ones.

    Examples
    --------
    >>> import gpuglue.ray
    >>> gpuglue.ray.devices()[0].set_current()        # doctest: +SKIP
    """
    ids = _ray().get_runtime_context().get_accelerator_ids().get("GPU", [])
    if not ids:
        return []
    backend = _core.default_backend()
    names = VISIBLE.get(backend)
    if names is None:
        raise _core.InvalidArgumentError(
            f"Ray has assigned GPU {', '.join(ids)}, but the default backend is {backend!r}, which has none: set GPUGLUE_BACKEND to that of the GPUs"
        )
    given = next((os.environ[name] for name in names if os.environ.get(name)), None)
    shown = given.split(",") if given else [str(device.ordinal) for device in _core.devices(backend)]
    if backend == "ze":
        shown.sort(key=lambda id: id.zfill(8))  # Level Zero ignores the order of its mask
    missing = [id for id in ids if id not in shown]
    if missing:
        raise _core.InvalidArgumentError(f"Ray has assigned GPU {', '.join(missing)}, but {backend} has only {', '.join(shown)}")
    return [_core.Device(f"{backend}:{shown.index(id)}") for id in ids]


def register() -> None:
    """Register a transport of arrays between actors of one machine, 'GPUGLUE_IPC', with Ray.

    Call it in the process that creates the actors, before it declares their class. A second call does nothing. This is an alpha
    interface, as is the interface of Ray that it uses: it may change.

    Raises
    ------
    ImportError
        If ray is not installed.
    UnsupportedError
        If the installed Ray has no tensor transports for other types than torch's.

    Notes
    -----
    A method that is declared with ``@ray.method(tensor_transport="GPUGLUE_IPC")`` of an actor class with
    ``@ray.remote(enable_tensor_transport=True)`` leaves the `GPUArray` of its result in the memory of its device. An actor to which the result is
    passed opens that memory by an IPC handle and copies it to its current device. Ray releases the memory when the last reference
    to the result has gone. The actor must not write to the array until then.

    If the receiver cannot open the handle, because it does not see the sender's device, the elements come through host memory,
    and the receiver's log says why. If it runs on another machine, they come by Ray's object store.

    Without a transport arrays are passed by pickle, whose data Ray keeps in its object store: one copy from the device, and
    one to the device in each receiver. This needs no registration.

    Examples
    --------
    >>> import gpuglue.ray
    >>> gpuglue.ray.register()                        # doctest: +SKIP
    """
    ray = _ray()
    experimental = _ray("ray.experimental")
    if not hasattr(experimental, "register_tensor_transport"):
        raise _core.UnsupportedError(f"Ray {ray.__version__} has no ray.experimental.register_tensor_transport: arrays are passed by pickle; a newer Ray has it")
    importlib.import_module("gpuglue._ray_transport").register(experimental.register_tensor_transport)
