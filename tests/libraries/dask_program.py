"""The program of test_dask.py: arrays as results of tasks on two workers."""

import numpy as np
from dask.distributed import Client
from dask.sizeof import sizeof

import gpuglue as gg
import gpuglue.dask

N = 1 << 16


def make():
    return gg.arange(N, dtype="f8")


def where_and_sum(array):
    assert type(array) is gg.GPUArray
    return sizeof(array), float(array.get().sum())


def family():
    from distributed.protocol import serialize

    return serialize(gg.ones(3))[0]["serializer"]


def check_register(client, first, second):
    assert set(client.run(family).values()) == {"pickle"} and family() == "pickle"
    gpuglue.dask.register(client)
    assert set(client.run(family).values()) == {"dask"} and family() == "dask"
    made = client.submit(make, workers=[first], pure=False)
    used = client.submit(where_and_sum, made, workers=[second])
    assert used.result()[1] == float(made.result().get().sum()) == float(np.arange(N, dtype="f8").sum())


def main():
    array = make()
    assert sizeof(array) == array.nbytes == 8 * N
    assert sizeof(array[::2]) == array[::2].nbytes and sizeof(gg.alloc(1000)) == 1000
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        first, second = client.scheduler_info()["workers"]
        made = client.submit(make, workers=[first])
        used = client.submit(where_and_sum, made, workers=[second])  # moves it
        assert used.result() == (8 * N, float(np.arange(N, dtype="f8").sum()))
        assert set(client.who_has(used)[used.key]) == {second}  # of the copy there the scheduler hears later
        held = client.run_on_scheduler(lambda dask_scheduler: {key: task.nbytes for key, task in dask_scheduler.tasks.items()})
        assert held[made.key] == 8 * N, held
        check_register(client, first, second)
    print("done")


if __name__ == "__main__":
    main()
