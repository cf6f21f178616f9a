"""gpuglue.compat.PyGPU: the examples of its README, on every backend."""

import ctypes

import numpy as np
import numpy
import pytest

from gpuglue import _rtc
from gpuglue.compat import PyGPU
from gpuglue.compat.PyGPU import *  # noqa: F403


@pytest.fixture(autouse=True)
def on(device):
    """Its arrays are on the current device."""


README = """
import gpuglue.compat
gpuglue.compat.install("PyGPU", "PybindGPU")
import numpy
complex_dtype = numpy.complex128
import numpy as np
import PyGPU as gpuarray

# Send a numpy array to the device
k = np.array([1, 2, 3, 4, 5, 6])
k_gpu = gpuarray.to_gpu(k)

# Allocate memory (e.g. a 3x3x3 array) on device
fk_gpu = gpuarray.GPUArray((3, 3, 3), dtype=complex_dtype)

# Send device memory to host
fk = fk_gpu.get()
assert fk.shape == (3, 3, 3) and fk.dtype == complex_dtype and k_gpu.get() is k

idx, err = gpuarray.cudaGetDevice()
assert (idx, err.as_int(), repr(err)) == (0, 0, "<cudaError: code=0>")

from PyGPU import DeviceArray_int64
def fn(pointer):
    assert int(pointer) and pointer.get() == (None, False)

A = numpy.array([1, 2, 3, 4, 5, 6])

da = DeviceArray_int64(A) # Point host_data() to the data pointer in A
da.allocate()             # Allocate memory on the device
da.to_device()            # Copy data to device
fn(da.device_data())      # Apply function to data on device
A[:] = 0
da.to_host()              # Copy data back into the data pointer in A
assert A.tolist() == [1, 2, 3, 4, 5, 6]

import PybindGPU
n_device, err = PybindGPU.cudaGetDeviceCount()
for i in range(n_device):
    prop = PybindGPU.cudaDeviceProp(i)
    print(prop.name(), prop.pciBusID(), prop.pciDeviceID(), prop.pciDomainID())
assert PybindGPU is gpuarray
"""


def test_the_programs_of_its_readme_run(run_python):
    result = run_python(README)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr


@pytest.mark.parametrize("dtype", PyGPU.SUPPORTED_DTYPES)
def test_every_device_array_survives_a_round_trip(dtype):
    host = np.arange(12).reshape(3, 4).astype(dtype)
    array = getattr(PyGPU, "DeviceArray_" + dtype)(host)
    assert int(array.device_data()) == 0 and array.host_data().get() == (host.ctypes.data, True)
    assert (array.size(), array.nbytes(), array.shape(), array.ndim()) == (12, host.nbytes, [3, 4], 2)
    array.allocate()
    array.to_device()
    before = host.copy()
    host[...] = 0
    with pytest.raises(TypeError, match="one value"):
        array.set_val(5, [100, 100])
    array.set_val(5, 100)
    array.to_host()
    before[1, 1] = 100
    np.testing.assert_array_equal(host, before)
    assert int(array.last_status()) == 0
    assert type(array.device_data()).__name__ == "pointer_wrapper_" + dtype


def test_nothing_raises_and_errors_are_numbers():
    assert repr(PyGPU.cudaSetDevice(0)) == "<cudaError: code=0>"
    assert PyGPU.cudaSetDevice(1000).as_int() == 101
    assert PyGPU.cudaGetLastError() == 101 and PyGPU.cudaGetLastError() == 0
    assert PyGPU.cudaGetErrorName(cudaError_t(2)) == "cudaErrorMemoryAllocation"  # noqa: F405
    assert "memory" in PyGPU.cudaGetErrorString(cudaError_t(2))  # noqa: F405
    array = PyGPU.DeviceArray_float32(np.zeros(3, np.float32))
    array.to_device()  # not allocated
    assert array.last_status().as_int() == 1
    huge = PyGPU.DeviceArray_float32(np.broadcast_to(np.float32(0), (1 << 60,)))
    huge.allocate()
    assert huge.last_status().as_int() == 2
    assert PyGPU.cudaDeviceProp(1000).last_status().as_int() != 0


