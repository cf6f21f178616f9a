"""Which arrays and ranks a communicator takes."""

import array
import ctypes
import warnings

import numpy as np
import pytest
from conftest import needs

import gpuglue as gg

pytestmark = pytest.mark.filterwarnings("ignore:the ranks exchange device memory through the host:RuntimeWarning")


class Exports:
    """An object that has DLPack only."""

    def __init__(self, exported):
        self.exported = exported

    def __dlpack__(self, **options):
        return self.exported.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.exported.__dlpack_device__()


def filled_buffer(values):
    buffer = gg.alloc(values.nbytes)
    gg.copy(buffer, values.view("u1"))
    return buffer


MAKE = {
    "DLPack of the host": lambda values: Exports(values.copy()),
    "DLPack of the device": lambda values: Exports(gg.to_gpu(values)),
    "bytearray": lambda values: bytearray(values),
    "memoryview": lambda values: memoryview(bytearray(values)),
    "array": lambda values: array.array("d", values),
    "ctypes": lambda values: (ctypes.c_double * 8)(*values),
    "Buffer": filled_buffer,
    "Fortran order": lambda values: np.array(values.reshape(2, 4), order="F"),
    "GPUArray in Fortran order": lambda values: gg.to_gpu(np.array(values.reshape(2, 4), order="F")),
}


def elements(made):
    return gg.asarray(made.exported if isinstance(made, Exports) else made).get().tolist()


@pytest.mark.parametrize("transport", ["staged", "auto"])
@pytest.mark.parametrize("kind", MAKE)
def test_an_array_that_asarray_takes_is_read_and_written_in_place(request, device, kind, transport):
    if kind == "DLPack of the device":
        request.getfixturevalue("known_device")
    make = MAKE[kind]
    x, out, room = make(np.arange(8.0)), make(np.zeros(8)), make(np.zeros(8))
    expected = elements(x)
    with gg.Communicator(0, 1, device=device, transport=transport) as comm, device:
        assert comm.all_reduce(x, out, "max") is out
        assert comm.send_recv(out, 0, room, 0) is room
        assert comm.broadcast(x) is x
        assert elements(out) == elements(room) == elements(x) == expected


@pytest.mark.parametrize("to_array", [np.array, gg.to_gpu])
@pytest.mark.parametrize("transport", ["staged", "auto"])
def test_arrays_in_fortran_order_are_not_divided_into_blocks_nor_mixed_with_others(device, to_array, transport):
    fortran, plain = to_array(np.array(np.arange(8.0).reshape(2, 4), order="F")), to_array(np.zeros((2, 4)))
    other = to_array(np.zeros((4, 2)).T)[:, :]
    with gg.Communicator(0, 1, device=device, transport=transport) as comm, device:
        for call in (lambda: comm.all_gather(fortran, other), lambda: comm.all_to_all(fortran), lambda: comm.reduce_scatter(fortran, other)):
            with pytest.raises(gg.InvalidArgumentError, match="C-contiguous array"):
                call()
        for x, out in ((fortran, plain), (plain, fortran), (fortran, fortran.T), (fortran, fortran.T.reshape(-1))):
            with pytest.raises(gg.InvalidArgumentError, match="different orders or shapes"):
                comm.all_reduce(x, out)
            with pytest.raises(gg.InvalidArgumentError, match="different orders or shapes"):
                comm.send_recv(x, 0, out, 0)
        strided = to_array(np.zeros((4, 4)))[:, ::2]
        with pytest.raises(gg.InvalidArgumentError, match="contiguous array"):
            comm.broadcast(strided)


def test_an_object_without_memory_of_its_own_is_not_written(device):
    with gg.Communicator(0, 1, device=device, transport="staged") as comm:
        for x in ([1.0], (1.0,), 1.0, "text", None):
            with pytest.raises(TypeError, match="x must be an array, not"):
                comm.all_reduce(x)
        with pytest.raises(gg.InvalidArgumentError, match="x is read-only"):
            comm.all_reduce(b"text")


