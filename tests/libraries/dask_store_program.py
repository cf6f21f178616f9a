"""The program of test_dask.py that moves values between devices, host memory and disk in one process:  dask_store_program.py"""

import errno
import gc
import logging
import pathlib

import dask
import numpy as np
import zict

import gpuglue as gg
import gpuglue.dask

from dask_errors import error_of

KIB = 1024


def array(number, size=KIB):
    return gg.to_gpu(np.full(size // 8, number, "f8"))


def check_moves():
    """The least recently used goes to host memory, then to disk, and comes back."""
    store = gpuglue.dask.DeviceStore(2 * KIB, int(1.5 * KIB), "local")
    assert len(store) == 0 and not store
    for key in "abc":
        store[key] = array(ord(key))
    assert (store.device_bytes, store.disk_bytes) == (2 * KIB, 0) and KIB <= store.host_bytes < 1.2 * KIB, store
    store["d"] = array(ord("d"))  # c and d are on the device, b in host memory, a on disk
    assert store.device_bytes == 2 * KIB and set(store.slow) == {"a"} and set(store.fast) == {"b"} and store.disk_bytes >= KIB, store
    assert list(pathlib.Path("local/storage").iterdir())
    assert len(store) == 4 and set(store) == set("abcd") and all(key in store for key in "abcd") and "e" not in store
    for key in "abcdabcd":
        value = store[key]
        assert type(value) is gg.GPUArray and value.flags.writeable and (value.get() == ord(key)).all()
        assert store.device_bytes <= 2 * KIB and key not in store.fast and key not in store.slow, store
    store["a"] = np.ones(3)  # takes the place of an array
    assert store.device_bytes <= 2 * KIB and (store["a"] == 1).all() and len(store) == 4
    store["a"] = array(7)
    assert (store["a"].get() == 7).all() and len(store) == 4
    for key in "abcd":
        del store[key]
    assert isinstance(error_of(store.__delitem__, "a"), KeyError) and isinstance(error_of(store.__getitem__, "a"), KeyError)
    assert (len(store), store.device_bytes, store.host_bytes, store.disk_bytes) == (0, 0, 0, 0), store
    assert not list(pathlib.Path("local/storage").iterdir())


def check_order_of_use():
    store = gpuglue.dask.DeviceStore(2 * KIB)
    store["a"], store["b"] = array(1), array(2)
    store["a"]
    store["c"] = array(3)
    assert set(store.fast) == {"b"}


def check_evict():
    """What Dask asks for when the process uses too much host memory."""
    store = gpuglue.dask.DeviceStore(KIB)
    store["a"], store["b"] = array(1), array(2)
    assert set(store.fast) == {"a"} and store.evict() >= KIB and set(store.slow) == {"a"} and store.spilled_total.disk == store.disk_bytes
    assert (store["a"].get() == 1).all() and not store.slow


def check_values():
    """Each value returns as it was, also from disk."""
    first = gg.to_gpu(np.arange(24.0).reshape(2, 3, 4))
    pair = np.dtype([("count", "<i4"), ("position", ">f8", (2,))])
    values = {
        "transposed": first.T, "strided": first[:, ::2], "nothing": gg.empty((3, 0)), "scalar": gg.to_gpu(np.float32(3)),
        "records": gg.to_gpu(np.zeros(4, pair)), "times": gg.to_gpu(np.array([3, 4], "M8[s]")), "swapped": gg.to_gpu(np.arange(3, dtype=">i2")),
    }
    for directory in (None, "disk"):
        store = gpuglue.dask.DeviceStore(1, 1 if directory else None, directory)
        for key, value in values.items():
            store[key] = value
        store["fill"] = array(1)
        assert "strided" in (store.slow if directory else store.fast)
        for key, value in values.items():
            there = store[key]
            assert (there.shape, there.dtype, there.device) == (value.shape, value.dtype, value.device), key
            assert there.get().tobytes() == value.get().tobytes()
        assert store["transposed"].strides == values["transposed"].strides


def check_containers():
    shared = array(1)
    value = {"pair": (shared, [shared, array(2), shared[::2]]), "host": np.arange(5), "text": "x", "deep": [[[array(3)] * 20]]}
    store = gpuglue.dask.DeviceStore(1 << 20, 1, "containers")
    store["a"] = value
    assert store.device_bytes == 3 * KIB + KIB // 2, store  # exact, and the same array once
    store = gpuglue.dask.DeviceStore(4 * KIB, 1, "containers-2")
    store["a"] = value
    store["b"] = array(4, 4 * KIB)
    assert set(store.slow) == {"a"}
    there = store["a"]
    assert store.device_bytes == 3 * KIB + KIB // 2 and there["pair"][0] is there["pair"][1][0] and type(there["pair"]) is tuple
    assert there["host"].tolist() == [0, 1, 2, 3, 4] and there["host"].flags.writeable and there["text"] == "x"
    assert (there["pair"][1][1].get() == 2).all() and len(there["deep"][0][0]) == 20 and (there["deep"][0][0][19].get() == 3).all()
    local = lambda x: x + 1  # noqa: E731  pickle refuses it
    store["c"] = (array(5, 4 * KIB), local)
    store["d"] = array(6, 4 * KIB)
    assert store["c"][1](1) == 2


def check_large():
    """A value above the limit is in host memory; while a task has it, there is no second copy."""
    store = gpuglue.dask.DeviceStore(KIB)
    store["a"], store["large"] = array(1), array(2, 4 * KIB)
    assert store.device_bytes == KIB and set(store.fast) == {"large"}
    held = store["large"]
    assert store["large"] is held and (held.get() == 2).all() and store.device_bytes <= KIB and "large" in store.fast
    held = store["a"]
    store["b"] = array(3)
    assert set(store.fast) == {"large", "a"} and store["a"] is held  # what a task still uses is not copied back


def check_devices():
    if len(gg.devices()) < 2:
        return
    there = gg.to_gpu(np.arange(4.0), device=gg.devices()[1])
    empty = gg.empty((0,), device=gg.devices()[1])
    for limit in (None, 1):
        store = gpuglue.dask.DeviceStore(1, limit)
        store["a"] = [there, array(1), empty]
        store["e"] = empty
        assert [item.device for item in store["a"]] == [gg.devices()[1], gg.devices()[0], gg.devices()[1]]
        assert store["e"].device == gg.devices()[1]


class Refused:
    def __reduce__(self):
        raise ArithmeticError("not this")


def check_value_that_cannot_be_moved(log):
    store = gpuglue.dask.DeviceStore(2 * KIB)
    store["a"], store["b"] = (array(1), Refused()), array(2)
    for key in "cde":
        store[key] = array(ord(key))
    assert (store["a"][0].get() == 1).all() and store.device_bytes == 2 * KIB and set(store.fast) == {"b", "c", "d"}, store
    lines = [line for line in log if "'a' with 1024 bytes stays in device memory" in line]
    assert len(lines) == 1 and "not this" in lines[0], log  # once


def check_full_disk(log):
    """Simulated: each write fails as on a full disk."""
    store = gpuglue.dask.DeviceStore(KIB, KIB, "full")

    def full(self, key, value):
        raise OSError(errno.ENOSPC, "No space left on device")

    original, zict.File.__setitem__ = zict.File.__setitem__, full
    try:
        for key in "abcd":
            store[key] = array(ord(key))
    finally:
        zict.File.__setitem__ = original
    assert set(store.fast) == set("abc") and not store.slow and any("Spill to disk failed" in line for line in log), log
    assert all((store[key].get() == ord(key)).all() for key in "abcd")
    with dask.config.set({"distributed.worker.memory.max-spill": "1500 B"}):
        store = gpuglue.dask.DeviceStore(KIB, KIB, "limit")
    for key in "abcde":
        store[key] = array(ord(key))
    assert len(store.slow) == 1 and all((store[key].get() == ord(key)).all() for key in "abcde")


def check_host_values_when_the_disk_is_full(log):
    """Reading one from disk moves another there, which fails: the one that was asked for is right."""
    with dask.config.set({"distributed.worker.memory.max-spill": "2000 B"}):
        store = gpuglue.dask.DeviceStore(KIB, 3 * KIB, "host-values")
    store["x"], store["y"] = np.full(KIB // 8, 1.0), np.full(5 * KIB // 16, 2.0)
    assert set(store.slow) == {"x"}
    assert (store["x"] == 1).all() and (store["y"] == 2).all() and not store.slow
    assert any("host memory exceeds its limit" in line for line in log), log


def check_exhausted_device():
    """Simulated: what fits is decided here, because a real device's rest is unknown."""
    import gpuglue._dask_store as module

    store = gpuglue.dask.DeviceStore(4 * KIB)
    for key in "abcdef":
        store[key] = array(ord(key))
    assert set(store.fast) == {"a", "b"}
    original = module._upload

    def exhausted_above(limit):
        def upload(host, *args):
            if store.device_bytes + host.nbytes > limit:
                raise gg.OutOfMemoryError("simulated")
            return original(host, *args)
        return upload

    module._upload = exhausted_above(2 * KIB)
    try:
        assert (store["a"].get() == ord("a")).all() and store.device_bytes == 2 * KIB  # others left first
        module._upload = exhausted_above(0)
        error = error_of(store.__getitem__, "b")
        assert type(error) is gg.OutOfMemoryError and "'b' with 1024 bytes cannot go back to device memory" in str(error) and "simulated" in str(error), error
        assert store.device_bytes == 0 and "b" in store
    finally:
        module._upload = original
    assert all((store[key].get() == ord(key)).all() for key in "abcdef")


def check_exhausted_pinned_memory(log):
    from gpuglue import _core

    store = gpuglue.dask.DeviceStore(KIB)
    original = _core.empty_pinned

    def exhausted(*args, **kwargs):
        raise gg.OutOfMemoryError("no pinned memory")

    _core.empty_pinned = exhausted
    try:
        store["a"], store["b"] = array(1), array(2)
    finally:
        _core.empty_pinned = original
    assert set(store.fast) == {"a"} and (store["a"].get() == 1).all()
    assert any("pageable memory" in line and "no pinned memory" in line for line in log), log


def check_temporary_directory():
    store = gpuglue.dask.DeviceStore(KIB, 1)
    directory = pathlib.Path(store._temporary.name)
    store["a"], store["b"] = array(1), array(2)
    assert store.disk_bytes and list(directory.rglob("a*"))
    del store
    gc.collect()
    assert not directory.exists()


def check_arguments():
    for limit in (0, -1, True, None, "1 GB"):
        error = error_of(gpuglue.dask.DeviceStore, limit)
        assert isinstance(error, gg.InvalidArgumentError) and f"device_memory_limit is {limit!r}, expected a number" in str(error), error
    for limit in (0, -1, True, "nonsense", "0 B", float("nan"), []):
        error = error_of(gpuglue.dask.LocalCluster, ["host:0"], device_memory_limit=limit)
        assert isinstance(error, gg.InvalidArgumentError) and f"device_memory_limit is {limit!r}, expected bytes" in str(error), error
    error = error_of(gpuglue.dask.LocalCluster, ["host:0"], device_memory_limit=1, data={})
    assert isinstance(error, gg.InvalidArgumentError) and "give one" in str(error)


def messages():
    lines = []

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    for name in ("gpuglue.dask", "distributed.spill"):
        logging.getLogger(name).addHandler(Lines())
        logging.getLogger(name).propagate = False
    return lines


def main():
    log = messages()
    check_moves()
    check_order_of_use()
    check_evict()
    check_values()
    check_containers()
    check_large()
    check_devices()
    check_value_that_cannot_be_moved(log)
    check_full_disk(log)
    check_host_values_when_the_disk_is_full(log)
    check_exhausted_device()
    check_exhausted_pinned_memory(log)
    check_temporary_directory()
    if gg.current_device().backend == "host":
        check_arguments()
    print("done")


if __name__ == "__main__":
    main()