def test_streams_and_events_return_success():
    start, stop, stream = PyGPU.cudaEvent_t(), PyGPU.cudaEvent_t(), PyGPU.cudaStream_t()
    for error in (PyGPU.cudaEventRecord(start, stream), PyGPU.cudaEventRecord(stop, stream),
                  PyGPU.cudaEventSynchronize(stop), PyGPU.cudaStreamSynchronize(stream), PyGPU.cudaStreamQuery(stream),
                  PyGPU.cudaEventQuery(stop), PyGPU.cudaStreamWaitEvent(stream, start), PyGPU.cudaDeviceSynchronize(),
                  PyGPU.cudaEventRecord(start)):
        assert error == 0
    milliseconds, error = PyGPU.cudaEventElapsedTime(stop, stop)
    assert milliseconds == 0 and error.as_int() == 0
    assert int(stream.get()) and stream.last_status() == 0


def never_made(kind):
    handle = object.__new__(kind)
    handle._object, handle._status = None, cudaError_t(2)  # noqa: F405
    return handle


def test_handles_whose_creation_failed_are_refused_by_every_call():
    event, stream = PyGPU.cudaEvent_t(), PyGPU.cudaStream_t()
    no_event, no_stream = never_made(PyGPU.cudaEvent_t), never_made(PyGPU.cudaStream_t)
    errors = [PyGPU.cudaEventRecord(event, no_stream), PyGPU.cudaEventRecord(no_event, stream),
              PyGPU.cudaEventRecord(no_event), PyGPU.cudaEventSynchronize(no_event), PyGPU.cudaEventQuery(no_event),
              PyGPU.cudaStreamSynchronize(no_stream), PyGPU.cudaStreamQuery(no_stream),
              PyGPU.cudaStreamWaitEvent(stream, no_event), PyGPU.cudaStreamWaitEvent(no_stream, event),
              PyGPU.cudaEventElapsedTime(event, no_event)[1], PyGPU.cudaEventElapsedTime(no_event, event)[1]]
    assert [repr(error) for error in errors] == ["<cudaError: code=400>"] * len(errors)
    assert PyGPU.cudaGetLastError() == 400 and no_event.last_status() == 2


def test_a_device_array_accepts_only_its_own_type():
    with pytest.raises(TypeError, match="float32"):
        PyGPU.DeviceArray_float64(np.zeros(4, np.float32))
    with pytest.raises(PyGPU.UnsupportedDataType):
        PyGPU.to_gpu(np.zeros(4, np.dtype("float64").newbyteorder()))


def test_a_device_array_is_made_from_a_size_or_over_host_memory_at_a_pointer():
    assert PyGPU.DeviceArray_float64(10).shape() == PyGPU.DeviceArray_float64(np.int64(10)).shape() == [10]
    first = PyGPU.DeviceArray_float64(np.arange(10.0))
    rows = PyGPU.DeviceArray_float64(first.host_data(), [5, 2])
    columns = PyGPU.DeviceArray_float64(first.host_data(), [5, 2], 0)
    del first  # the pointers keep the memory
    np.testing.assert_array_equal(rows, np.arange(10.0).reshape(5, 2))
    np.testing.assert_array_equal(columns, np.arange(10.0).reshape(5, 2, order="F"))
    rows.allocate()
    rows.to_device()
    np.asarray(columns)[...] = 0
    rows.to_host()
    assert rows.last_status() == 0 and columns.strides() == [8, 40]
    np.testing.assert_array_equal(np.asarray(columns).T.ravel(), np.arange(10.0))


def test_a_device_array_refuses_a_pointer_to_device_memory():
    array = PyGPU.DeviceArray_float64(10)
    array.allocate()
    with pytest.raises(TypeError, match="host memory"):
        PyGPU.DeviceArray_float64(array.device_data(), [10])


def test_a_strided_mirror_survives_a_round_trip():
    whole = np.arange(24.0).reshape(4, 6)
    mirror = whole[::2, ::3]
    expected = mirror.copy()
    array = PyGPU.to_gpu(mirror)
    assert array.last_status == 0
    array.set_val((1, 0), 50)
    expected[1, 0] = 50
    mirror[...] = 0
    assert array.get() is mirror and array.last_status == 0
    np.testing.assert_array_equal(mirror, expected)
    assert whole[0, 1] == 1 and whole[1, 0] == 6  # the gaps


