"""Communicators for the soak test: ranks in threads of their own."""

import threading

from operations import HANG, equal, expect

import gpuglue as gg


def simulated_collectives(devices):
    """The transport of the simulated library, or None. NCCL itself keeps memory, threads and files after its last communicator."""
    name = {"cuda": "nccl", "hip": "rccl"}.get(devices[0].backend, "")
    try:
        for comm in gg.Communicator.from_devices(devices, transport=name):
            comm.close()
    except gg.Error:
        return None
    return name


def communicated(worker):
    """Ranks in threads of their own, on one device through the host, or on all devices with the vendor's library."""
    world, ranks = worker.world, worker.dice.randrange(1, 4)
    given, transport = [worker.device] * ranks, "staged"
    if world.collectives and worker.dice.random() < 0.5:
        given, transport = world.devices, world.collectives
    host, problems = worker.host("i4"), []
    with world.captures:  # the library waits for the whole device
        comms = gg.Communicator.from_devices(given, transport=transport, timeout=HANG)
        threads = [threading.Thread(target=take_part, args=(comm, host, problems)) for comm in comms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # The other ranks' errors only say that this one has failed.
    for problem in sorted(problems, key=lambda error: isinstance(error, gg.CommunicatorError)):
        raise problem


def take_part(comm, host, problems):
    """On a stream of its own: a wait of a stream that threads share raises the error of work that another one queued."""
    try:
        with comm, comm.device, gg.Stream(comm.device, nonblocking=True):
            array = gg.to_gpu(host * (comm.rank + 1), comm.device)
            comm.all_reduce(array)
            equal(array.get(), host * sum(range(comm.size + 1)))
            array.fill(comm.rank)
            comm.broadcast(array, comm.size - 1)
            expect((array.get() == comm.size - 1).all(), "a broadcast")
    except Exception as error:
        problems.append(error)


OPERATIONS = (communicated,)
