"""gpuglue.compat: the names of PyCUDA's and PyGPU's documentation that the other suites do not use."""

import numpy as np
import pytest
from conftest import needs
from kernels import needs_compiler, path_for, runs_code

from gpuglue.compat import PyGPU
from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda import _function, gpuarray, tools
from gpuglue.compat.pycuda.compiler import SourceModule


pytestmark = pytest.mark.usefixtures("context")


# ---- devices and contexts


def test_a_primary_context_is_retained_without_being_current(context):
    before = cuda.Context.get_current()
    primary = cuda.Device(0).retain_primary_context()
    assert cuda.Context.get_current() is before
    primary.push()
    assert cuda.Context.get_current() is primary and cuda.Context.get_device() == cuda.Device(0)
    primary.detach()
    assert cuda.Context.get_current() is before
    primary.detach()  # not current any more: nothing is popped
    assert cuda.Context.get_current() is before


def test_devices_have_an_address_and_peers(device):
    mine = cuda.Device(0)
    assert mine.pci_bus_id() == device.pci_bus_id
    assert isinstance(mine.can_access_peer(mine), bool)
    if mine.pci_bus_id():
        assert cuda.Device(mine.pci_bus_id()) == mine
    with pytest.raises(cuda.Error):
        cuda.Device(10000)


@pytest.mark.parametrize("name", ["autoinit", "autoprimaryctx"])
def test_importing_makes_the_primary_context_current(run_python, name, device):
    code = f"""
import gpuglue.compat
gpuglue.compat.install("pycuda")
import pycuda.{name}, pycuda.driver as cuda
assert cuda.Context.get_current() is pycuda.{name}.context
assert pycuda.{name}.device == cuda.Device(0) == cuda.Context.get_device()
print(int(cuda.mem_alloc(100)) != 0)
"""
    result = run_python(code)
    assert (result.returncode, result.stdout) == (0, "True\n"), result.stderr


def test_enumerations_have_the_drivers_numbers():
    assert cuda.ctx_flags.MAP_HOST == 8 and cuda.ctx_flags.BLOCKING_SYNC == 4
    assert cuda.event_flags.BLOCKING_SYNC | cuda.event_flags.DISABLE_TIMING == 3
    assert cuda.compute_mode.DEFAULT == 0 and cuda.func_cache.PREFER_L1 == 2
    assert cuda.function_attribute.MAX_THREADS_PER_BLOCK == 0 and cuda.function_attribute.NUM_REGS == 4
    assert cuda.device_attribute.MAX_THREADS_PER_BLOCK == 1 and cuda.device_attribute.WARP_SIZE == 10
    assert cuda.memory_type.HOST == 1 and cuda.host_alloc_flags.PORTABLE == 1


def test_the_drivers_numbers_print_their_names():
    assert str(cuda.device_attribute.WARP_SIZE) == f"{cuda.device_attribute.WARP_SIZE}" == "WARP_SIZE"
    assert str(cuda.function_attribute.NUM_REGS) == "NUM_REGS" and str(cuda.compute_mode.DEFAULT) == "DEFAULT"
    assert str(cuda.event_flags.DISABLE_TIMING) == "DISABLE_TIMING" and str(cuda.ctx_flags.SCHED_AUTO) == "SCHED_AUTO"
    assert str(cuda.event_flags.BLOCKING_SYNC | cuda.event_flags.DISABLE_TIMING) == "3"
    assert f"{cuda.device_attribute.WARP_SIZE:d}" == "10"


def test_attributes_of_devices_have_names_even_without_a_value(device):
    numbers = {"MAX_THREADS_PER_MULTIPROCESSOR": 39, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81, "L2_CACHE_SIZE": 38,
               "ECC_ENABLED": 32, "INTEGRATED": 18, "GLOBAL_MEMORY_BUS_WIDTH": 37, "CAN_MAP_HOST_MEMORY": 19}
    assert {name: cuda.device_attribute[name].value for name in numbers} == numbers
    mine = cuda.Device(0)
    known = mine.get_attributes()
    for attribute in cuda.device_attribute:
        if attribute in known:
            assert mine.get_attribute(attribute) == known[attribute]
        else:
            with pytest.raises(cuda.LogicError, match=f"does not report .*{attribute.name}"):
                mine.get_attribute(attribute)


def test_attributes_of_devices_locate_them(device):
    mine = cuda.Device(0)
    attributes = mine.get_attributes()
    if "registers_per_block" in device.attributes:
        assert mine.max_registers_per_block == tools.DeviceData(mine).registers == device.attributes["registers_per_block"]
    else:
        with pytest.raises(cuda.LogicError, match="does not report .*MAX_REGISTERS_PER_BLOCK"):
            tools.DeviceData(mine).registers
    assert mine.MAX_THREADS_PER_MULTIPROCESSOR == device.attributes["threads_per_multiprocessor"]
    assert attributes[cuda.device_attribute.INTEGRATED] == device.integrated
    if device.pci_bus_id:
        place = [attributes[cuda.device_attribute[f"PCI_{part}_ID"]] for part in ("DOMAIN", "BUS", "DEVICE")]
        assert "%04x:%02x:%02x" % tuple(place) == device.pci_bus_id.rpartition(".")[0]