@pytest.mark.parametrize("order", "CF")
def test_an_element_is_set_by_its_indices(order):
    k = np.zeros((3, 4), order=order)
    array = PyGPU.to_gpu(k)
    array.set_val((2, 1), 7.0)
    expected = np.zeros((3, 4))
    expected[2, 1] = 7
    np.testing.assert_array_equal(array.get(), expected)
    array.set_val((3, 0), 1.0)
    assert array.last_status == 1
    np.testing.assert_array_equal(array.get(), expected)


def test_arrays_have_properties_and_a_mirror():
    k = np.arange(6.0).reshape(2, 3)
    array = PyGPU.to_gpu(k)
    assert (array.shape, array.dtype, array.size, array.nbytes) == ((2, 3), k.dtype, 6, 48)
    assert int(array.device_data) == array.ptr and array.host_data.get() == (k.ctypes.data, True)
    assert array.last_status == 0
    k[...] = 0
    assert array.get() is k and k.sum() == 15
    copied = array.get(copy=True)
    assert copied is not k
    k[0, 0] = 50
    array.to_gpu()
    k[0, 0] = 0
    array.to_host()
    assert k[0, 0] == 50
    array.set(np.ones((2, 3)))
    assert array.get().sum() == 6


def test_indexing_reads_and_writes():
    array = PyGPU.to_gpu(np.arange(10, dtype=np.int32))
    assert array[2:5].get().tolist() == [2, 3, 4]
    array[2:5] = 7
    array[0] = PyGPU.to_gpu(np.array(9, np.int32))
    assert array.get().tolist() == [9, 1, 7, 7, 7, 5, 6, 7, 8, 9] and len(array) == 10


def test_shapes_are_sequences_and_unknown_types_are_refused():
    assert PyGPU.GPUArray([2, 2], dtype=np.float32).get().shape == (2, 2)
    assert PyGPU.GPUArray((2, 3), order="F").strides == (8, 16)
    with pytest.raises(PyGPU.UnsupportedDataType, match="float16"):
        PyGPU.GPUArray((2,), dtype=np.float16)
    with pytest.raises(PyGPU.UnsupportedDataType):
        PyGPU.GPUArray("ten")


def test_memory_of_an_allocator_is_borrowed():
    locked = PyGPU.PagelockedAllocator((4,), np.float32)
    locked.get()[:] = 3
    array = PyGPU.GPUArray(allocator=PyGPU.Allocator(locked))
    assert array.get().tolist() == [3, 3, 3, 3]
    assert PyGPU.HostAllocator((2, 2), np.int16).get().shape == (2, 2)
    with pytest.raises(RuntimeError, match="only argument"):
        PyGPU.GPUArray((2,), allocator=locked)
    assert numpy is np


# ---- the module gpuarray


GPUARRAY = """
import sys
import gpuglue.compat
gpuglue.compat.install("PyGPU", "PybindGPU")
import PybindGPU, PyGPU
import PybindGPU.gpuarray as gpuarray
from PybindGPU.gpuarray import (
    Allocator, GPUArray, HostAllocator, PagelockedAllocator, SUPPORTED_DTYPES, UnsupportedDataType, dtype, to_gpu)
import numpy
assert GPUArray is PybindGPU.GPUArray is PyGPU.GPUArray and gpuarray is sys.modules["PybindGPU.gpuarray"]
assert SUPPORTED_DTYPES == tuple(dtype(i).name for i in range(dtype.__size__.value))
assert dtype.__members__["float_alias"] is dtype.float32 and PybindGPU.dtype is dtype
for kind in (HostAllocator, PagelockedAllocator):
    memory = kind((3, 5), numpy.float64)
    array = GPUArray(allocator=memory)
    mirror = array.get()
    mirror[...] = numpy.arange(15).reshape(3, 5)
    array.to_device()
    mirror[...] = 0
    array.to_host()
    assert array.last_status == 0
    print(memory.get().sum(), array.shape)
"""


