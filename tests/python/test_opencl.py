"""OpenCL C on Level Zero: compiled to SPIR-V, launched, and its results compared with NumPy's. It needs a device that
runs code: a GPU, or a simulated driver with PoCL (GPUGLUE_SIM_OPENCL=libOpenCL.so.1)."""

import shutil
import subprocess

import numpy as np
import pytest
from conftest import run_python, succeeds
from kernels import missing_opencl, runs_code

import gpuglue as gg
from gpuglue import _convert

SOURCE = r"""
kernel void vector_add(global float *c, global const float *a, global const float *b, uint n)
{
    uint i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}

/* One number for each group, through memory that the launch gives. */
kernel void group_sum(global const float *x, global float *sums, local float *part, uint n)
{
    uint i = get_local_id(0), at = get_global_id(0);
    part[i] = at < n ? x[at] : 0;
    for (uint step = get_local_size(0) / 2; step; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < step)
            part[i] += part[i + step];
    }
    if (!i)
        sums[get_group_id(0)] = part[0];
}

kernel void histogram(global const uchar *x, uint n, global uint *bins)
{
    local uint mine[256];
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0))
        mine[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&mine[x[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0))
        atomic_add(&bins[i], mine[i]);
}

/* The place of each work item: 13 numbers. */
kernel void places(global uint *out)
{
    uint nx = get_global_size(0), ny = get_global_size(1);
    global uint *at = out + 13 * (get_global_id(0) + nx * (get_global_id(1) + ny * get_global_id(2)));
    for (uint d = 0; d < 3; d++) {
        at[d] = get_local_id(d);
        at[3 + d] = get_group_id(d);
        at[6 + d] = get_local_size(d);
        at[9 + d] = get_num_groups(d);
    }
    at[12] = get_work_dim();
}

kernel void reverse_groups(global uint *x, local uint *held)
{
    uint i = get_local_id(0), width = get_local_size(0);
    global uint *group = x + get_group_id(0) * width;
    held[i] = group[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    group[i] = held[width - 1 - i];
}

global float gains[3] = {1.5f, 2.5f, 3.5f};
kernel void amplify(global float *x) { x[get_global_id(0)] *= gains[get_global_id(0) % 3]; }
/* For the simulated driver, see tests/sim/README.md. */
kernel void where_gains(global ulong *out) { out[0] = (ulong)gains; out[1] = sizeof gains; }

kernel void follow(global ulong *holder)
{
    global uint *there = (global uint *)holder[0];
    there[0] = 77;
}

kernel void scale(global float *x, uint n, float by)
{
    uint i = get_global_id(0);
    if (i < n)
        x[i] *= by;
}
"""


def by_ocloc():
    try:
        return gg.compile(SOURCE, backend="ze", arch="tgllp", options=["-cl-std=CL2.0"])  # variables of the program
    except gg.UnsupportedError as error:
        pytest.skip(str(error).splitlines()[0])


def by_clang(tmp_path, text=SOURCE, passes=("-O1",)):
    """With clang and llvm-spirv of one version, as Debian has them. Passes may make integers of widths that SPIR-V lacks."""
    for version in range(25, 13, -1):
        clang, translate = shutil.which(f"clang-{version}"), shutil.which(f"llvm-spirv-{version}")
        if clang and translate:
            break
    else:
        pytest.skip("no clang-N and llvm-spirv-N of one version: apt-get install clang-15 llvm-spirv-15")
    source, bitcode, spirv = (tmp_path / f"kernels.{suffix}" for suffix in ("cl", "bc", "spv"))
    source.write_text(text)
    target = ("-x", "cl", "-cl-std=CL2.0", "--target=spir64", *passes, "-c", "-emit-llvm")
    subprocess.run([clang, *target, source, "-o", bitcode], check=True)
    subprocess.run([translate, "--spirv-max-version=1.2", bitcode, "-o", spirv], check=True)
    return spirv.read_bytes()


@pytest.fixture(scope="session")
def gpu(device):
    if device.backend != "ze":
        pytest.skip(f"{device.backend} takes no SPIR-V")
    missing = "" if runs_code(device) else missing_opencl()
    if missing:
        pytest.skip(f"the simulated driver runs no compiled code: {missing}")
    return device


@pytest.fixture(scope="session", params=("clang", "ocloc"))
def image(gpu, request, tmp_path_factory):
    return by_ocloc() if request.param == "ocloc" else by_clang(tmp_path_factory.mktemp("opencl"))


@pytest.fixture(scope="session")
def module(gpu, image):
    return gg.Module(image, gpu)


# ---- results --------------------------------------------------------------------------------------------------


