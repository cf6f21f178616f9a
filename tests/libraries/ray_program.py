"""The program of test_ray.py: actors, each with a simulated or host device, that pass arrays to each other."""

import os
import sys

import numpy as np
import ray

import gpuglue.ray

GPUS = int(sys.argv[1])  # for each actor
gpuglue.ray.register()  # the decorator of a method knows only registered transports


@ray.remote(enable_tensor_transport=True, num_cpus=1, num_gpus=GPUS)
class Worker:
    def devices(self):
        import gpuglue.ray

        return [f"{device.backend}:{device.ordinal} {device.uuid}" for device in gpuglue.ray.devices()], os.environ.get("CUDA_VISIBLE_DEVICES")

    def make(self, count):
        import gpuglue as gg

        return gg.arange(count, dtype="f8")

    @ray.method(tensor_transport="GPUGLUE_IPC")
    def offer(self, count):
        import gpuglue as gg

        x = gg.arange(count, dtype="f8")
        return {"whole": x, "parts": [x[::2], x.reshape(2, -1).T], "none": gg.empty(0, "f8"), "text": "as it is"}

    def total(self, array):
        return type(array).__name__, float(array.get().sum())

    def totals(self, given):
        from gpuglue import _offers

        parts = [part.get().tolist() for part in given["parts"]]
        return float(given["whole"].get().sum()), parts, given["none"].size, given["text"], dict(_offers.taken)

    def stop(self):
        """Never answer one who asks for an array."""
        import threading

        from gpuglue import _offers

        _offers.holder.find = lambda token: threading.Event().wait()

    def wait_briefly(self):
        """Be on another machine, as far as this actor can tell, and wait one second."""
        from gpuglue import _offers, _ray_transport

        place = _offers.place()
        _offers.place = lambda: {**place, "machine": "another"}
        _ray_transport.STORE_SECONDS = 1.0

    def holds(self):
        from gpuglue import _offers

        return len(_offers.holder)


def check_pickle(first, second):
    name, total = ray.get(second.total.remote(first.make.remote(1000)))
    assert (name, total) == ("GPUArray", float(np.arange(1000.0).sum()))


def check_transport(first, second):
    ref = first.offer.remote(1000)
    total, parts, none, text, taken = ray.get(second.totals.remote(ref))
    x = np.arange(1000.0)
    assert total == x.sum() and parts == [x[::2].tolist(), x.reshape(2, -1).T.tolist()] and none == 0 and text == "as it is"
    assert ray.get(first.totals.remote(ref))[0] == x.sum()  # the actor that has it
    assert ray.get(ref)["whole"].get().sum() == x.sum()
    assert ray.get(first.holds.remote()) == 3
    del ref
    return taken


def check_actor_that_does_not_answer(first, second):
    ray.get([first.stop.remote(), second.wait_briefly.remote()])
    try:
        ray.get(second.totals.remote(first.offer.remote(1000)))
    except Exception as error:
        assert "GetTimeoutError" in str(error), error
    else:
        raise AssertionError("nothing was raised")


def wait_until_released(actor):
    import time

    while ray.get(actor.holds.remote()):  # Ray frees later
        time.sleep(0.05)


def start():
    """On a loaded machine Ray's own time limit of its start may pass."""
    while True:
        try:
            return ray.init(num_cpus=2, num_gpus=2 * GPUS, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()


def main():
    gpuglue.ray.register()  # again
    start()
    first, second = Worker.remote(), Worker.remote()
    for actor in (first, second):
        devices, visible = ray.get(actor.devices.remote())
        print("devices", *devices, f"visible={visible}")
    check_pickle(first, second)
    taken = check_transport(first, second)
    wait_until_released(first)
    print("taken", taken)
    check_actor_that_does_not_answer(first, second)
    ray.shutdown()
    print("done")


main()
