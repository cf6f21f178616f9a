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


class UsmDescription(ctypes.Structure):
    """Members that the descriptions of Level Zero have in common, and room for the others."""

    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p), ("rest", ctypes.c_uint64 * 4)]


class UsmReader:
    """What dpctl.memory does with an object that has __sycl_usm_array_interface__: it asks the driver, in a context of SYCL, what the
    pointer is, and copies in lists of that context."""

    def __init__(self, library, device):
        self.call, self.context, self.device = ctypes.CDLL(library), ctypes.c_void_p(), device
        self.do("zeContextCreate", ctypes.c_void_p(device.native_handles[2]), self.described(0xD), ctypes.byref(self.context))

    def do(self, name, *arguments):
        code = getattr(self.call, name)(*arguments)
        assert code == 0, f"{name} returned 0x{code:x}"

    @staticmethod
    def described(stype, *rest):
        return ctypes.byref(UsmDescription(stype=stype, rest=(rest + (0,) * 4)[:4]))

    def read(self, given):
        """The memory's type, its device, and the bytes of the elements."""
        interface = given.__sycl_usm_array_interface__
        assert interface["version"] == 1 and len(interface["strides"]) == len(interface["shape"])
        itemsize = int(interface["typestr"][2:])
        first = interface["data"][0] + interface["offset"] * itemsize
        facts = UsmDescription(stype=0x17)
        owner, host, made, pool, event = (ctypes.c_void_p() for _ in range(5))
        self.do("zeMemGetAllocProperties", self.context, ctypes.c_void_p(first), ctypes.byref(facts), ctypes.byref(owner))
        extent = itemsize + sum((n - 1) * stride * itemsize for n, stride in zip(interface["shape"], interface["strides"]))
        device = ctypes.c_void_p(self.device.native_handles[0])
        self.do("zeMemAllocHost", self.context, self.described(0x16), ctypes.c_size_t(extent), ctypes.c_size_t(64), ctypes.byref(host))
        self.do("zeCommandListCreateImmediate", self.context, device, self.described(0xE, 0, 2 << 32), ctypes.byref(made))  # asynchronous
        self.do("zeEventPoolCreate", self.context, self.described(0x10, 1 | 1 << 32), 0, None, ctypes.byref(pool))  # seen by the host, 1
        self.do("zeEventCreate", pool, self.described(0x11), ctypes.byref(event))
        self.do("zeCommandListAppendMemoryCopy", made, host, ctypes.c_void_p(first), ctypes.c_size_t(extent), event, 0, None)
        self.do("zeEventHostSynchronize", event, ctypes.c_uint64(2**64 - 1))
        found = ctypes.string_at(host, extent)
        for name, handle in (("CommandList", made), ("Event", event), ("EventPool", pool)):
            self.do(f"ze{name}Destroy", handle)
        self.do("zeMemFree", self.context, host)
        return facts.rest[0] & 0xFFFFFFFF, owner.value, found

    def close(self):
        self.do("zeContextDestroy", self.context)
