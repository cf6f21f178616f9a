"""gpuglue.compat.PyGPU: what its README says, on every backend."""

import numpy as np
import numpy
import pytest

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


def test_the_programs_of_its_readme(run_python):
    result = run_python(README)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr


@pytest.mark.parametrize("dtype", PyGPU.SUPPORTED_DTYPES)
def test_every_device_array_goes_there_and_back(dtype):
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


def test_streams_and_events():
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


def test_handles_that_were_never_made_are_refused_by_every_call():
    event, stream = PyGPU.cudaEvent_t(), PyGPU.cudaStream_t()
    no_event, no_stream = never_made(PyGPU.cudaEvent_t), never_made(PyGPU.cudaStream_t)
    errors = [PyGPU.cudaEventRecord(event, no_stream), PyGPU.cudaEventRecord(no_event, stream),
              PyGPU.cudaEventRecord(no_event), PyGPU.cudaEventSynchronize(no_event), PyGPU.cudaEventQuery(no_event),
              PyGPU.cudaStreamSynchronize(no_stream), PyGPU.cudaStreamQuery(no_stream),
              PyGPU.cudaStreamWaitEvent(stream, no_event), PyGPU.cudaStreamWaitEvent(no_stream, event),
              PyGPU.cudaEventElapsedTime(event, no_event)[1], PyGPU.cudaEventElapsedTime(no_event, event)[1]]
    assert [repr(error) for error in errors] == ["<cudaError: code=400>"] * len(errors)
    assert PyGPU.cudaGetLastError() == 400 and no_event.last_status() == 2


def test_a_device_array_takes_its_own_type_only():
    with pytest.raises(TypeError, match="float32"):
        PyGPU.DeviceArray_float64(np.zeros(4, np.float32))
    with pytest.raises(PyGPU.UnsupportedDataType):
        PyGPU.to_gpu(np.zeros(4, np.dtype("float64").newbyteorder()))


def test_a_mirror_with_gaps_goes_there_and_back():
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


def test_shapes_orders_and_types_that_are_not_there():
    assert PyGPU.GPUArray([2, 2], dtype=np.float32).get().shape == (2, 2)
    assert PyGPU.GPUArray((2, 3), order="F").strides == (8, 16)
    with pytest.raises(PyGPU.UnsupportedDataType, match="float16"):
        PyGPU.GPUArray((2,), dtype=np.float16)
    with pytest.raises(PyGPU.UnsupportedDataType):
        PyGPU.GPUArray("ten")


def test_allocators_lend_memory():
    locked = PyGPU.PagelockedAllocator((4,), np.float32)
    locked.get()[:] = 3
    array = PyGPU.GPUArray(allocator=PyGPU.Allocator(locked))
    assert array.get().tolist() == [3, 3, 3, 3]
    assert PyGPU.HostAllocator((2, 2), np.int16).get().shape == (2, 2)
    with pytest.raises(RuntimeError, match="only argument"):
        PyGPU.GPUArray((2,), allocator=locked)
    assert numpy is np