def test_the_module_gpuarray_has_the_names_of_the_package(run_python):
    result = run_python(GPUARRAY)
    assert (result.returncode, result.stdout, result.stderr) == (0, "105.0 (3, 5)\n" * 2, "")


ORDINARY = """
import PybindGPU, PybindGPU.backend
from PybindGPU import backend
from PybindGPU.backend import *
assert backend is PybindGPU.gpuarray.backend and DeviceArray_float64 is PybindGPU.DeviceArray_float64
assert backend.ptr_wrapper_int16 is PybindGPU.ptr_wrapper_int16 and [use_hip, cuda_enabled] == [gpuglue.default_backend() == name for name in ("hip", "cuda")]
version = major_version, minor_version, release_version
try:
    backend.GPUArray
except AttributeError as error:
    print(error, version)
"""


def test_the_module_backend_has_the_names_of_the_compiled_module(run_python):
    program = 'import gpuglue.compat\ngpuglue.compat.install("PybindGPU")\nimport PybindGPU.gpuarray\n' + ORDINARY
    result = run_python(program)
    expected = "module 'gpuglue.compat.PyGPU.backend' has no attribute 'GPUArray' (0, 2, 1)\n"
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, "")


# ---- allocators of one type


LOW = ["HostAllocator", "PagelockedAllocator", "DeviceAllocator"]


@pytest.mark.parametrize("dtype", PyGPU.SUPPORTED_DTYPES)
@pytest.mark.parametrize("kind", LOW)
def test_an_allocator_of_one_type_has_no_memory_before_it_allocates(kind, dtype):
    allocator = getattr(PyGPU, f"{kind}_{dtype}")()
    assert int(allocator.ptr()) == 0 and type(allocator.ptr()) is getattr(PyGPU, "ptr_wrapper_" + dtype)
    status = allocator.allocate(100)
    assert status is None if kind == "HostAllocator" else status == 0
    address = int(allocator.ptr())
    assert address and repr(allocator) == f"<{kind}_{dtype}: 100 elements at {address:#x}>"
    assert allocator.ptr().is_safe() == (kind != "DeviceAllocator")
    allocator.allocate(200)
    assert int(allocator.ptr()) and "200 elements" in repr(allocator)


@pytest.mark.parametrize("kind", LOW)
def test_an_allocator_that_fails_has_no_memory_left(kind, monkeypatch):
    def refuse(*args, **options):  # as NumPy does; the address sanitizer would end the process instead
        raise MemoryError

    allocator = getattr(PyGPU, kind + "_float32")()
    allocator.allocate(10)
    if kind == "HostAllocator":
        with pytest.raises(ValueError, match="-1"):
            allocator.allocate(-1)
        monkeypatch.setattr(np, "empty", refuse)
        with pytest.raises(MemoryError):
            allocator.allocate(1 << 60)
    else:
        assert allocator.allocate(1 << 60) == 2
        assert int(allocator.ptr()) == 0
        assert allocator.allocate(-1) == 1 and PyGPU.cudaGetLastError() == 1
    assert int(allocator.ptr()) == 0


@pytest.mark.parametrize("kind", ["HostAllocator", "PagelockedAllocator"])
def test_arrays_over_one_allocator_share_its_memory(kind):
    allocator = getattr(PyGPU, kind + "_float64")()
    allocator.allocate(10)
    array, clone = (PyGPU.DeviceArray_float64(allocator.ptr(), [5, 2]) for _ in range(2))
    del allocator  # the pointers keep the memory
    np.asarray(array)[...] = np.arange(10).reshape(5, 2)
    np.testing.assert_array_equal(clone, np.arange(10).reshape(5, 2))
    array.allocate()
    array.to_device()
    np.asarray(clone)[...] = 0
    array.to_host()
    assert array.last_status() == 0
    np.testing.assert_array_equal(clone, np.arange(10).reshape(5, 2))


