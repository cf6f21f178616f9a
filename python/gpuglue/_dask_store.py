"""The results of a Dask worker: on its devices, then in host memory, then on disk."""

import functools
import importlib
import io
import logging
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from . import _core

_logger = logging.getLogger("gpuglue.dask")


def arrays_in(value: Any) -> "list[Any]":
    """The arrays on devices in a value and its containers, each once."""
    seen: "set[int]" = set()
    left, arrays = [value], []
    while left:
        item = left.pop()
        if not isinstance(item, (_core.GPUArray, list, tuple, set, frozenset, dict)) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, _core.GPUArray):
            arrays.append(item)
        else:
            left.extend(item.values() if isinstance(item, dict) else item)
    return arrays


def device_bytes(value: Any) -> int:
    """Bytes of the arrays on devices in a value and its containers."""
    return sum(array.nbytes for array in arrays_in(value))


# ---- a value in host memory


class Spilled:
    """A value whose arrays have been moved from their devices to host memory."""

    def __init__(self, value: Any):
        file = io.BytesIO()
        pickler = _pickler()(file)
        pickler.dump(value)
        self.pickled, self.buffers = file.getvalue(), pickler.buffers
        self.arrays = [(_download(array), f"{array.device.backend}:{array.device.ordinal}", transposed(array)) for array in pickler.arrays]

    @property
    def device_bytes(self) -> int:
        """Bytes of the arrays that go back to devices."""
        return sum(host.nbytes for host, _, _ in self.arrays)

    @property
    def host_bytes(self) -> int:
        """Bytes of all in host memory."""
        return self.device_bytes + len(self.pickled) + sum(memoryview(buffer).nbytes for buffer in self.buffers)

    def restore(self) -> Any:
        """The value, with each array on the device that it came from."""
        unpickler = _Unpickler(io.BytesIO(self.pickled), buffers=self.buffers)
        unpickler.arrays = [_upload(*array) for array in self.arrays]
        return unpickler.load()


@functools.cache
def _pickler() -> Any:
    """The class; Dask and what it needs are imported on request."""
    base: Any = importlib.import_module("cloudpickle").Pickler

    class Pickler(base):
        """Pickles what is not an array on a device; those are named by their number."""

        def __init__(self, file: Any):
            self.buffers: "list[Any]" = []
            self.arrays: "list[Any]" = []
            self._numbers: "dict[int, int]" = {}
            super().__init__(file, protocol=5, buffer_callback=self.buffers.append)

        def persistent_id(self, obj: Any) -> "int | None":
            if not isinstance(obj, _core.GPUArray):
                return None
            if id(obj) not in self._numbers:
                self._numbers[id(obj)] = len(self.arrays)
                self.arrays.append(obj)
            return self._numbers[id(obj)]

    return Pickler


class _Unpickler(pickle.Unpickler):
    arrays: "list[Any]"

    def persistent_load(self, pid: Any) -> Any:
        return self.arrays[pid]


def transposed(array: Any) -> bool:
    """Is the array in Fortran's order only?"""
    return array.flags.f_contiguous and not array.flags.c_contiguous


def _download(array: Any) -> Any:
    if transposed(array):
        array = array.T
    try:
        host: Any = _core.empty_pinned(array.shape, array.dtype, device=array.device)
    except _core.OutOfMemoryError as error:
        _logger.warning("moving %d bytes to pageable memory, because pinned memory is exhausted: %s", array.nbytes, error)
        host = np.empty(array.shape, array.dtype)
    array.get(host)
    return host


def _upload(host: Any, device: str, transpose: bool) -> Any:
    array = _core.to_gpu(host, device=device)
    return array.T if transpose else array


# ---- the store


class _NotMoved(Exception):
    """The value of a key could not leave its device, and is still there."""


