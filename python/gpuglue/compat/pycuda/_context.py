"""Devices and contexts. A context is its device's primary one; the stack of each thread is gpuglue's own of
`with device:`, so that torch, CuPy and this module share what is current."""

import re
import threading

import gpuglue

from . import _enums
from ._errors import LogicError, translated

_stack = threading.local()


def _contexts():
    if not hasattr(_stack, "list"):
        _stack.list = []
    return _stack.list


@translated
def init(flags=0):
    """Initialise the default backend."""
    gpuglue.devices(gpuglue.default_backend())


def get_version():
    """Of the interface that is offered here, as a tuple."""
    return (12, 0, 0)


@translated
def get_driver_version():
    """As a number: 12040 for 12.4; 0 where the backend has no such version."""
    backend = gpuglue.default_backend()
    for record in gpuglue.backends(probe="active"):
        if record.name == backend:
            parts = (str(getattr(record, "version", "") or "0").split(".") + ["0"])[:2]
            return int(parts[0]) * 1000 + int(parts[1]) * 10 if all(p.isdigit() for p in parts) else 0
    return 0


class Device:
    """A device by its number, or by its PCI address."""

    @translated
    def __init__(self, which):
        self._device = gpuglue.Device(pci=which) if isinstance(which, str) else gpuglue.Device(which)

    @staticmethod
    @translated
    def count():
        return len(gpuglue.devices(gpuglue.default_backend()))

    @staticmethod
    def _of(device):
        self = object.__new__(Device)
        self._device = device
        return self

    def name(self):
        return self._device.name

    def pci_bus_id(self):
        return self._device.pci_bus_id

    def compute_capability(self):
        attributes = self._device.attributes
        return attributes.get("compute_major", 0), attributes.get("compute_minor", 0)

    def total_memory(self):
        return self._device.total_memory

    def get_attribute(self, attribute):
        try:
            return self.get_attributes()[attribute]
        except KeyError:
            raise LogicError(f"{self._device} does not tell {attribute!r}") from None

    def get_attributes(self):
        known = self._device.attributes
        told = {number: known[ours] for number, ours in _enums.ATTRIBUTES.items() if ours in known}
        told[_enums.device_attribute.INTEGRATED] = int(self._device.integrated)
        return told | self._place()

    def _place(self):
        """The PCI address in numbers."""
        parts = re.fullmatch(r"(\w+):(\w+):(\w+)\.\w+", self._device.pci_bus_id or "")
        names = ("PCI_DOMAIN_ID", "PCI_BUS_ID", "PCI_DEVICE_ID")
        return {_enums.device_attribute[name]: int(part, 16) for name, part in zip(names, parts.groups() if parts else ())}

    def __getattr__(self, name):
        try:
            number = _enums.device_attribute[name.upper()] if name.islower() else None
        except KeyError:
            number = None
        if number is None:
            raise AttributeError(f"Device has no attribute {name!r}")
        return self.get_attribute(number)

    @translated
    def make_context(self, flags=0):
        """The device's primary context, made current."""
        context = Context._of(self._device)
        context.push()
        return context

    def retain_primary_context(self):
        """The device's primary context, not made current."""
        return Context._of(self._device)

    def can_access_peer(self, other):
        check = getattr(self._device, "can_access", None)
        return bool(check(other._device)) if check else False

    def __eq__(self, other):
        return isinstance(other, Device) and self._device == other._device

    def __hash__(self):
        return hash(self._device)

    def __repr__(self):
        return f"<pycuda Device {self._device}>"


class Context:
    """The primary context of a device."""

    @staticmethod
    def _of(device):
        self = object.__new__(Context)
        self._device = device
        return self

    @translated
    def push(self):
        self._device.__enter__()
        _contexts().append(self)

    @staticmethod
    @translated
    def pop():
        """Take the newest context of this thread off; what was current before is again."""
        contexts = _contexts()
        if not contexts:
            raise LogicError("Context.pop: no context of this thread is left to be popped")
        contexts.pop()._device.__exit__(None, None, None)

    def detach(self):
        """Let go of the context; the primary one stays for the others that use it."""
        contexts = _contexts()
        if contexts and contexts[-1] is self:
            Context.pop()

    def attach(self, flags=0):
        return self

    @staticmethod
    def get_current():
        contexts = _contexts()
        return contexts[-1] if contexts else None

    @staticmethod
    @translated
    def get_device():
        return Device._of(gpuglue.current_device())

    @staticmethod
    @translated
    def synchronize():
        gpuglue.synchronize()

    @staticmethod
    def get_api_version():
        return 12000

    def set_current(self):
        self.push()

    def __eq__(self, other):
        return isinstance(other, Context) and self._device == other._device

    def __hash__(self):
        return hash(self._device)
