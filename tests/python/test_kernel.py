"""Module and Kernel: the arguments of a launch, what it refuses, its order."""

import ctypes
import functools
import gc
import threading

import numpy as np
import pytest
from conftest import BUILT, needs
from kernels import floats, load, path_for, runs_code, typed

import gpuglue as gg


@pytest.fixture
def module(device):
    return load(device)


@pytest.fixture
def scale(module, device):
    return typed(module["scale"], device)


SHAPE = {"grid": 1, "block": 32}


def expect(array, factor):
    np.testing.assert_array_equal(array.get(), np.arange(10, dtype=np.float32) * np.float32(factor))


# ---- modules


def test_a_module_comes_from_a_path_or_from_bytes(device):
    path = path_for(device)
    needs(device, "module_load")
    for image in (path, str(path), path.read_bytes(), memoryview(path.read_bytes())):
        module = gg.Module(image, device)
        assert module.device == device and module.format == gg._core._read_image(path)[0]
        assert module["nothing"].name == "nothing"


def test_an_image_of_another_type_of_object_is_refused(device):
    with pytest.raises(TypeError, match="bytes or the path"):
        gg.Module(17, device)
    with pytest.raises(FileNotFoundError):
        gg.Module("/nonexistent/image.ptx", device)


def test_a_wrong_image_is_refused_with_the_expected_formats(device):
    needs(device, "module_load")
    with pytest.raises(gg.InvalidArgumentError, match="the format of the image is unknown"):
        gg.Module(b"hello, world", device)
    with pytest.raises(gg.InvalidArgumentError, match="0 bytes"):
        gg.Module(b"", device)


def test_unknown_kernels_and_variables_are_named(module):
    with pytest.raises(gg.InvalidArgumentError, match="scael.*scale"):
        module["scael"]
    with pytest.raises(TypeError, match="str"):
        module[3]
    with pytest.raises(gg.InvalidArgumentError, match="null character"):
        module["scale\0x"]
    needs(module.device, "module_global")
    with pytest.raises(TypeError, match="str"):
        module.get_global(3)
    with pytest.raises(gg.InvalidArgumentError, match="tabel"):
        module.get_global("tabel")


NAMES = {"nothing", "write_word", "scale", "add_table", "reverse", "say", "wait_for"}


def test_a_module_lists_its_kernels(device, module):
    assert NAMES <= set(module.kernels) and len(set(module.kernels)) == len(module.kernels)
    assert list(module) == list(module.kernels) and all(module[name].name == name for name in module)
    assert "scale" in module and "scael" not in module and "scale\0" not in module
    with pytest.raises(TypeError, match="must be a str, got 3"):
        3 in module  # noqa: B015
    module.close()
    for use in (lambda: module.kernels, lambda: "scale" in module, lambda: iter(module)):
        with pytest.raises(ValueError, match="Module is closed"):
            use()


def test_a_name_of_cpp_is_in_the_module_of_its_expression(device):
    class Compiled(bytes):
        names = {"gg::scale<float>": "scale", "gone": "lowered_away"}

    needs(device, "module_load", "kernel_launch")
    module = gg.Module(Compiled(path_for(device).read_bytes()), device)
    assert "gg::scale<float>" in module and "gone" not in module and module["gg::scale<float>"].name == "scale"


UNLISTED = """
import gpuglue as gg
module = gg.Module({path!r})
print("scale" in module, "scael" in module)
for use in (lambda: module.kernels, lambda: list(module), lambda: module["scael"]):
    try:
        use()
    except gg.Error as error:
        print(type(error).__name__, error)
"""


