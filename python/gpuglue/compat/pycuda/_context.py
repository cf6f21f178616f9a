"""Devices and contexts. Each context is its device's primary context. The context stack of a thread is that of
`with device:`, so that torch, CuPy and this module share the current context."""

import re
import threading

import gpuglue

from . import _enums, _limits
from ._errors import LogicError, translated
from ._missing import Refusing

_stack = threading.local()


def _contexts():
    if not hasattr(_stack, "list"):
        _stack.list = []
    return _stack.list


class Device:
    """A device of the default backend.

    Its attributes are also properties with their names in lower case, such as ``device.warp_size``.

    Parameters
    ----------
    which : int or str
        Number, or PCI address such as '0000:65:00.0'.

    Raises
    ------
    LogicError
        If there is no such device.

    Examples
    --------
    >>> device = drv.Device(0)
    >>> device.max_threads_per_block
    1024
    """

    @translated
    def __init__(self, which):
        self._device = gpuglue.Device(pci=which) if isinstance(which, str) else gpuglue.Device(which)

    @staticmethod
    @translated
    def count():
        """Count the devices of the default backend.

        Returns
        -------
        int
            Their number.

        Raises
        ------
        RuntimeError
            If no backend can be used.

        Examples
        --------
        >>> drv.Device.count() >= 1
        True
        """
        return len(gpuglue.devices(gpuglue.default_backend()))

    @staticmethod
    def _of(device):
        self = object.__new__(Device)
        self._device = device
        return self

    def name(self):
        """Return the driver's name of the device.

        Returns
        -------
        str
            The name.

        Examples
        --------
        >>> drv.Device(0).name() == gg.Device(0).name
        True
        """
        return self._device.name or ""

    def pci_bus_id(self):
        """Return the PCI address.

        Returns
        -------
        str or None
            Such as '0000:65:00.0'.

        Examples
        --------
        >>> drv.Device(0).pci_bus_id() == gg.Device(0).pci_bus_id
        True
        """
        return self._device.pci_bus_id

    def compute_capability(self):
        """Return the compute capability.

        Returns
        -------
        tuple of int
            Major and minor; (0, 0) on host.

        Examples
        --------
        >>> major, minor = drv.Device(0).compute_capability()
        """
        attributes = self._device.attributes
        return attributes.get("compute_major", 0), attributes.get("compute_minor", 0)

    def total_memory(self):
        """Return the size of the memory.

        Returns
        -------
        int
            Bytes.

        Examples
        --------
        >>> drv.Device(0).total_memory() > 0
        True
        """
        return self._device.total_memory

    def get_attribute(self, attribute):
        """Return one attribute.

        Parameters
        ----------
        attribute : device_attribute
            The attribute.

        Returns
        -------
        int
            Its value, in the driver's unit.

        Raises
        ------
        LogicError
            If the device does not report it.

        Examples
        --------
        >>> drv.Device(0).get_attribute(drv.device_attribute.MAX_THREADS_PER_BLOCK)
        1024
        """
        try:
            return self.get_attributes()[attribute]
        except KeyError:
            raise LogicError(f"{self._device} does not report {attribute!r}") from None

    def get_attributes(self):
        """Return the attributes that the device reports.

        Returns
        -------
        dict
            Values by device_attribute.

        Examples
        --------
        >>> drv.device_attribute.WARP_SIZE in drv.Device(0).get_attributes()
        True
        """
        known = self._device.attributes
        values = {number: known[name] for number, name in _enums.ATTRIBUTES.items() if name in known}
        values[_enums.device_attribute.INTEGRATED] = int(self._device.integrated)
        return values | self._place()

    def _place(self):
        """The PCI address in numbers."""
        parts = re.fullmatch(r"(\w+):(\w+):(\w+)\.\w+", self._device.pci_bus_id or "")
        names = ("PCI_DOMAIN_ID", "PCI_BUS_ID", "PCI_DEVICE_ID")
        return {_enums.device_attribute[name]: int(part, 16) for name, part in zip(names, parts.groups() if parts else ())}

    def __getattr__(self, name):
        try:
            number = _enums.device_attribute[name.upper()]
        except KeyError:
            raise AttributeError(f"Device has no attribute {name!r}") from None
        return self.get_attribute(number)

    @translated
    def make_context(self, flags=0):
        """Make the device's primary context current.

        Parameters
        ----------
        flags : int, default 0
            Not used.

        Returns
        -------
        Context
            It is pushed onto the context stack of this thread.

        Raises
        ------
        RuntimeError
            If the driver cannot create the context.

        Examples
        --------
        >>> context = drv.Device(0).make_context()
        >>> context.pop()
        """
        context = Context._of(self._device)
        context.push()
        return context

    def retain_primary_context(self):
        """Return the device's primary context, not made current.

        Returns
        -------
        Context
            The context.

        Examples
        --------
        >>> context = drv.Device(0).retain_primary_context()
        >>> context.push()
        >>> context.pop()
        """
        return Context._of(self._device)

    def can_access_peer(self, other):
        """Return whether a copy between two devices bypasses the host.

        Parameters
        ----------
        other : Device
            The other device.

        Returns
        -------
        bool
            Whether each can access the memory of the other.

        Examples
        --------
        >>> device = drv.Device(0)
        >>> device.can_access_peer(device)
        True
        """
        check = getattr(self._device, "can_access", None)
        return bool(check(other._device)) if check else False

    def __eq__(self, other):
        return isinstance(other, Device) and self._device == other._device

    def __hash__(self):
        return hash(self._device)

    def __repr__(self):
        return f"<pycuda Device {self._device}>"