def test_memory_of_a_device_allocator_is_the_device_side_of_an_array():
    host, device = PyGPU.HostAllocator_int32(), PyGPU.DeviceAllocator_int32()
    host.allocate(6)
    assert device.allocate(6) == 0
    one = PyGPU.DeviceArray_int32(host.ptr(), device.ptr(), [2, 3])
    other = PyGPU.DeviceArray_int32(host_addr=int(host.ptr()), device_addr=int(device.ptr()), l=[2, 3], flag_c_contiguous=0)
    addresses = int(host.ptr()), int(device.ptr())
    del host, device  # `one` keeps their memory
    assert (int(one.host_data()), int(one.device_data())) == addresses
    assert not one.allocated() and other.strides() == [4, 8]
    np.asarray(one)[...] = np.arange(6).reshape(2, 3)
    one.to_device()
    np.asarray(one)[...] = 0
    other.to_host()
    assert one.last_status() == other.last_status() == 0
    np.testing.assert_array_equal(np.asarray(one).ravel(), np.arange(6))


def test_a_device_array_takes_its_arguments_by_name():
    assert PyGPU.DeviceArray_float32(l=[2, 3], flag_c_contiguous=0).strides() == [4, 8]
    assert PyGPU.DeviceArray_float32([2, 3], flag_c_contiguous=0).strides() == [4, 8]
    pointer = PyGPU.ptr_wrapper_float32()
    pointer.create(6)
    assert PyGPU.DeviceArray_float32(a=pointer, l=[2, 3]).host_data().get() == (int(pointer), True)
    assert PyGPU.DeviceArray_float32(pointer, [2, 3], flag_c_contiguous=0).strides() == [4, 8]
    for wrong in ({}, {"shape": [2]}):
        with pytest.raises(TypeError, match="flag_c_contiguous"):
            PyGPU.DeviceArray_float32(**wrong)


def test_a_device_array_is_set_from_other_host_memory():
    host, other = np.zeros(5), np.arange(5.0)
    array = PyGPU.DeviceArray_float64(host)
    array.set(other.ctypes.data)
    assert array.last_status() == 1 and not array.allocated()
    array.allocate()
    array.set(other.ctypes.data)
    assert array.allocated() and not host.any()
    array.to_host()
    np.testing.assert_array_equal(host, other)


def test_a_pointer_creates_and_destroys_host_memory():
    pointer = PyGPU.ptr_wrapper_complex128()
    assert not int(pointer) and not pointer.is_safe()
    pointer.create(4)
    array = PyGPU.DeviceArray_complex128(pointer, [4])
    np.asarray(array)[...] = 7
    pointer.destroy()
    assert not int(pointer) and not pointer.is_safe()
    assert np.asarray(array).tolist() == [7] * 4  # the array keeps it


def test_only_allocators_with_a_shape_make_an_array():
    low = PyGPU.PagelockedAllocator_float64()
    low.allocate(4)
    with pytest.raises(TypeError, match="PagelockedAllocator_float64: 4 elements.*no shape"):
        PyGPU.GPUArray(allocator=low)
    for kind in PyGPU.HostAllocator, PyGPU.PagelockedAllocator:
        with pytest.raises(PyGPU.UnsupportedDataType, match="float16"):
            kind((2,), np.float16)


def test_a_pointer_of_a_shaped_allocator_makes_a_device_array():
    memory = PyGPU.PagelockedAllocator((5, 2), np.float64)
    array = PyGPU.DeviceArray_float64(memory.ptr(), [5, 2])
    memory.get()[...] = 3
    assert np.asarray(array).sum() == 30 and memory.ptr().is_safe()


def test_an_array_over_anothers_memory_changes_the_device_side_only(device):
    k = np.arange(6).reshape(3, 2)
    first = PyGPU.to_gpu(k)
    second = PyGPU.GPUArray(allocator=PyGPU.Allocator(first))
    second.set_val(0, 43)
    second.set_val(8, 45)
    assert second.last_status == 1 and second.ptr == first.ptr
    allocator = PyGPU.Allocator(first, np.empty_like(k))
    assert allocator.ptr() == first.ptr and allocator.host_ptr() == allocator.host_data.ctypes.data
    assert second.get().tolist() == [[43, 1], [2, 3], [4, 5]] and k[0, 0] == 0
    assert PyGPU.GPUArray((2, 3), order="F").flag_c_contiguous == 0 and first.flag_c_contiguous == 1


