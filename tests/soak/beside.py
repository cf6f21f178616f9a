"""Operations of the soak test that use another library on the same device: PyTorch, or functions of the driver."""

import contextlib

import operations
import with_cuda
from operations import Exported, equal, expect

import gpuglue as gg


def read_by_torch(worker):
    torch = worker.world.torch
    if torch is None:
        return
    host = worker.host()
    array = worker.array(host)
    tensor = torch.from_dlpack(array)
    if worker.dice.random() < 0.5:
        del array
    equal(tensor.cpu().numpy(), host)


def given_by_torch(worker):
    torch = worker.world.torch
    if torch is None:
        return
    host = worker.host().copy()
    tensor = torch.from_numpy(host).to(place_in_torch(worker.device))
    array = gg.asarray(tensor) if worker.dice.random() < 0.5 else gg.from_dlpack(tensor)
    expect(not host.size or array.ptr == tensor.data_ptr(), "asarray has copied a tensor")
    del tensor
    equal(array.get(), host)


def place_in_torch(device):
    return f"cuda:{device.ordinal}" if device.backend == "cuda" else "cpu"


def beside_a_capture(worker, relaxed):
    """What gpuglue does in the thread of another library's capture. Only while a relaxed capture is open may the thread wait."""
    if worker.world.exports and worker.dice.random() < 0.5:
        Exported(gg.empty(worker.length(), device=worker.device))
    few = [operations.closed_while_in_use, operations.collected]
    waiting = [operations.round_trip, operations.strided, operations.through_streams, operations.asynchronous, operations.kept]
    worker.dice.choice(few + waiting if relaxed else few)(worker)


# Global captures are left out: while one is open, the driver lets no thread wait.
MODES = {"relaxed": with_cuda.RELAXED, "thread_local": with_cuda.THREAD_LOCAL}


def captured_by_the_driver(worker):
    """A capture that gpuglue does not make is valid at its end, and the graph does what gpuglue queued."""
    device, world = worker.world.device, worker.world
    if device.backend != "cuda" or world.failing:
        return
    mode, value = worker.dice.choice(list(MODES)), worker.dice.randrange(1, 100)
    array = gg.zeros(worker.length(), "i4", device=device)
    with contextlib.ExitStack() as stack:
        handle = with_cuda.new_stream(1)
        stack.callback(with_cuda.destroy_stream, handle)
        ours = stack.enter_context(contextlib.closing(gg.Stream.borrow(handle, device)))
        stack.callback(array.release_captured)
        stack.enter_context(world.captures)
        device.synchronize()
        graph = with_cuda.Capture(handle, MODES[mode])
        stack.callback(graph.close)
        with graph:
            array.fill(value, stream=ours)
            beside_a_capture(worker, mode == "relaxed")
        graph.replay()
        expect((array.get(stream=ours) == value).all(), "the graph has not filled the array")


def captured_by_torch(worker):
    torch, device = worker.world.torch, worker.device
    if torch is None or device.backend != "cuda":
        return
    mode, value, place = worker.dice.choice(list(MODES)), worker.dice.randrange(1, 100), place_in_torch(device)
    array = gg.zeros(worker.length(), "i4", device=device)
    with worker.world.captures, torch.cuda.device(place):
        graph, theirs, tensor = torch.cuda.CUDAGraph(), torch.cuda.Stream(place), torch.zeros(1000, device=place)
        device.synchronize()
        try:
            with torch.cuda.graph(graph, stream=theirs, capture_error_mode=mode):
                tensor += value
                array.fill(value, stream=gg.Stream.borrow(theirs))
                beside_a_capture(worker, mode == "relaxed")
            graph.replay()
            torch.cuda.current_stream().synchronize()
            expect((array.get() == value).all() and bool((tensor.cpu() == value).all()), "the graph has not written")
        finally:
            graph.reset()
            array.release_captured()


OPERATIONS = 4 * (read_by_torch, given_by_torch) + 2 * (captured_by_the_driver, captured_by_torch)