@pytest.mark.parametrize("variable", [True, False])
def test_the_default_device_is_set_by_a_variable_or_a_file(run_python, tmp_path, variable):
    (tmp_path / ".cuda_device").write_text("1000\n")
    code = """
from gpuglue.compat.pycuda import driver, tools
driver.init()
for choose in (tools.make_default_context, tools.get_default_device):
    try:
        choose()
    except driver.LogicError as error:
        print("1000" in str(error))
    else:
        print(tools.get_default_device() == driver.Device(0))
"""
    result = run_python(code, HOME=str(tmp_path), CUDA_DEVICE="0" if variable else None)
    assert (result.returncode, result.stdout) == (0, "True\nTrue\n"), result.stderr


def test_exceptions_are_a_family():
    assert issubclass(cuda.LaunchError, cuda.Error) and issubclass(cuda.LogicError, cuda.Error)
    assert issubclass(cuda.CompileError, cuda.Error) and issubclass(cuda.RuntimeError, RuntimeError)
    error = cuda.CompileError("it was not compiled", "nvcc x.cu", "", "line 3: no")
    assert "line 3: no" in str(error) and error.command_line == "nvcc x.cu"


# ---- memory


def test_peer_copies_move_bytes():
    source = cuda.to_device(np.arange(100, dtype=np.int16))
    one, two, stream = cuda.mem_alloc(200), cuda.mem_alloc(200), cuda.Stream()
    cuda.memcpy_peer(one, source, 200)
    cuda.memcpy_peer_async(two, one, 200, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(cuda.from_device(two, 100, np.int16), np.arange(100))


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_fills_on_a_stream_are_in_its_order(bits):
    kind, stream = np.dtype(f"u{bits // 8}"), cuda.Stream()
    memory = cuda.mem_alloc(100 * kind.itemsize)
    fill = getattr(cuda, f"memset_d{bits}_async")
    fill(memory, 1, 100, stream)
    fill(memory, 7, 50, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(cuda.from_device(memory, 100, kind), np.where(np.arange(100) < 50, 7, 1))


def test_aligned_memory_is_zero_and_aligned():
    like = np.empty((33, 7), np.float32, "F")
    array = cuda.aligned_zeros_like(like, alignment=1 << 14)
    assert array.ctypes.data % (1 << 14) == 0 and not array.any() and array.strides == like.strides


def test_an_array_is_set_on_a_stream():
    stream, host = cuda.Stream(), cuda.pagelocked_empty(100, np.float64)
    host[:] = np.arange(100)
    array = gpuarray.zeros(100, np.float64)
    array.set_async(host, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(array.get(), np.arange(100))


# ---- kernels


ATTRIBUTES = {"registers": lambda function: function.num_regs, "local_size": lambda function: function.local_size_bytes,
              "shared_size": lambda function: function.shared_size_bytes}


def reported(device, attribute):
    """A function, and its attribute as the device reports it; skips where it does not."""
    needs(device, "module_load", "kernel_attribute")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    if attribute not in function._kernel.attributes:
        pytest.skip(f"{device} does not report {attribute}")
    return function, function._kernel.attributes[attribute]


def test_a_function_has_the_number_of_its_registers(device):
    function, number = reported(device, "registers")
    assert function.num_regs == number


def test_a_function_has_the_size_of_its_local_memory(device):
    function, number = reported(device, "local_size")
    assert function.local_size_bytes == number


@pytest.mark.parametrize("attribute, read", ATTRIBUTES.items())
def test_what_a_device_does_not_report_of_a_function_is_refused(device, attribute, read):
    needs(device, "module_load", "kernel_attribute")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    if attribute in function._kernel.attributes:
        pytest.skip(f"{device} reports {attribute}")
    with pytest.raises(cuda.LogicError, match="does not report"):
        read(function)


def test_a_source_module_takes_headers_and_names_of_c_plus_plus(device, tmp_path, monkeypatch):
    if not runs_code(device):
        pytest.skip(f"{device} runs no compiled code")
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "mine.h").write_text("template <class T> __device__ T twice(T x) { return 2 * x; }\n")
    source = '#include "mine.h"\nextern "C" __global__ void f(int *x) { *x = twice(*x); }'
    needs_compiler(device)
    module = SourceModule(source, no_extern_c=True, include_dirs=[str(tmp_path)], keep=False,
                          cache_dir=str(tmp_path / "unused"))
    x = gpuarray.to_gpu(np.array([21], np.int32))
    module.get_function("f")(x, block=(1, 1, 1))
    assert x.get()[0] == 42


@pytest.mark.parametrize("count", [np.int64, np.uint8, int])
@pytest.mark.parametrize("factor", [np.float64, np.int32, np.float32, int])
def test_prepared_numbers_are_converted_as_by_the_struct_module(device, count, factor):
    needs(device, "module_load", "kernel_launch")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    for types in ("PIf", [np.intp, np.uint32, np.float32]):
        allocation = cuda.to_device(np.arange(10, dtype=np.float32))
        function.prepare(types)
        function.prepared_call((1, 1), (32, 1, 1), allocation, count(10), factor(2))
        np.testing.assert_array_equal(cuda.from_device(allocation, 10, np.float32), np.arange(10) * 2)


def test_a_prepared_integer_refuses_a_fraction(device):
    needs(device, "module_load", "kernel_launch")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale").prepare("PIf")
    with pytest.raises((TypeError, cuda.LogicError)):
        function.prepared_call((1, 1), (32, 1, 1), cuda.mem_alloc(40), np.float64(10), np.float32(2))


def test_out_arguments_on_a_stream_are_complete_on_return(device, monkeypatch):
    needs(device, "module_load", "kernel_launch")
    function = cuda.module_from_file(str(path_for(device))).get_function("scale")
    stream, waited = cuda.Stream(), []
    real = _function._wait
    monkeypatch.setattr(_function, "_wait", lambda stream: (real(stream), waited.append(stream)))
    a = np.arange(10, dtype=np.float32)
    function(cuda.InOut(a), np.uint32(10), np.float32(2), block=(32, 1, 1), stream=stream)
    np.testing.assert_array_equal(a, np.arange(10) * 2)
    assert waited == [stream]
    function(cuda.In(a), np.uint32(10), np.float32(2), block=(32, 1, 1), stream=stream)
    assert waited == [stream]  # nothing is copied back


def test_two_allocations_of_one_global_are_freed_separately(device):
    needs(device, "module_load", "module_global")
    module = cuda.module_from_file(str(path_for(device)))
    first, second = module.get_global("table")[0], module.get_global("table")[0]
    assert int(first) == int(second)
    second.free()
    cuda.memcpy_htod(first, np.arange(4, dtype=np.uint32))
    assert cuda.from_device(int(first), 4, np.uint32).tolist() == [0, 1, 2, 3]


# ---- PyGPU


def test_pygpus_devices_have_uuid_and_address(device):
    properties = PyGPU.cudaDeviceProp(0)
    assert properties.name() == device.name
    assert properties.uuid() == str(device.uuid or "").replace("-", "").removeprefix("GPU")
    if device.pci_bus_id:
        domain, bus, rest = device.pci_bus_id.split(":")
        assert (properties.pciDomainID(), properties.pciBusID()) == (int(domain, 16), int(bus, 16))
        assert properties.pciDeviceID() == int(rest.split(".")[0], 16)
    assert PyGPU.cudaDeviceReset() == 0 and PyGPU.cudaDeviceSynchronize() == 0


def test_pygpus_pointers_report_whether_they_are_safe():
    array = PyGPU.DeviceArray_float32(np.zeros(3, np.float32))
    array.allocate()
    host, device = array.host_data(), array.device_data()
    assert host.is_safe() and host.get() == (int(host), True)
    assert not device.is_safe() and device.get() == (None, False)
    assert device.unsafe_get() == int(device) != 0
    assert type(device) is PyGPU.pointer_wrapper_float32 and isinstance(device, PyGPU.ptr_wrapper)


def test_pygpus_events_have_a_handle_before_they_are_recorded(device):
    needs(device, "event_native")
    event = PyGPU.cudaEvent_t()
    before = event.get()
    assert isinstance(before, PyGPU.pointer_wrapper) and not before.is_safe()
    assert PyGPU.cudaEventRecord(event) == 0 and int(event.get()) == int(before)


def test_pygpus_pointers_print_their_address(capfd):
    pointer = PyGPU.DeviceArray_float32([3]).host_data()
    pointer.print_address()
    assert capfd.readouterr().out == f"Address of ptr is 0x{int(pointer):x}\n"


def test_pygpus_measurements_return_an_error_without_nvml():
    status = PyGPU.nvmlInit()
    assert isinstance(status.as_int(), int) and repr(status).startswith("<nvmlReturn: code=")
    reading = PyGPU.nvmlDevice(0)
    assert len(reading.utilization_rates()) == 2 and len(reading.memory_info()) == 3
    assert status == 0 or reading.last_status() != 0
    assert isinstance(PyGPU.nvmlShutdown(), PyGPU.nvmlReturn_t)