def test_where_nothing_lists_the_kernels_they_can_still_be_found(device, run_python):
    """A compressed fatbin, whose kernels only a driver from 12.4 on can list."""
    if path_for(device).suffix != ".ptx" or runs_code(device):
        pytest.skip("only the simulated CUDA driver lists no kernels")
    image = str(BUILT / "images" / "kernels.fatbin")
    found, *errors = run_python(UNLISTED.format(path=image)).stdout.splitlines()
    assert found == "True False"
    for error in errors[:2]:
        assert error.startswith("UnsupportedError") and "a fatbin like this one does not list them" in error
    assert 'has no kernel "scael", and the driver does not list its kernels' in errors[2]


@pytest.mark.gpu
def test_the_driver_lists_the_kernels_that_an_image_hides(device):
    if path_for(device).suffix != ".ptx" or not runs_code(device):
        pytest.skip("needs NVIDIA's driver: the simulated one reads no compressed image")
    needs(device, "module_names")
    module = gg.Module(BUILT / "images" / "kernels.fatbin", device)
    assert NAMES <= set(module.kernels) and all(module[name].name == name for name in module)
    with pytest.raises(gg.InvalidArgumentError, match=r'did you mean "scale"\?\); it has: .*write_word'):
        module["scael"]


def test_the_error_for_a_missing_kernel_names_it_in_cpp(device):
    needs(device, "module_load")
    image = path_for(device).read_bytes().replace(b"add_table", b"_Z6triple")  # of the same length: formats have offsets
    module = gg.Module(image, device)
    assert "_Z6triple" in module
    with pytest.raises(gg.InvalidArgumentError, match=r'has no kernel "triple" \(did you mean "_Z6triple"\?\); it has: '):
        module["triple"]
    with pytest.raises(gg.InvalidArgumentError, match='has no kernel "quite_another"; it has: '):
        module["quite_another"]


def test_a_module_without_kernels_says_so(device):
    if path_for(device).suffix != ".ptx":
        pytest.skip("the image without kernels is PTX")
    image = b".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .b8 table[16];\n"
    module = gg.Module(image, device)
    assert module.kernels == () and "scale" not in module
    with pytest.raises(gg.InvalidArgumentError, match='no kernel "scale" and no other kernel, only variables .* __global__'):
        module["scale"]


def test_a_closed_module_is_refused_and_its_kernels_still_work(device, module):
    kernel = typed(module["scale"], device)
    module.close()
    module.close()
    with pytest.raises(ValueError, match="Module is closed"):
        module["scale"]
    array = floats(device)
    kernel(array, 10, 2.0, **SHAPE)
    expect(array, 2)
    assert "closed" in repr(module)


def test_a_variable_is_a_buffer_that_keeps_the_module(device):
    module = load(device)
    needs(device, "module_global")
    try:
        table = module.get_global("table")
    except gg.UnsupportedError as error:
        pytest.skip(str(error))
    kernel = typed(module["add_table"], device)
    del module
    gc.collect()
    assert table.nbytes == 16
    gg.copy(table, np.array([1, 20, 300, 4000], np.uint32))
    numbers = gg.zeros(6, np.uint32, device=device)
    kernel(numbers, 6, grid=1, block=8)
    assert numbers.get().tolist() == [1, 20, 300, 4000, 1, 20]


# ---- arguments


def test_numpy_and_ctypes_scalars_and_bare_numbers_of_known_type_are_accepted(device, scale):
    for count, by in ((np.uint32(10), np.float32(2)), (10, 2.0), (10, 2), (ctypes.c_uint(10), ctypes.c_float(2)),
                      (np.int32(10), gg.RawArgument(np.float32(2).tobytes()))):
        array = floats(device)
        scale(array, count, by, **SHAPE)
        expect(array, 2)


def test_every_kind_of_argument_is_passed(device, module):
    class Mixed(ctypes.Structure):
        _fields_ = [("letter", ctypes.c_char), ("number", ctypes.c_double)]

    record = np.zeros((), np.dtype([("letter", "i1"), ("number", "f8")], align=True))
    record["letter"], record["number"] = ord("q"), -0.5
    for struct in (Mixed(b"q", -0.5), record[()], gg.RawArgument(bytes(Mixed(b"q", -0.5)))):
        out = gg.zeros(8, device=device)
        say = typed(module["say"], device)
        say(out, np.int8(-7), 65535, np.int32(-100000), -(1 << 40), 1.5, np.float64(2.25), struct, grid=1, block=1)
        assert out.get().tolist() == [-7, 65535, -100000, -(1 << 40), 1.5, 2.25, ord("q"), -0.5]


