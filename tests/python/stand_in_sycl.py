"""What gpuglue uses of torch.xpu and dpctl, where there is no device for them: SYCL's objects are structs that tests/support/sycl.c
reads."""

import ctypes
import types
import uuid

OPENCL, LEVEL_ZERO = 1, 2


class Object(ctypes.Structure):
    """A sycl::queue or a sycl::device."""

    _fields_ = [("backend", ctypes.c_int8), ("immediate", ctypes.c_int32), ("native", ctypes.c_uint64)]

    @property
    def address(self):
        return ctypes.addressof(self)


class TorchDevice:
    """torch.device."""

    def __init__(self, given):
        text = str(given)
        self.type, _, number = text.partition(":")
        self.index = int(number) if number else None

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class TorchStream:
    """torch.xpu.Stream."""

    def __init__(self, device, queue):
        self.device, self.queue, self.sycl_queue = TorchDevice(device), queue, queue.address


def torch(uuids, hip=None, current=0):
    """The module, whose xpu devices have these UUIDs; None: this version reports none."""
    def properties(index):
        if uuids[index] is None:
            return types.SimpleNamespace(name="a GPU")
        return types.SimpleNamespace(uuid=types.SimpleNamespace(bytes=list(uuid.UUID(uuids[index]).bytes)))

    module = types.ModuleType("torch")
    module.device, module.__version__ = TorchDevice, "2.99"
    module.version = types.SimpleNamespace(hip=hip)
    module.cuda = types.SimpleNamespace(current_device=lambda: current)
    module.xpu = types.SimpleNamespace(get_device_properties=properties, current_device=lambda: current)
    return module


class SyclDevice:
    """dpctl.SyclDevice."""

    def __init__(self, kind, native=0):
        self.backend, self.device_type = f"backend_type.{kind}", "device_type.gpu"
        self.object = Object(LEVEL_ZERO if kind == "level_zero" else OPENCL, 0, native)

    def addressof_ref(self):
        return self.object.address


class SyclQueue:
    """dpctl.SyclQueue."""

    def __init__(self, device, native, in_order=True):
        self.sycl_device, self.is_in_order, self.object = device, in_order, Object(LEVEL_ZERO, 1, native)

    def addressof_ref(self):
        return self.object.address


def dpctl(devices):
    """The module."""
    module = types.ModuleType("dpctl")
    module.get_devices = lambda: devices
    return module
