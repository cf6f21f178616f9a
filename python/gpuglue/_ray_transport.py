"""The transport 'GPUGLUE_IPC' of Ray; its interface is described in `ray.experimental.rdt.tensor_transport_manager`."""

import importlib
from dataclasses import dataclass, field
from typing import Any

from . import _core, _offers

_Manager: Any
_Metadata: Any
_Communicator: Any
try:
    _interface: Any = importlib.import_module("ray.experimental.rdt.tensor_transport_manager")
    _Manager, _Metadata, _Communicator = _interface.TensorTransportManager, _interface.TensorTransportMetadata, _interface.CommunicatorMetadata
except ImportError:  # for tools that import all modules: gpuglue.ray imports Ray before this one
    _Manager = _Metadata = _Communicator = object

NAME = "GPUGLUE_IPC"
STORE_SECONDS = 600.0  # for an actor on another machine
_registered = False


def register(with_ray: Any) -> None:
    global _registered
    if not _registered:
        with_ray(NAME, ["cuda", "hip", "ze", "host"], IpcTransport, _core.GPUArray)
    _registered = True


@dataclass
class Offers(_Metadata):
    """What the actor that has the arrays offers."""

    offers: "list[dict[str, Any]]" = field(default_factory=list)


@dataclass
class Source(_Communicator):
    """The actor that has the arrays; None if Ray does not say."""

    actor: Any = None


class IpcTransport(_Manager):
    """Receivers take the arrays, by handles if they can open them."""

    def tensor_transport_backend(self) -> str:
        return NAME

    @staticmethod
    def is_one_sided() -> bool:
        return True

    @staticmethod
    def can_abort_transport() -> bool:
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return True

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: "list[Any]") -> Offers:
        meta = [(array.shape, array.dtype) for array in rdt_object]
        device = rdt_object[0].device.backend if rdt_object else None
        return Offers(meta, device, [_offer(array) for array in rdt_object])

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: "str | None" = None) -> Source:
        return Source(src_actor)

    def recv_multiple_tensors(
        self, obj_id: str, tensor_transport_metadata: Any, communicator_metadata: Any, target_buffers: "list[Any] | None" = None
    ) -> "list[Any]":
        if target_buffers:
            raise _core.UnsupportedError(f"{NAME} does not receive into given arrays: do not call set_target_for_ref")
        offers, meta = tensor_transport_metadata.offers, tensor_transport_metadata.tensor_meta
        if any(offer["machine"] != _offers.place()["machine"] for offer in offers):
            return _from_store(offers, communicator_metadata.actor)
        return [_offers.take(offer, *one) if offer["token"] else _core.empty(*one) for offer, one in zip(offers, meta)]

    def send_multiple_tensors(self, tensors: "list[Any]", tensor_transport_metadata: Any, communicator_metadata: Any) -> None:
        raise NotImplementedError("the receiver takes the arrays")

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: "list[Any]") -> None:
        for offer in tensor_transport_meta.offers:
            _offers.holder.drop(offer["token"])

    def abort_transport(self, obj_id: str, communicator_metadata: Any) -> None:
        """A receiver that ends or fails leaves nothing behind."""


def _offer(array: Any) -> "dict[str, Any]":
    if not array.flags.c_contiguous:
        whole = _core.empty(array.shape, array.dtype, device=array.device)
        _core.copy(whole, array)
        array = whole
    if not array.nbytes:
        return {**_offers.place(), "token": b""}
    try:
        handle = _offers.handle_of(array)
    except _core.Error as error:
        _offers.warn(f"arrays are passed through host memory, since {error}")
        handle = b""
    return _offers.holder.offer(array, handle)


def _from_store(offers: "list[dict[str, Any]]", actor: Any) -> "list[Any]":
    """From another machine."""
    if actor is None:
        raise _core.UnsupportedError(f"{NAME} is within one machine, and the array is on another: call ray.get(ref, _use_object_store=True)")
    _offers.warn("arrays come through Ray's object store, since the actor that has them is on another machine")
    tokens = [offer["token"] for offer in offers]
    ray = importlib.import_module("ray")
    return ray.get(actor.__ray_call__.options(concurrency_group="_ray_system").remote(_held, tokens), timeout=STORE_SECONDS)


def _held(actor: Any, tokens: "list[bytes]") -> "list[Any]":
    """Runs in the actor that has the arrays."""
    arrays = [_offers.holder.find(token) for token in tokens]
    if any(array is None for array in arrays):
        raise ConnectionError("the actor holds the array no longer")
    return arrays