# by position in say(): the type that bind() names, the least and the greatest number that fit
LIMITS = [(1, "b", -(1 << 7), (1 << 7) - 1), (1, "B", 0, (1 << 8) - 1), (2, "h", -(1 << 15), (1 << 15) - 1),
          (2, "H", 0, (1 << 16) - 1), (3, "i", -(1 << 31), (1 << 31) - 1), (3, "I", 0, (1 << 32) - 1),
          (4, "q", -(1 << 63), (1 << 63) - 1), (4, "Q", 0, (1 << 64) - 1), (4, "P", 0, (1 << 64) - 1)]
MIXED = np.dtype([("letter", "i1"), ("number", "f8")], align=True)


@pytest.mark.parametrize("position, code, least, greatest", LIMITS)
def test_bound_numbers_are_passed_up_to_the_limits_of_their_type(device, module, position, code, least, greatest):
    codes = ["P", "b", "H", "i", "q", "f", "d", MIXED]
    codes[position] = code
    bound, out = module["say"].bind(codes, grid=1, block=1), gg.zeros(8, device=device)
    given = [out, 1, 2, 3, 4, 5.0, 6.0, np.zeros((), MIXED)[()]]
    taken = np.dtype(" bHiq"[position])
    for number in (least, greatest, True):
        given[position] = number
        bound(*given)
        assert out.get()[position - 1] == float(np.array(int(number) % (1 << 64), "u8").astype(taken))
    for number in (least - 1, greatest + 1):
        given[position] = number
        with pytest.raises(ValueError, match=f"argument {position}.*does not fit the {taken.itemsize} bytes"):
            bound(*given)


def test_an_int_for_a_float_parameter_is_converted(device, scale):
    array = floats(device)
    scale(array, 10, 2, **SHAPE)
    expect(array, 2)


@pytest.mark.parametrize("wrong, error, words", [
    ((10,), TypeError, "takes 3 arguments, got 2"),
    ((10, 2.0, 3), TypeError, "takes 3 arguments, got 4"),
    ((10.5, 2.0), TypeError, "argument 1 is a float, 10.5"),
    ((10, np.float64(2)), ValueError, "argument 2.*8 bytes where the kernel takes 4"),
    ((np.uint64(10), 2.0), ValueError, "argument 1.*8 bytes where the kernel takes 4"),
    ((np.float32(10), 2.0), TypeError, "floating-point scalar.*takes an integer"),
    ((10, np.int32(2)), TypeError, "integer scalar.*takes a float"),
    ((1 << 40, 2.0), ValueError, "does not fit the 4 bytes"),
    ((-(1 << 40), 2.0), ValueError, "does not fit the 4 bytes"),
    ((10, 1e300), TypeError, "does not fit a float of 4 bytes"),
    (("ten", 2.0), TypeError, "a kernel takes a GPUArray"),
    ((None, 2.0), TypeError, "null pointer"),
    ((10, None), TypeError, "null pointer"),
    ((10, ctypes.c_int(2)), TypeError, "integer scalar.*takes a float"),
    ((ctypes.c_float(10), 2.0), TypeError, "floating-point scalar.*takes an integer"),
    ((10, np.bool_(True)), TypeError, "integer scalar.*takes a float"),
    ((10, np.complex64(2)), TypeError, "not a float.*takes a float"),
    ((10, np.datetime64("2020-01-01")), TypeError, "not a float.*takes a float"),
    ((np.str_("t"), 2.0), TypeError, "a kernel takes a GPUArray"),
    ((np.bytes_(b"four"), 2.0), TypeError, "a kernel takes a GPUArray"),
])
def test_wrong_arguments_are_refused_before_anything_runs(device, scale, wrong, error, words):
    array = floats(device)
    with pytest.raises(error, match=words):
        scale(array, *wrong, **SHAPE)
    expect(array, 1)


