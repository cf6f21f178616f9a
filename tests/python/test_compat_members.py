"""gpuglue.compat.pycuda: members of classes that PyCUDA's documentation names, one by one."""

import gc
import operator
import sys

import numpy as np
import pytest
import stand_in_cupy
from kernels import needs_generated, path_for

from gpuglue.compat.pycuda import _compute, curandom, gpuarray, tools
from gpuglue.compat.pycuda import driver as cuda


@pytest.fixture(autouse=True)
def context(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", stand_in_cupy.module(device.backend == "hip"))
    monkeypatch.setattr(_compute, "_libraries", {})
    monkeypatch.setattr(_compute, "_plans", {})
    monkeypatch.setattr(_compute, "KERNELS_FIRST", False)  # simulated drivers run no compiled code
    cuda.init()
    context = tools.make_default_context()
    yield context
    context.pop()
    gc.collect()


@pytest.fixture
def computes(device):
    if _compute.library() is None:
        needs_generated(device)


# ---- arrays

COMPUTED = {
    "GPUArray.__add__": lambda x: x + x, "GPUArray.__radd__": lambda x: 2 + x, "GPUArray.__sub__": lambda x: x - 2,
    "GPUArray.__rsub__": lambda x: 2 - x, "GPUArray.__mul__": lambda x: x * x, "GPUArray.__rmul__": lambda x: 2 * x,
    "GPUArray.__truediv__": lambda x: x / 2, "GPUArray.__rtruediv__": lambda x: 2 / x, "GPUArray.__pow__": lambda x: x ** 2,
    "GPUArray.__rpow__": lambda x: 2 ** x, "GPUArray.__neg__": operator.neg, "GPUArray.__abs__": abs,
    "GPUArray.__iadd__": lambda x: operator.iadd(x, 2), "GPUArray.__isub__": lambda x: operator.isub(x, 2),
    "GPUArray.astype": lambda x: x.astype(np.int32), "GPUArray.conj": lambda x: x.conj(), "GPUArray.conjugate": lambda x: x.conjugate()}


@pytest.mark.parametrize("name", COMPUTED)
def test_an_array_computes_as_that_of_numpy(computes, name):
    a = np.array([-1.5, 2, 3], np.float64)
    found, expected = COMPUTED[name](gpuarray.to_gpu(a)), COMPUTED[name](a.copy())
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.get(), expected, rtol=1e-12)


def test_the_sum_of_two_multiples_is_that_of_numpy(computes):
    a, b = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    assert gpuarray.to_gpu(a).mul_add(2, gpuarray.to_gpu(b), 10).get().tolist() == [32, 54]


def test_an_array_reports_whether_any_and_all_elements_are_true(computes):
    x = gpuarray.to_gpu(np.array([0, 1], np.int32))
    assert bool(x.any().get()) and not bool(x.all().get())


def test_the_parts_of_real_numbers_are_those_of_numpy(computes):
    x = gpuarray.to_gpu(np.array([1, 2], np.float32))
    assert x.real.get().tolist() == [1, 2] and x.imag.get().tolist() == [0, 0]


def test_an_array_has_the_attributes_of_its_memory():
    x = gpuarray.zeros((2, 3), np.float32)
    assert (x.shape, x.dtype, x.size, x.mem_size, x.nbytes, x.strides) == ((2, 3), np.float32, 6, 6, 24, (12, 4))
    assert int(x.gpudata) == x.ptr and x.flags.c_contiguous and x.__len__() == 2


def test_an_array_is_shown_to_other_packages(device):
    if device.backend not in ("cuda", "hip"):
        pytest.skip(f"{device.backend} has no __cuda_array_interface__")
    x = gpuarray.zeros((2, 3), np.float32)
    assert x.__cuda_array_interface__["data"][0] == x.ptr


def test_views_of_an_array_share_its_memory():
    a = np.arange(6, dtype=np.float32)
    x = gpuarray.to_gpu(a)
    for view, expected in ((x.reshape(2, 3), a.reshape(2, 3)), (x.reshape(2, 3).ravel(), a), (x.view(np.int32), a.view(np.int32)),
                           (x.reshape(1, 6).squeeze(), a), (x.__getitem__(slice(0, 2)), a[:2])):
        assert view.ptr == x.ptr
        np.testing.assert_array_equal(view.get(), expected)


def test_an_array_is_set_filled_and_copied():
    x, stream = gpuarray.zeros(3, np.float32), cuda.Stream()
    x.set(np.array([1, 2, 3], np.float32))
    kept = x.copy()
    x.fill(7)
    assert (x.get().tolist(), kept.get().tolist()) == ([7, 7, 7], [1, 2, 3])
    x.set_async(cuda.pagelocked_zeros(3, np.float32), stream=stream)
    found = x.get_async(stream)
    stream.synchronize()
    assert found.tolist() == [0, 0, 0]