def test_vectors_are_added(gpu, module):
    n = (1 << 20) + 11
    a, b = np.random.default_rng(1).random((2, n), dtype=np.float32)
    c = gg.empty(n, np.float32, device=gpu)
    module["vector_add"](c, gg.to_gpu(a, gpu), gg.to_gpu(b, gpu), np.uint32(n), grid=(n + 255) // 256, block=256)
    np.testing.assert_array_equal(c.get(), a + b)


def test_a_reduction_with_local_memory_and_barriers(gpu, module):
    n = 100_003
    x = np.random.default_rng(2).integers(0, 100, n).astype(np.float32)  # whole numbers: the order does not matter
    groups = (n + 127) // 128
    sums = gg.empty(groups, np.float32, device=gpu)
    module["group_sum"](gg.to_gpu(x, gpu), sums, gg.LocalMemory(4 * 128), np.uint32(n), grid=groups, block=128)
    np.testing.assert_array_equal(sums.get(), np.add.reduceat(x, np.arange(0, n, 128)))


def test_a_histogram_with_atomics(gpu, module):
    x = np.random.default_rng(3).integers(0, 256, 1_000_003).astype(np.uint8)
    bins = gg.zeros(256, np.uint32, device=gpu)
    module["histogram"](gg.to_gpu(x, gpu), np.uint32(x.size), bins, grid=32, block=64)
    np.testing.assert_array_equal(bins.get(), np.bincount(x, minlength=256))


# ---- launches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid, block", (((2, 3, 2), (5, 2, 3)), ((7, 1, 1), (32, 1, 1)), ((1, 4, 1), (8, 8, 1)), ((3, 1, 5), (1, 1, 1))))
def test_every_work_item_has_its_place(gpu, module, grid, block):
    counts = [groups * items for groups, items in zip(grid, block, strict=True)]
    out = gg.zeros((*reversed(counts), 13), np.uint32, device=gpu)
    module["places"](out, grid=grid, block=block)
    z, y, x = np.indices(tuple(reversed(counts)))
    expected = [x % block[0], y % block[1], z % block[2], x // block[0], y // block[1], z // block[2], *block, *grid, 3]
    for column, values in enumerate(expected):
        np.testing.assert_array_equal(out.get()[..., column], np.broadcast_to(values, x.shape))


@pytest.mark.parametrize("threads", (16, 64, 250))
def test_local_memory_has_the_size_of_each_launch(gpu, module, threads):
    x = np.arange(3 * threads, dtype=np.uint32)
    array = gg.to_gpu(x, gpu)
    module["reverse_groups"](array, gg.LocalMemory(4 * threads), grid=3, block=threads)
    np.testing.assert_array_equal(array.get().reshape(3, -1), x.reshape(3, -1)[:, ::-1])


def test_part_of_an_array_is_an_argument(gpu, module):
    array = gg.to_gpu(np.ones(100, np.float32), gpu)
    module["scale"](array[33:77], np.uint32(44), np.float32(5), grid=2, block=32)
    expected = np.ones(100, np.float32)
    expected[33:77] = 5
    np.testing.assert_array_equal(array.get(), expected)


def test_launches_of_two_streams_run_in_the_order_of_their_waits(gpu, module):
    n = 1 << 14
    array = gg.to_gpu(np.ones(n, np.float32), gpu)
    one, two = gg.Stream(gpu), gg.Stream(gpu)
    for i in range(20):
        with (one, two)[i % 2]:
            module["scale"](array, np.uint32(n), np.float32(i + 2), grid=n // 64, block=64)
            array.set(array.get() - 1)
    expected = np.ones(n, np.float32)
    for i in range(20):
        expected = expected * np.float32(i + 2) - 1
    np.testing.assert_array_equal(array.get(), expected)


def test_a_variable_has_its_first_values_and_can_be_written(gpu, module):
    try:
        gains = module.get_global("gains")
    except gg.UnsupportedError as error:
        pytest.skip(str(error))
    assert gains.nbytes == 12
    for values in (1.5, 2.5, 3.5), (10, 20, 30):
        array = gg.to_gpu(np.full(6, 2, np.float32), gpu)
        module["amplify"](array, grid=1, block=6)
        np.testing.assert_array_equal(array.get(), np.tile(np.float32(values) * 2, 2))
        gg.copy(gains, np.array([10, 20, 30], np.float32))


def test_a_kernel_follows_an_address_in_memory(gpu, module):
    target = gg.zeros(4, np.uint32, device=gpu)
    if target.ptr >> 63:
        pytest.skip("nothing is mapped at this driver's device addresses")
    module["follow"](gg.to_gpu(np.array([target.ptr + 8], np.uint64), gpu), grid=1, block=1)
    gpu.synchronize()
    assert target.get().tolist() == [0, 0, 77, 0]


def test_an_argument_that_is_not_the_devices_memory_loses_the_device(gpu, image, tmp_path):
    if runs_code(gpu):
        pytest.skip("a GPU would be lost for every process")
    (tmp_path / "image").write_bytes(image)
    code = (
        "import gpuglue as gg, numpy as np, sys\n"
        f"scale = gg.Module({str(tmp_path / 'image')!r}, gg.Device('ze:0'))['scale']\n"
        "try: scale(np.uint64(0x1234567890), np.uint32(4), np.float32(1), grid=1, block=4); gg.synchronize()\n"
        "except gg.DeviceLostError as error: print('lost')"
    )
    assert succeeds(run_python(code)) == "lost"


# ---- astype -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source, target", ["fd", "df", "fe", "de", "ef", "ed", "dq", "fB", "eh", "qe", "?D", "DF", "Fi"])
def test_the_kernels_of_astype_convert_bit_for_bit_as_numpy(gpu, tmp_path, source, target):
    pair = np.dtype(source), np.dtype(target)
    kernel = gg.Module(by_clang(tmp_path, _convert.text(*pair, 1), ("-O0",)), gpu)["gg_astype"]
    assert _convert._agrees(kernel, gpu, *pair)