def test_where_the_image_has_no_types_numbers_need_one(device):
    """HIPRTC's code objects have none."""
    image = path_for(device).read_bytes()
    if b"amdhsa.kernels" not in image:
        pytest.skip("this backend's images have types")
    needs(device, "module_load", "kernel_launch")
    scale = gg.Module(image.replace(b".type_name", b".other_key"), device)["scale"]
    array = floats(device)
    with pytest.raises(TypeError, match=r"argument 1 is a bare int 10, and .*: write numpy\.int32.* or bind the types"):
        scale(array, 10, np.float32(2), **SHAPE)
    with pytest.raises(TypeError, match=r"argument 2 is a bare float 2\.0, and .*: write numpy\.float32.* or bind the types"):
        scale(array, np.uint32(10), 2.0, **SHAPE)
    scale(array, np.uint32(10), np.float32(2), **SHAPE)
    scale.bind("PIf")(array, 10, 1.5, **SHAPE)
    expect(array, 3)


def test_an_array_for_a_float_parameter_is_refused(device, module):
    array, out = floats(device), gg.zeros(8, device=device)
    arguments = [np.int8(-7), 65535, np.int32(-100000), -(1 << 40), 1.5, np.float64(2.25), gg.RawArgument(bytes(16))]
    for wrong in (array, gg.alloc(8, device), None):
        arguments[5] = wrong
        with pytest.raises(TypeError, match="argument 6.*(takes a float|takes no pointer)"):
            module["say"].bind(["P", "b", "H", "i", "q", "f", "d", "V16"])(out, *arguments, grid=1, block=1)
    assert not out.get().any()


@pytest.mark.parametrize("wrong", [np.float64(2), ctypes.c_double(2), np.complex64(2), np.datetime64("2020-01-01")])
def test_a_number_that_is_not_an_address_is_refused_for_a_pointer_parameter(scale, wrong):
    with pytest.raises(TypeError, match="argument 0.*takes (a pointer|an integer)"):
        scale.bind("PIf")(wrong, 10, 2.0, **SHAPE)


def test_host_arrays_are_refused_on_every_backend(scale):
    with pytest.raises(TypeError, match="NumPy array.*to_gpu"):
        scale(np.zeros(10, np.float32), 10, 2.0, **SHAPE)


def test_closed_arrays_are_refused(device, scale):
    buffer = gg.alloc(40, device)
    buffer.close()
    with pytest.raises(ValueError, match="closed"):
        scale(buffer, 10, 2.0, **SHAPE)


def test_memory_of_another_device_is_refused(scale, second_device):
    with pytest.raises(gg.InvalidArgumentError, match="copy it first"):
        scale(floats(second_device), 10, 2.0, **SHAPE)


def test_a_stream_of_another_device_is_refused(device, scale, second_device):
    with pytest.raises(ValueError):
        scale(floats(device), 10, 2.0, stream=gg.Stream(second_device), **SHAPE)


def test_buffers_can_be_arguments(device, scale):
    buffer = gg.alloc(40, device)
    gg.copy(buffer, np.arange(10, dtype=np.float32))
    scale(buffer, 10, 3.0, **SHAPE)
    got = np.empty(10, np.float32)
    gg.copy(got, buffer)
    np.testing.assert_array_equal(got, np.arange(10) * 3)


# ---- shapes


