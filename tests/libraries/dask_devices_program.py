"""The program of test_dask.py in which the workers of a cluster, each with a device, are ranks; then they are on machines of their own."""

import ctypes
import os
import signal
import sys
import tempfile
import warnings

from dask.distributed import Client

import gpuglue as gg
import gpuglue.dask

from dask_errors import error_of

BACKEND, LIBRARY = sys.argv[1:]


def total(comm, x):
    array = gg.full(1000, x + comm.rank, device=comm.device)
    comm.all_reduce(array)
    return comm.rank, comm.size, comm.transport, set(array.get().tolist())


def end_one(comm):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    total(comm, 1.0)


def move_to_machine():
    """Give the kernel another identifier in this thread, the only one of a worker that runs tasks; why it cannot is returned."""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(f"machine-{os.getpid()}\n")
    private, bind = 1 << 18 | 1 << 14, 1 << 12
    for call in (lambda: libc.unshare(1 << 17), lambda: libc.mount(None, b"/", None, private, None),
                 lambda: libc.mount(file.name.encode(), b"/proc/sys/kernel/random/boot_id", None, bind, None)):
        if call():
            return os.strerror(ctypes.get_errno())
    return ""


def check(client):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gg.Communicator.from_dask(client) as ranks:
            assert ranks.transport == LIBRARY, ranks.transport
            assert ranks.run(total, 1.0) == [(rank, 2, LIBRARY, {3.0}) for rank in range(2)]


def check_choice(client):
    same = [f"{BACKEND}:0", gg.Device(f"{BACKEND}:1")]  # each worker numbers its own device first
    for options in ({"device": same}, {"transport": "staged"}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with gg.Communicator.from_dask(client, **options) as ranks:
                assert ranks.transport == "staged" and {result[2] for result in ranks.run(total, 2.0)} == {"staged"}
        texts = [str(one.message) for one in caught if one.category is RuntimeWarning and "through the host" in str(one.message)]
        assert len(texts) == ("device" in options) and all("use the same device" in text for text in texts), texts
        assert all(one.filename == __file__ for one in caught if "through the host" in str(one.message))
    error = error_of(gg.Communicator.from_dask, client, device=same[:1])
    assert isinstance(error, gg.InvalidArgumentError) and "device has 1 devices" in str(error), error
    error = error_of(gg.Communicator.from_dask, client, device=same, transport=LIBRARY)
    assert isinstance(error, gg.UnsupportedError) and "use the same device" in str(error), error


def check_machines(client):
    refusals = client.gather([client.submit(move_to_machine, workers=[address], pure=False) for address in client.nthreads()])
    if any(refusals):
        print(f"no machines: {refusals[0]}")
        return
    error = error_of(gg.Communicator.from_dask, client, transport="staged")
    assert isinstance(error, (gg.UnsupportedError, gg.CommunicatorError)) and "several machines" in str(error), error
    check(client)
    with gg.Communicator.from_dask(client, timeout=None) as ranks:
        error = error_of(ranks.run, end_one)
        assert isinstance(error, gg.CommunicatorError) and error.ranks == (1,), error


def main():
    with gpuglue.dask.LocalCluster([f"{BACKEND}:0", f"{BACKEND}:1"], dashboard_address=None) as cluster, Client(cluster) as client:
        check(client)
        check_choice(client)
        check_machines(client)
    print("done")


if __name__ == "__main__":
    main()
