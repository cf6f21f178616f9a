"""Arrays to and from torch, CuPy, JAX, numba and cuda.core on a real device: no copy, and no read before the
other library's write. A producer is late: about 50 ms of work precede its write, on a stream that is not ordered
with the default one, so that a missing wait is seen. gpuglue itself never waits on the host: exports and
imports return while that work runs."""

import textwrap

import pytest
from with_cuda import beside, missing


def runner(library):
    @pytest.fixture
    def run(device):
        reason = missing(library, device)
        if reason:
            pytest.skip(reason)
        return beside(library)

    return run


with_torch, with_cupy, with_jax = runner("torch"), runner("cupy"), runner("jax")
with_numba, with_cuda_core = runner("numba"), runner("cuda.core")

def twice(code):
    """First the exchange without pending work: libraries load and compile code when they first use it, some of which
    waits for the device."""
    return "for late in (False, True):\n" + textwrap.indent(code, "    ")


# ours: a stream of gpuglue; array: zeros that become 7 late on it.
LATE_ARRAY = """
ours = gg.Stream("cuda:0", nonblocking=True)
array = gg.zeros(100_000, "f4", device="cuda:0")
gg.synchronize("cuda:0")
if late: cuda.late(ours)
array.fill(7, stream=ours)
"""


# ---- torch ----------------------------------------------------------------------------------------------------


def test_torch_reads_after_a_pending_write_of_gpuglue_and_the_host_does_not_wait(with_torch):
    with_torch(
        twice(
            LATE_ARRAY
            + """
theirs = torch.cuda.Stream()
with torch.cuda.stream(theirs):
    tensor = torch.from_dlpack(array)
    copy = tensor + 0
    assert not late or not ours.done, "the exchange waited on the host"
    assert tensor.data_ptr() == array.ptr and copy.cpu().eq(7).all()
"""
        )
    )


def test_gpuglue_reads_after_a_pending_write_of_torch_and_the_host_does_not_wait(with_torch):
    for take in ("gg.from_dlpack(tensor)", "gg.asarray(tensor)"):
        with_torch(
            twice(f"""
theirs = torch.cuda.Stream()
tensor = torch.zeros(100_000, device="cuda"); torch.cuda.synchronize()
with torch.cuda.stream(theirs):
    if late: cuda.late(gg.Stream.borrow(theirs))
    tensor.fill_(7)
    array = {take}
assert not late or not theirs.query(), "the exchange waited on the host"
assert array.ptr == tensor.data_ptr()
with gg.Stream("cuda:0", nonblocking=True):
    assert (array.get() == 7).all()
""")
        )


def test_torchs_exchange_table_is_used_if_it_exists(with_torch):
    with_torch("""
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"): raise SystemExit(0)
tensor = torch.arange(6, device="cuda").reshape(2, 3)
torch.Tensor.__dlpack__ = None  # would be asked otherwise
assert gg.asarray(tensor.T).tolist() == tensor.T.tolist()
""")


def test_torchs_memory_is_kept_until_gpuglues_work_is_done(with_torch):
    with_torch("""
tensor = torch.full((1 << 20,), 7.0, device="cuda"); torch.cuda.synchronize()
stream, out = gg.Stream("cuda:0", nonblocking=True), gg.zeros_pinned(1 << 20, "f4", device="cuda:0")
array = gg.asarray(tensor)
cuda.late(stream)
array.get_async(out, stream=stream)
del tensor, array; gc.collect()
others = [torch.full((1 << 20,), 9.0, device="cuda") for _ in range(8)]
stream.synchronize()
assert (out == 7).all()
""")


def test_dtypes_survive_a_round_trip_through_torch(with_torch):
    with_torch("""
for name in ("float32", "float64", "float16", "int8", "int64", "uint8", "bool", "complex64", "complex128"):
    tensor = torch.ones(3, dtype=getattr(torch, name), device="cuda")
    array = gg.asarray(tensor)
    assert str(array.dtype) == name and torch.from_dlpack(array).dtype == tensor.dtype
""")


# ---- CuPy -----------------------------------------------------------------------------------------------------


def test_cupy_reads_after_a_pending_write_of_gpuglue_and_the_host_does_not_wait(with_cupy):
    with_cupy(
        twice(
            LATE_ARRAY
            + """
with cupy.cuda.Stream(non_blocking=True):
    view = cupy.from_dlpack(array)
    copy = view + 0
    assert not late or not ours.done, "the exchange waited on the host"
    assert view.data.ptr == array.ptr and (cupy.asnumpy(copy) == 7).all()
"""
        )
    )


def test_cupy_reads_after_a_pending_write_of_gpuglue_through_the_interface(with_cupy):
    with_cupy(
        twice(
            LATE_ARRAY
            + """
with cupy.cuda.Stream(non_blocking=True):
    view = cupy.asarray(array)  # CuPy waits on the host
    assert view.data.ptr == array.ptr and (cupy.asnumpy(view + 0) == 7).all()
"""
        )
    )