@pytest.mark.parametrize("shape, words", [
    ({"grid": 1, "block": 2048}, "block x is 2048, over the limit of 1024"),
    ({"grid": 1, "block": (32, 64)}, "threads per block"),
    ({"grid": 1, "block": 0}, "block x is 0"),
    ({"grid": (1, 0, 1), "block": 1}, "grid y is 0"),
    ({"grid": 1, "block": 1, "smem": 1 << 30}, "shared memory"),
    ({"grid": 1, "block": 1, "smem": -1}, r"smem of -1: expected numbers from 0 to 2\*\*32 - 1"),
    ({"grid": 1, "block": (1, 1, 1, 1)}, "one to three"),
    ({"grid": 1, "block": -1}, "from 1 to"),
    ({"grid": 1 << 40, "block": 1}, "from 1 to"),
])
def test_wrong_shapes_are_refused_with_the_limit(device, scale, shape, words):
    array = floats(device)
    with pytest.raises(ValueError, match=words):
        scale(array, 10, 2.0, **shape)
    expect(array, 1)


def test_a_launch_without_grid_and_block_reports_what_it_needs(device, scale):
    for shape in ({}, {"grid": 1}, {"block": 1}):
        with pytest.raises(TypeError, match="needs grid= .* and block="):
            scale(floats(device), 10, 2.0, **shape)
    with pytest.raises(TypeError, match="no argument 'shared'"):
        scale(floats(device), 10, 2.0, shared=1, **SHAPE)


def test_shapes_are_ints_or_sequences_of_up_to_three(device, scale):
    for grid, block in ((1, 32), ((1,), (32,)), ([1, 1], [32, 1]), ((1, 1, 1), (32, 1, 1)), (np.int64(1), np.int32(32))):
        array = floats(device)
        scale(array, 10, 2.0, grid=grid, block=block)
        assert array.get()[1] == 2


# ---- bind


def test_a_bound_kernel_accepts_bare_numbers_and_default_grid_and_block(device, scale):
    bound = scale.bind("PIf", grid=1, block=32)
    array = floats(device)
    bound(array, 10, 2)
    expect(array, 2)
    bound(array, 10, 2, grid=1, block=1)  # of element 0 only, which is 0
    expect(array, 2)
    assert "bound" in repr(bound)


def test_signatures_are_codes_or_dtypes(device, scale):
    for signature in ("PIf", ["P", np.uint32, np.float32], ("P", "I", np.dtype("f4"))):
        array = floats(device)
        scale.bind(signature)(array, 10, 2, **SHAPE)
        expect(array, 2)


@pytest.mark.parametrize("signature, words", [("PI", "takes 3 arguments, the signature has 2"),
                                              ("PId", "argument 2 has 8 bytes"), ("PI!", "not a type code")])
def test_signatures_that_do_not_fit_are_refused(scale, signature, words):
    if scale.device.backend == "ze":
        needs(scale.device, "kernel_attribute")
    with pytest.raises(ValueError, match=words):
        scale.bind(signature)


# ---- calling


def test_a_kernel_is_called_through_partial_and_star(device, scale):
    array = floats(device)
    functools.partial(scale, array, 10)(2.0, **SHAPE)
    scale(*[array, 10, 2.0], **SHAPE)
    type(scale).__call__(scale, array, 10, 2.0, **SHAPE)
    expect(array, 8)


def test_keywords_are_compared_by_value(device, scale):
    array = floats(device)
    scale(array, 10, 2.0, **{f"{name[:2]}{name[2:]}": value for name, value in SHAPE.items()})
    with pytest.raises(TypeError, match="no argument 'blocks'"):
        scale(array, 10, 2.0, grid=1, blocks=32)
    expect(array, 2)


def test_a_launch_returns_before_it_is_done(device, scale, stream, gate):
    array = floats(device)
    gate.hold(stream)
    scale(array, 10, 2.0, stream=stream, **SHAPE)
    assert not stream.done
    gate.open()
    stream.synchronize()
    expect(array, 2)