def test_short_vectors_are_dtypes_with_functions_for_their_values():
    value = gpuarray.vec.make_float2(1, 2)
    assert value.dtype == gpuarray.vec.float2 and (value["x"], value["y"]) == (1, 2)


# ---- generators of random numbers

SOBOL = {"Sobol32RandomNumberGenerator": np.uint32, "Sobol64RandomNumberGenerator": np.uint64,
         "ScrambledSobol32RandomNumberGenerator": np.uint32, "ScrambledSobol64RandomNumberGenerator": np.uint64}
PSEUDO = ["XORWOWRandomNumberGenerator", "MRG32k3aRandomNumberGenerator"]
GENERATORS = [*PSEUDO, *SOBOL]
DRAWS = ["gen_uniform", "gen_normal", "gen_log_normal", "gen_poisson"]
FILLS = ["fill_uniform", "fill_normal", "fill_log_normal", "fill_poisson"]
# The further arguments of a distribution, and what holds for 500 of its numbers.
HOLDS = {"uniform": ((), lambda x: x.min() >= 0 and x.max() <= 1), "normal": ((), lambda x: abs(x.mean()) < 0.5),
         "log_normal": ((0, 1), lambda x: x.min() > 0), "poisson": ((4,), lambda x: abs(x.mean() - 4) < 1)}


def generator(name):
    """A generator of the class, with the same seed each time; a Sobol one with the direction vector of van der Corput's numbers."""
    if name not in SOBOL:
        return getattr(curandom, name)(lambda count: gpuarray.to_gpu(np.full(count, 7, np.int32)))
    word = SOBOL[name]
    bits = np.dtype(word).itemsize * 8
    return getattr(curandom, name)(gpuarray.to_gpu(word(1) << np.arange(bits - 1, -1, -1).astype(word)))


@pytest.mark.parametrize("name", [f"{one}.{method}" for one in GENERATORS for method in DRAWS])
def test_numbers_of_a_distribution_are_drawn(name):
    owner, _, method = name.partition(".")
    arguments, holds = HOLDS[method.partition("_")[2]]
    dtype = np.uint32 if method == "gen_poisson" else np.float32
    drawn = getattr(generator(owner), method)(500, dtype, *arguments).get()
    assert drawn.dtype == dtype and len(set(drawn.tolist())) > 5 and holds(drawn)


@pytest.mark.parametrize("name", [f"{one}.{method}" for one in GENERATORS for method in FILLS])
def test_an_array_is_filled_with_numbers_of_a_distribution(name):
    owner, _, method = name.partition(".")
    arguments, holds = HOLDS[method.partition("_")[2]]
    x = gpuarray.zeros(500, np.uint32 if method == "fill_poisson" else np.float32)
    getattr(generator(owner), method)(x, *arguments)
    assert len(set(x.get().tolist())) > 5 and holds(x.get())


@pytest.mark.parametrize("name", [f"{one}.{method}" for one in PSEUDO for method in ("call_skip_ahead", "call_skip_ahead_array")])
def test_skipped_numbers_are_those_that_would_have_been_drawn(name):
    owner, _, method = name.partition(".")
    skips, draws = generator(owner), generator(owner)
    for count in (1, 4, 0, 3, 70_001):
        getattr(skips, method)(gpuarray.to_gpu(np.array([count], np.uint64)) if method.endswith("_array") else count)
        draws.gen_uniform(count, np.float32)
        assert skips.gen_uniform(3, np.float32).get().tolist() == draws.gen_uniform(3, np.float32).get().tolist()


@pytest.mark.parametrize(
    "name", [f"{one}.{method}" for one in PSEUDO for method in ("call_skip_ahead_sequence", "call_skip_ahead_sequence_array")])
def test_another_sequence_begins_at_the_same_place(name):
    owner, _, method = name.partition(".")

    def after(*sequences, drawn=0, skipped=0):
        source = generator(owner)
        source.gen_uniform(drawn, np.float32)
        source.call_skip_ahead(skipped)
        for count in sequences:
            getattr(source, method)(gpuarray.to_gpu(np.array([count], np.uint64)) if method.endswith("_array") else count)
        return tuple(source.gen_uniform(5, np.float32).get().tolist())

    assert after(1, 1) == after(2) and after(0) == after() and len({after(), after(1), after(2), after(1 << 40)}) == 4
    assert after(1, drawn=3, skipped=4) == after(1, skipped=7) != after(1)


@pytest.mark.parametrize("name", PSEUDO)
def test_a_fill_that_is_refused_draws_nothing(name):
    refuses, other = generator(name), generator(name)
    with pytest.raises(NotImplementedError, match="int32"):
        refuses.gen_normal(3, np.int32)
    for source in (refuses, other):
        source.call_skip_ahead_sequence(1)
    assert refuses.gen_uniform(5, np.float32).get().tolist() == other.gen_uniform(5, np.float32).get().tolist()