def test_arrays_of_cuda_and_hip_have_cudas_interface(device):
    if device.backend not in ("cuda", "hip"):
        pytest.skip("the interface is of cuda and hip")
    array = PyGPU.to_gpu(np.arange(6).reshape(3, 2))
    assert array.__cuda_array_interface__["data"] == (array.ptr, False)


def test_arrays_of_other_backends_name_what_to_use_instead_of_cudas_interface(device):
    if device.backend in ("cuda", "hip"):
        pytest.skip("the interface is of cuda and hip")
    array = PyGPU.to_gpu(np.arange(6).reshape(3, 2))
    with pytest.raises(AttributeError, match=f"this array is on {device.backend}: use numpy.asarray"):
        array.__cuda_array_interface__


def test_objects_describe_themselves():
    array = PyGPU.to_gpu(np.zeros((2, 3), np.float32))
    assert repr(array) == f"<GPUArray: float32, shape (2, 3), device <pointer {array.ptr:#x}>>"
    assert repr(PyGPU.DeviceArray_int16([2])).startswith("<DeviceArray_int16: shape [2], host <pointer 0x")
    assert repr(PyGPU.HostAllocator((2, 3), "int16")) == "<HostAllocator: int16, shape (2, 3)>"
    assert PyGPU.cudaDeviceProp(0).name() in repr(PyGPU.cudaDeviceProp(0))
    assert repr(PyGPU.cudaDeviceProp(1000)) == f"<cudaDeviceProp: {PyGPU.cudaDeviceProp(1000).last_status()}>"
    assert "Stream" in repr(PyGPU.cudaStream_t()) and "Event" in repr(PyGPU.cudaEvent_t())
    assert "not created, <cudaError: code=2>" in repr(never_made(PyGPU.cudaEvent_t))


# Where fields are in the struct of CUDA 12, which is that of HIP 6, and in that of CUDA 13.
FIELDS = {"multiprocessors": (388, 384), "shared_memory_per_multiprocessor": (640, 624), "shared_memory_optin": (696, 672)}


@pytest.mark.parametrize("major", [12, 13])
def test_the_runtimes_struct_of_a_device_is_filled(device, monkeypatch, major):
    if device.backend == "cuda":
        monkeypatch.setattr(_rtc.nvrtc, "version", lambda: (major, 1))
    properties = PyGPU.cudaDeviceProp(0)
    pointer = properties.get()
    address, safe = pointer.get()
    assert safe and properties.get().get() == (address, True)  # the struct is the object's
    struct, facts, newer = ctypes.string_at(address, 1472), device.attributes, device.backend == "cuda" and major == 13

    def number(at, size=4):
        return int.from_bytes(struct[at:at + size], "little")

    assert struct[:256].rstrip(b"\0").decode() == device.name and struct[256:272].hex() in (device.uuid or "0" * 32).replace("-", "")
    assert number(288, 8) == device.total_memory and number(296, 8) == facts.get("shared_memory_per_block", 0)
    assert [number(308), number(320), number(324), number(344)] == [
        min(facts.get(name, 0), 2**31 - 1) for name in ("warp_size", "max_threads_per_block", "max_block_x", "max_grid_z")]
    assert [number(360), number(364)] == [facts.get(name, 0) for name in ("compute_major", "compute_minor")]
    for name, (old, new) in FIELDS.items():
        assert number(new if newer else old, 8 if "memory" in name else 4) == facts.get(name, 0), name
    assert number(568 if newer else 584) == properties.pciBusID() and number(348) == (0 if newer else facts.get("clock_khz", 0))
    assert not any(struct[700:])


def test_the_struct_of_a_device_that_is_not_there_is_empty():
    pointer = PyGPU.cudaDeviceProp(1000).get()
    assert not any(ctypes.string_at(pointer.get()[0], 1472)) and pointer.is_safe()


def test_measurements_have_nvmls_handle():
    device = PyGPU.nvmlDevice(0)
    assert (int(device.get()) != 0) == (device.last_status() == 0)
    assert repr(device).startswith("<nvmlDevice: handle <pointer 0x")