class Context(Refusing):
    """The primary context of a device.

    A Device makes it. The context stack of a thread is that of ``with device:`` in gpuglue.

    Examples
    --------
    >>> drv.Context.get_current() == drv.Context.get_device().retain_primary_context()
    True
    """

    @staticmethod
    def _of(device):
        self = object.__new__(Context)
        self._device = device
        return self

    @translated
    def push(self):
        """Make the context current in this thread.

        Raises
        ------
        RuntimeError
            If the driver fails.

        Examples
        --------
        >>> context = drv.Device(0).retain_primary_context()
        >>> context.push()
        >>> context.pop()
        """
        self._device.__enter__()
        _contexts().append(self)

    @staticmethod
    @translated
    def pop():
        """Restore the context that was current before the newest push of this thread.

        Raises
        ------
        LogicError
            If the context stack is empty.

        Examples
        --------
        >>> drv.Device(0).retain_primary_context().push()
        >>> drv.Context.pop()
        """
        contexts = _contexts()
        if not contexts:
            raise LogicError("Context.pop: the context stack of this thread is empty")
        contexts.pop()._device.__exit__(None, None, None)

    def detach(self):
        """Release the context.

        It is popped if it is the newest one. The primary context itself stays, as others use it.

        Examples
        --------
        >>> drv.Device(0).make_context().detach()
        """
        contexts = _contexts()
        if contexts and contexts[-1] is self:
            Context.pop()

    def attach(self, flags=0):
        """Return the context itself.

        Parameters
        ----------
        flags : int, default 0
            Not used.

        Returns
        -------
        Context
            The context.

        Examples
        --------
        >>> context = drv.Device(0).retain_primary_context()
        >>> context.attach() is context
        True
        """
        return self

    @staticmethod
    def get_current():
        """Return the newest context of this thread's stack.

        Returns
        -------
        Context or None
            None if the stack is empty.

        Examples
        --------
        >>> drv.Context.get_current() is not None
        True
        """
        contexts = _contexts()
        return contexts[-1] if contexts else None

    @staticmethod
    @translated
    def get_device():
        """Return the current device of this thread.

        Returns
        -------
        Device
            The device, also if it was made current by other means.

        Raises
        ------
        RuntimeError
            If no backend can be used.

        Examples
        --------
        >>> drv.Context.get_device().name() == gg.current_device().name
        True
        """
        return Device._of(gpuglue.current_device())

    @staticmethod
    @translated
    def synchronize():
        """Wait for all work of the current device.

        Raises
        ------
        Error
            If work that was queued earlier failed.

        Examples
        --------
        >>> drv.Context.synchronize()
        """
        gpuglue.synchronize()

    @staticmethod
    def get_api_version():
        """Return the version of the interface.

        Returns
        -------
        int
            12000 for 12.0.

        Examples
        --------
        >>> drv.Context.get_api_version()
        12000
        """
        return 12000

    @staticmethod
    def enable_peer_access(peer, flags=0):
        """Check that the current device can access the memory of another; gpuglue enables this where it is used.

        Parameters
        ----------
        peer : Context
            Context of the other device.
        flags : int, default 0
            Not used.

        Raises
        ------
        LogicError
            If the device cannot.

        Examples
        --------
        >>> mine, other = drv.Context.get_device(), drv.Device(drv.Device.count() - 1)
        >>> if mine.can_access_peer(other):
        ...     drv.Context.enable_peer_access(other.retain_primary_context())
        """
        mine = Context.get_device()
        if not mine.can_access_peer(Device._of(peer._device)):
            raise LogicError(f"{mine._device} cannot access the memory of {peer._device}: copy with memcpy_peer()")

    @staticmethod
    def disable_peer_access(peer):
        """Do nothing: gpuglue's copies use the access between devices wherever it is possible.

        Parameters
        ----------
        peer : Context
            Context of the other device.

        Examples
        --------
        >>> drv.Context.disable_peer_access(drv.Device(0).retain_primary_context())
        """

    @staticmethod
    @translated
    def get_limit(limit):
        """Return a limit of the current context.

        Parameters
        ----------
        limit : limit
            The limit.

        Returns
        -------
        int
            Its value, in bytes for a size.

        Raises
        ------
        LogicError
            If the device does not have it. On host there are none.

        Examples
        --------
        >>> if gg.current_device().backend == "cuda":
        ...     bytes_of_a_thread = drv.Context.get_limit(drv.limit.STACK_SIZE)
        """
        return _limits.get(limit)

    @staticmethod
    @translated
    def set_limit(limit, value):
        """Set a limit of the current context, which other packages use too. On host it does nothing.

        Parameters
        ----------
        limit : limit
            The limit.
        value : int
            Its value, in bytes for a size. The driver may round it up.

        Raises
        ------
        LogicError
            If the driver refuses it, as for the heap of ``malloc`` after a kernel has used it.

        Examples
        --------
        >>> drv.Context.set_limit(drv.limit.MALLOC_HEAP_SIZE, 1 << 24)
        """
        _limits.set(limit, value)

    @staticmethod
    def set_cache_config(config):
        """Do nothing: the hint has no effect on current devices.

        Parameters
        ----------
        config : func_cache
            The hint.

        Examples
        --------
        >>> drv.Context.set_cache_config(drv.func_cache.PREFER_L1)
        """

    @staticmethod
    def get_cache_config():
        """Return the hint for caches.

        Returns
        -------
        func_cache
            PREFER_NONE.

        Examples
        --------
        >>> print(drv.Context.get_cache_config())
        PREFER_NONE
        """
        return _enums.func_cache.PREFER_NONE

    @staticmethod
    def set_shared_config(config):
        """Do nothing: the hint has no effect on current devices.

        Parameters
        ----------
        config : shared_config
            The hint.

        Examples
        --------
        >>> drv.Context.set_shared_config(drv.shared_config.EIGHT_BYTE_BANK_SIZE)
        """

    @staticmethod
    def get_shared_config():
        """Return the hint for the banks of shared memory.

        Returns
        -------
        shared_config
            FOUR_BYTE_BANK_SIZE, as current devices have it.

        Examples
        --------
        >>> print(drv.Context.get_shared_config())
        FOUR_BYTE_BANK_SIZE
        """
        return _enums.shared_config.FOUR_BYTE_BANK_SIZE

    def set_current(self):
        """Make the context current in this thread: the same as `push`.

        Examples
        --------
        >>> context = drv.Device(0).retain_primary_context()
        >>> context.set_current()
        >>> context.pop()
        """
        self.push()

    def __eq__(self, other):
        return isinstance(other, Context) and self._device == other._device

    def __hash__(self):
        return hash(self._device)