@pytest.mark.parametrize("name", PSEUDO)
def test_a_negative_offset_is_refused(name):
    with pytest.raises(ValueError, match="skip -1 numbers: expected 0 or more"):
        getattr(curandom, name)(offset=-1)


@pytest.mark.parametrize("name", [f"{one}.{method}" for one in SOBOL for method in ("call_skip_ahead", "call_skip_ahead_array")])
def test_numbers_of_a_sequence_are_skipped(name):
    owner, _, method = name.partition(".")
    ahead = generator(owner)
    number = gpuarray.to_gpu(np.array([1], np.uint32)) if method == "call_skip_ahead_array" else 1
    getattr(ahead, method)(number)
    if owner.startswith("Scrambled"):  # with constants of its own: the difference of two numbers shows the place
        whole = ahead.gen_uniform(2, SOBOL[owner]).get()
        assert int(whole[0] ^ whole[1]) == 1 << (whole.itemsize * 8 - 2)
    else:
        assert ahead.gen_uniform(2, np.float32).get().tolist() == pytest.approx([1 / 2, 3 / 4])


# ---- the driver


def test_the_sizes_of_an_array_for_textures_are_those_of_its_descriptor():
    wanted = cuda.ArrayDescriptor3D()
    wanted.width, wanted.height, wanted.depth, wanted.format, wanted.num_channels = 3, 2, 4, cuda.array_format.FLOAT, 1
    array = cuda.Array(wanted)
    found = array.get_descriptor_3d()
    assert (found.width, found.height, found.depth, found.format, found.num_channels) == (3, 2, 4, cuda.array_format.FLOAT, 1)
    flat = cuda.ArrayDescriptor()
    flat.width, flat.height, flat.format, flat.num_channels = 3, 2, cuda.array_format.FLOAT, 1
    assert (flat.width, flat.height, cuda.Array(flat).get_descriptor().width) == (3, 2, 3)
    array.free()


def test_devices_are_equal_if_they_are_the_same_one():
    one, other = cuda.Device(0), cuda.Device(0)
    assert one.__eq__(other) and not one.__ne__(other) and one.__hash__() == other.__hash__() and one != 0


def test_a_function_is_called_to_launch_it(device):
    if not device.supports("module_load"):
        pytest.skip("no modules")
    function, x = cuda.module_from_file(str(path_for(device))).get_function("scale"), gpuarray.arange(4, dtype=np.float32)
    assert isinstance(function, cuda.Function)
    function.__call__(x, np.uint32(4), np.float32(10), block=(32, 1, 1))
    assert x.get().tolist() == [0, 10, 20, 30]


def test_host_memory_has_an_address_on_the_device():
    host = cuda.pagelocked_zeros(3, np.float32)
    assert isinstance(host.base, cuda.HostPointer) and host.base.get_device_pointer() == host.ctypes.data


def test_aligned_memory_is_freed_once():
    memory = cuda.aligned_empty(3, np.float32).base
    assert isinstance(memory, cuda.AlignedHostAllocation)
    memory.free()
    with pytest.raises(cuda.LogicError, match="already freed"):
        memory.free()


def test_a_region_is_copied_to_its_place_in_another():
    target = np.zeros((3, 4), np.uint8)
    copy = cuda.Memcpy2D()
    copy.set_src_device(cuda.to_device(np.arange(4, dtype=np.uint8)))
    copy.set_dst_host(target)
    copy.src_pitch, copy.dst_pitch, copy.dst_x_in_bytes, copy.dst_y, copy.width_in_bytes, copy.height = 2, 4, 1, 1, 2, 2
    copy.__call__(aligned=True)
    assert target.tolist() == [[0] * 4, [0, 0, 1, 0], [0, 2, 3, 0]]


def test_a_copy_between_devices_has_a_context_of_each():
    copy = cuda.Memcpy3DPeer()
    copy.set_src_device(cuda.to_device(np.arange(8, dtype=np.uint8)))
    copy.set_dst_device(target := cuda.mem_alloc(8))
    copy.set_src_context(cuda.Context.get_current())
    copy.set_dst_context(cuda.Context.get_current())
    copy.width_in_bytes = copy.height = copy.depth = 2
    copy()
    assert cuda.from_device(target, 8, np.uint8).tolist() == list(range(8))


# ---- memory of pools


def test_memory_of_a_pool_has_the_length_of_the_request():
    assert tools.DeviceMemoryPool().allocate(1000).__len__() == 1000


def test_host_memory_of_a_pool_has_the_length_of_its_array_in_bytes():
    memory = tools.PageLockedMemoryPool().allocate(10, np.float32).base
    assert isinstance(memory, tools.PooledHostAllocation) and memory.__len__() == 40


def test_host_memory_of_a_pool_returns_to_it():
    pool = tools.PageLockedMemoryPool()
    memory = pool.allocate(10, np.float32).base
    assert isinstance(memory, tools.PooledHostAllocation)
    memory.free()
    assert (pool.active_blocks, pool.held_blocks) == (0, 1)