def test_an_exchange_through_the_host_is_refused_while_the_stream_is_captured(device):
    needs(device, "capture_begin")
    stream = gg.Stream(device, nonblocking=True)
    x, pinned, plain = gg.zeros(4, "float32", device=device), gg.empty_pinned(4, "float32"), np.ones(4, "float32")
    shared = gg.asarray(gg.alloc_pinned(16, device))
    device.synchronize()
    with gg.Communicator(0, 1, device=device, transport="staged") as comm, device:
        with gg.capture(stream) as graph:
            for call in (
                lambda: comm.all_reduce(x),
                lambda: comm.all_reduce(plain, x),
                lambda: comm.broadcast(shared),
                lambda: comm.all_reduce(pinned),
                lambda: comm.send_recv(x, 0, plain, 0),
                lambda: comm.send_recv(plain, 0, pinned, 0),
            ):
                with pytest.raises(gg.UnsupportedError, match="captur"):
                    call()
            x.fill(2)
            assert comm.all_reduce(plain) is plain  # no work of the device
            with gg.Stream(device):  # the current stream is not captured
                assert comm.all_reduce(pinned) is pinned
        graph.launch(stream)
        assert comm.all_reduce(x).get().tolist() == [2.0] * 4
        assert comm.all_reduce(pinned) is pinned


def test_arrays_of_ranks_without_a_device_pass_through_the_host_with_one_warning(device):
    with gg.Communicator(0, 1) as comm, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comm.all_reduce(np.ones(3))
        assert not caught
        for _ in range(2):
            comm.all_reduce(gg.ones(3))
            comm.send_recv(gg.ones(3), 0, gg.empty(3), 0)
        expected = 0 if device.backend == "host" else 1  # there its arrays are in memory of the host
        assert [str(warning.message) for warning in caught] == [
            "the ranks exchange device memory through the host (transport 'host'): no rank gave a device: pass device="
        ] * expected
        assert all(warning.filename == __file__ for warning in caught)
    with gg.Communicator(0, 1, transport="host") as comm, warnings.catch_warnings():
        warnings.simplefilter("error")
        comm.all_reduce(gg.ones(3))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda c, one: c.send(np.ones(1), to="1"), "to is '1', expected an integer: pass an int, not a str"),
        (lambda c, one: c.recv(one, source=0.0), "source is 0.0, expected an integer: pass an int, not a float"),
        (lambda c, one: c.send_recv(np.ones(1), "0", one, 0), "to is '0'"),
        (lambda c, one: c.send_recv(np.ones(1), 0, one, None), "source is None"),
        (lambda c, one: c.broadcast(one, "0"), "root is '0'"),
        (lambda c, one: c.reduce(one, root=0.0), "root is 0.0"),
        (lambda c, one: c.gather(np.ones(1), one, root="0"), "root is '0'"),
        (lambda c, one: c.scatter(np.ones(1), one, root=[0]), r"root is \[0\]"),
        # A float was cut to an integer: ranks with the colors 1.2 and 1.8 were in one communicator.
        (lambda c, one: c.split(1.5), "color is 1.5"),
        (lambda c, one: c.split("a"), "color is 'a'"),
        (lambda c, one: c.split(0, 1.5), "key is 1.5"),
        (lambda c, one: gg.Communicator("0", 1), "rank is '0'"),
        (lambda c, one: gg.Communicator(0, 1.0), "size is 1.0"),
    ],
)
def test_a_rank_color_or_key_that_is_no_integer_is_refused(call, text):
    one = np.full(1, 7.0)
    with gg.Communicator(0, 1) as comm:
        with pytest.raises(TypeError, match=f"^{text}"):
            call(comm, one)
        assert one[0] == 7
        assert comm.broadcast(one, np.int64(0)) is one and comm.reduce(one, root=np.array(0)) is one