def test_a_launch_without_a_stream_waits_for_work_on_its_arrays(device, scale, stream, gate):
    array = floats(device)
    gate.hold(stream)
    scale(array, 10, 2.0, stream=stream, **SHAPE)
    other = gg.Stream(device, nonblocking=True)
    with other:
        scale(array, 10, 3.0, **SHAPE)
    assert not other.done
    gate.open()
    other.synchronize()
    expect(array, 6)


def test_arguments_may_be_dropped_once_a_kernel_is_queued(device, scale, stream, gate):
    array, watched = floats(device), floats(device)
    gate.hold(stream)
    scale(array, 10, 2.0, stream=stream, **SHAPE)
    del array
    gc.collect()
    gate.open()
    stream.synchronize()
    expect(watched, 1)


def test_many_arguments_are_packed(device, module):
    kernel = module["nothing"]
    with pytest.raises(TypeError, match="takes 0 arguments, got 40"):
        kernel(*range(40), **SHAPE)


def test_threads_may_launch_the_same_kernel(device, scale):
    arrays = [floats(device) for _ in range(4)]

    def work(array):
        stream = gg.Stream(device)
        for _ in range(20):
            scale(array, 10, np.float32(-1), stream=stream, **SHAPE)
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array in arrays:
        expect(array, 1)


# ---- numbers


def test_a_kernel_has_its_attributes(device, module, scale):
    assert (scale.name, scale.device, scale.module) == ("scale", device, module)
    assert [size for _, size, _ in scale.parameters] == [8, 4, 4]
    assert scale.attributes.get("max_threads_per_block", 1024) >= 32
    if device.supports("kernel_occupancy"):
        assert scale.max_active_blocks(32) >= 1
    if device.supports("kernel_suggest_block_size"):
        threads, blocks = scale.suggest_block(limit=64)
        assert 1 <= threads <= 64 and blocks >= 1


def test_a_kernel_has_no_public_constructor():
    with pytest.raises(TypeError):
        gg.Kernel()


ELSEWHERE = """
import numpy as np, gpuglue as gg, kernels
device = gg.Device("{}:0"); scale = kernels.load(device)["scale"]
host = np.arange(10, dtype=np.float32); locked, array = gg.host_register(host, device), kernels.floats(device)
try: scale(locked, 10, 2.0, grid=1, block=32)
except gg.InvalidArgumentError as error: print(error)
host += 1; gg.copy(array, locked); scale(array, 10, 2.0, grid=1, block=32); gg.copy(locked, array); device.synchronize()
print(host.astype(int).tolist())
"""


def test_registered_memory_that_a_device_has_at_another_address_is_for_copies_only(device, run_python):
    """CUDA's and HIP's attribute "can use host pointer for registered mem" is 0, and the device's pointer is another."""
    needs(device, "mem_register", "module_load")
    if "Simulated" not in device.name:
        pytest.skip("the driver is not simulated")
    result = run_python(ELSEWHERE.format(device.backend), GPUGLUE_SIM_HOST_POINTERS="0")
    assert (result.returncode, result.stderr) == (0, "")
    refused, copied = result.stdout.splitlines()
    assert "scale: argument 0 is registered host memory" in refused and "another address" in refused
    assert copied == str([2 * i + 2 for i in range(10)])


def test_the_simulated_drivers_report_lists_launches(device, module, tmp_path, run_python):
    if "Simulated" not in device.name:
        pytest.skip("a simulated driver keeps the record")
    code = f"""
import gpuglue as gg, numpy as np
array = gg.to_gpu(np.zeros(4, np.float32))
gg.Module({str(path_for(device))!r})["scale"](array, 4, 2.5, grid=(2, 3), block=(4, 5, 6))
gg.synchronize()
"""
    record = tmp_path / "launches"
    result = run_python(code, GPUGLUE_SIM_LAUNCHES=str(record))
    assert result.returncode == 0, result.stderr
    line = record.read_text()
    assert line.startswith("scale grid 2 3 1 block 4 5 6 shared 0 arguments")
    assert line.split()[-2:] == ["04000000", np.float32(2.5).tobytes().hex()]