class DeviceStore(MutableMapping[Any, Any]):
    """See `gpuglue.dask.DeviceStore`."""

    def __init__(self, device_limit: int, host_limit: "int | None", max_spill: "int | bool", directory: "str | None"):
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="gpuglue-dask-")
            directory = self._temporary.name
        self.device_memory_limit = device_limit
        spill, zict = importlib.import_module("distributed.spill"), importlib.import_module("zict")
        importlib.import_module("dask.sizeof").sizeof.register(Spilled, lambda spilled: spilled.host_bytes)
        self._spill_errors = (OSError, spill.MaxSpillExceeded, spill.PickleError)
        self._host: Any = spill.SpillBuffer(os.path.join(directory, "storage"), sys.maxsize if host_limit is None else host_limit, max_spill)
        self._device: Any = zict.LRU(device_limit, {}, on_evict=self._to_host, weight=lambda key, value: device_bytes(value))
        self._spilled: "set[Any]" = set()  # keys whose value in self._host is Spilled
        self._alive: Any = zict.WeakValueMapping()  # values that left the store's device memory, while a task still uses them
        self._unmovable: "set[Any]" = set()  # keys whose error was logged
        self._lock = threading.RLock()

    # what a mapping has

    def __getitem__(self, key: Any) -> Any:
        with self._lock:
            if key in self._device:
                return self._device[key]
            if key not in self._spilled:
                return self._of_host(key)
            return self._to_device(key, (self._host.fast if key in self._host.fast else self._host.slow)[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._lock:
            if key in self:
                del self[key]
            if not arrays_in(value):
                self._host[key] = value
                return
            self._device.set_noevict(key, value)
            self._make_room(self.device_memory_limit)

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            if key in self._device:
                del self._device[key]
            else:
                del self._host[key]
            self._spilled.discard(key)
            self._unmovable.discard(key)
            self._alive.pop(key, None)

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            return iter([*self._device, *self._host])

    def __len__(self) -> int:
        with self._lock:
            return len(self._device) + len(self._host)

    def __contains__(self, key: Any) -> bool:
        with self._lock:
            return key in self._device or key in self._host

    def __repr__(self) -> str:
        return f"<gpuglue.dask.DeviceStore: {self.device_bytes} of {self.device_memory_limit} bytes on devices, {self.host_bytes} in host memory, {self.disk_bytes} on disk>"

    # how much is where

    @property
    def device_bytes(self) -> int:
        """Bytes of arrays on devices."""
        return int(self._device.total_weight)

    @property
    def host_bytes(self) -> int:
        """Bytes in host memory."""
        return int(self._host.fast.total_weight)

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk."""
        return int(self._host.spilled_total.disk)

    # what distributed asks of a store that can spill

    @property
    def fast(self) -> Any:
        """What `evict` can write to disk."""
        return self._host.fast

    @property
    def slow(self) -> Any:
        """What is on disk."""
        return self._host.slow

    @property
    def spilled_total(self) -> Any:
        """Bytes on disk, as objects and as written."""
        return self._host.spilled_total

    @property
    def cumulative_metrics(self) -> Any:
        """What distributed measured of the disk."""
        return self._host.cumulative_metrics

    def evict(self) -> int:
        """Write the least recently used value in host memory to disk."""
        with self._lock:
            return int(self._host.evict())

    # moves

    def _to_host(self, key: Any, value: Any) -> None:
        """Called by the LRU, which keeps the value on its device if this raises."""
        try:
            self._host[key] = Spilled(value)
        except Exception as error:
            if key not in self._unmovable:
                self._unmovable.add(key)
                _logger.error("%r with %d bytes stays in device memory, because it cannot be moved to host memory: %r", key, device_bytes(value), error)
            raise _NotMoved(key) from error
        self._spilled.add(key)
        self._alive[key] = value

    def _of_host(self, key: Any) -> Any:
        try:
            return self._host[key]
        except self._spill_errors as error:
            if key not in self._host.fast:
                raise  # the file could not be read
            _logger.warning("host memory exceeds its limit, because no value can be written to disk: %r", error)
            return self._host.fast[key]

    def _make_room(self, limit: int) -> int:
        """Move least recently used values to host memory, each at most once; return how many moved."""
        moved = 0
        for _ in range(len(self._device)):
            if self._device.total_weight <= limit:
                break
            try:
                self._device.evict()
                moved += 1
            except _NotMoved as error:
                self._device[error.args[0]]  # becomes the most recently used: the others go first
        return moved

    def _to_device(self, key: Any, spilled: Spilled) -> Any:
        size = spilled.device_bytes
        value = self._alive.get(key)
        self._make_room(max(0, self.device_memory_limit - size))
        if value is None:
            value = self._restore(key, spilled)
        if size > self.device_memory_limit:  # it would push out all others, and itself
            self._alive[key] = value
            return value
        self._device.set_noevict(key, value)
        self._spilled.discard(key)
        del self._host[key]
        return value

    def _restore(self, key: Any, spilled: Spilled) -> Any:
        while True:
            try:
                return spilled.restore()
            except _core.OutOfMemoryError as error:
                if not self._make_room(self.device_bytes - 1):
                    raise _core.OutOfMemoryError(
                        f"{key!r} with {spilled.device_bytes} bytes cannot go back to device memory, although this worker's other results left it: {error}. "
                        "Running tasks, other libraries and other processes use the rest: run fewer tasks at a time, or make the arrays smaller"
                    ) from error