@pytest.mark.parametrize("take", ["gg.from_dlpack(view)", "gg.asarray(view)", "gg.asarray(cuda_only(view))"])
def test_gpuglue_reads_after_a_pending_write_of_cupy_and_the_host_does_not_wait(with_cupy, take):
    with_cupy(
        twice(f"""
class cuda_only:
    def __init__(self, a): self.a = a; self.__cuda_array_interface__ = a.__cuda_array_interface__
view = cupy.zeros(100_000, "f4"); cupy.cuda.Device().synchronize()
theirs = cupy.cuda.Stream(non_blocking=True)
with theirs:
    if late: cuda.late(gg.Stream.borrow(theirs))
    view.fill(7)
    array = {take}
    assert not late or not theirs.done, "the exchange waited on the host"
assert array.ptr == view.data.ptr
with gg.Stream("cuda:0", nonblocking=True):
    assert (array.get() == 7).all()
""")
    )


def test_a_raw_kernel_of_cupy_writes_to_a_gpuarray(with_cupy):
    with_cupy("""
kernel = cupy.RawKernel('extern "C" __global__ void seven(float *a, int n) '
                        '{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 7; }', "seven")
ours = gg.Stream("cuda:0", nonblocking=True)
array = gg.zeros(100_000, "f4", device="cuda:0"); gg.synchronize("cuda:0")
with cupy.cuda.ExternalStream(ours.handle):
    cuda.late(ours)
    kernel((400,), (256,), (cupy.from_dlpack(array), np.int32(100_000)))
    array.record_use(ours)
with gg.Stream("cuda:0", nonblocking=True):
    assert (array.get() == 7).all()
""")


# ---- JAX ------------------------------------------------------------------------------------------------------


def test_jax_reads_after_a_pending_write_of_gpuglue_and_the_host_does_not_wait(with_jax):
    with_jax(
        twice(
            LATE_ARRAY
            + """
taken = jax.numpy.from_dlpack(array)
assert not late or not ours.done, "the exchange waited on the host"
assert taken.unsafe_buffer_pointer() == array.ptr and (np.asarray(taken + 0) == 7).all()
"""
        )
    )


def test_gpuglue_reads_after_a_pending_computation_of_jax_and_the_host_does_not_wait(with_jax):
    with_jax("""
slow = jax.jit(lambda m: jax.lax.fori_loop(0, 40, lambda i, x: x @ m * 0 + 7, m))
ones = jax.numpy.ones((8192, 8192)).block_until_ready()
for late in (False, True):
    theirs = slow(ones)
    array = gg.from_dlpack(theirs)
    assert not late or not theirs.is_ready(), "the exchange waited on the host"
    with gg.Stream("cuda:0", nonblocking=True):
        assert (array.get() == 7).all()
    assert array.ptr == theirs.unsafe_buffer_pointer()
""")


# ---- numba ----------------------------------------------------------------------------------------------------


def test_a_kernel_of_numba_writes_to_a_gpuarray(with_numba):
    with_numba("""
from numba import cuda as nc
@nc.jit
def seven(a):
    i = nc.grid(1)
    if i < a.size: a[i] += 7
ours = gg.Stream("cuda:0", nonblocking=True)
array = gg.zeros(100_000, "f4", device="cuda:0"); gg.synchronize("cuda:0")
stream = nc.external_stream(ours.handle)
cuda.late(ours)
array.fill(0, stream=ours)
seven[400, 256, stream](array)
array.record_use(ours)
with gg.Stream("cuda:0", nonblocking=True):
    assert (array.get() == 7).all()
""")


def test_arrays_of_numba_are_imported_without_a_copy(with_numba):
    with_numba("""
from numba import cuda as nc
theirs = nc.to_device(np.arange(12.0).reshape(3, 4))
array = gg.asarray(theirs)
assert array.ptr == theirs.device_ctypes_pointer.value and (array.get() == theirs.copy_to_host()).all()
array.fill(5); gg.synchronize("cuda:0")
assert (theirs.copy_to_host() == 5).all()
stream = nc.stream()
assert gg.Stream.borrow(stream).handle == int(getattr(stream.handle, "value", stream.handle))
""")


# ---- cuda.core ------------------------------------------------------------------------------------------------


def test_cuda_core_launches_on_a_gpuglue_stream_with_a_gpuarray(with_cuda_core):
    with_cuda_core("""
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
dev = Device(0); dev.set_current()
ours = gg.Stream("cuda:0", nonblocking=True)
array = gg.zeros(100_000, "f4", device="cuda:0"); gg.synchronize("cuda:0")
arch = "".join(map(str, dev.compute_capability))
code = 'extern "C" __global__ void seven(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 7; }'
kernel = Program(code, "c++", ProgramOptions(arch="sm_" + arch)).compile("cubin").get_kernel("seven")
cuda.late(ours)
stream = dev.create_stream(ours)
launch(stream, LaunchConfig(grid=400, block=256), kernel, array.ptr, np.int32(100_000))
array.record_use(ours)
with gg.Stream("cuda:0", nonblocking=True):
    assert (array.get() == 7).all()
""")


def test_cuda_core_imports_a_gpuarray(with_cuda_core):
    with_cuda_core("""
from cuda.core.utils import StridedMemoryView
ours = gg.Stream("cuda:0", nonblocking=True)
array = gg.arange(12, dtype="f4", device="cuda:0").reshape(3, 4)[:, ::2]
view = StridedMemoryView(array, stream_ptr=ours.handle)
assert view.ptr == array.ptr and tuple(view.shape) == (3, 2) and tuple(view.strides) == (4, 2)
""")
