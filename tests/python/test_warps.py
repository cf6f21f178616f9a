"""CUDA source on the host: warps (cuda_warps.h) and cooperative groups, by the rules of the CUDA C++ Programming Guide."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from compilers import ARCH, needs_compiler, only_once, own_cache  # noqa: F401

import gpuglue as gg

RANDOM = np.random.default_rng(16)
LANES = np.arange(32)
ALL = "0xffffffffu"


def launch(source, *arguments, grid=1, block=32, name="k"):
    """The kernel's arrays after it has run. The device is synchronized, so that its failure is this launch's."""
    module = gg.Module(gg.compile(source, backend="host", arch=ARCH), "host")
    arrays = [gg.to_gpu(a, device="host") if isinstance(a, np.ndarray) else a for a in arguments]
    module[name](*arrays, grid=grid, block=block)
    gg.Device("host").synchronize()
    return [a.get() for a in arrays if isinstance(a, gg.GPUArray)]


def lanes_of(expression, value=None, block=32, before="", kind="int", dtype=np.int32, grid=1):
    """What each thread of a block gets for an expression of `x`, its element, and `lane`."""
    value = np.arange(block, dtype=dtype) if value is None else value
    source = f"""{before}
__global__ void k(const {kind} *in, {kind} *out) {{
    const unsigned i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), lane = i % warpSize;
    const {kind} x = in[i]; (void)lane; (void)x;
    out[i] = {expression}; }}"""
    return launch(source, value, np.zeros_like(value), grid=grid, block=block)[1]


# ---- programs

REDUCE = """
extern "C" __global__ void k(const float *in, float *out, int n)
{
    __shared__ float part[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    float sum = i < n ? in[i] : 0;
    for (int by = warpSize / 2; by > 0; by /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, by);
    if (lane == 0)
        part[warp] = sum;
    __syncthreads();
    if (warp)
        return;
    sum = lane < blockDim.x / warpSize ? part[lane] : 0;
    for (int by = warpSize / 2; by > 0; by /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, by);
    if (lane == 0)
        out[blockIdx.x] = sum;
}
"""

SCAN = """
extern "C" __global__ void k(int *x)
{
    const int lane = threadIdx.x & 31;
    int sum = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int by = 1; by < 32; by *= 2) {
        const int before = __shfl_up_sync(0xffffffff, sum, by);
        if (lane >= by)
            sum += before;
    }
    x[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""

COMPACT = """
extern "C" __global__ void k(const int *in, int *out, int *count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    const bool keep = in[i] % 3 == 0;
    const unsigned kept = __ballot_sync(0xffffffff, keep);
    int at = 0;
    if (lane == 0)
        at = atomicAdd(count, __popc(kept));
    at = __shfl_sync(0xffffffff, at, 0) + __popc(kept & ((1u << lane) - 1));
    if (keep)
        out[at] = in[i];
}
"""

BUTTERFLY = """
extern "C" __global__ void k(double *x)
{
    double sum = x[threadIdx.x];
    for (int by = 16; by > 0; by /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
    x[threadIdx.x] = sum;
}
"""

# A tile's sum, and what it knows of itself.
TILES = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <class group> __device__ float sum(const group &tile, float x)
{
    for (int by = tile.size() / 2; by > 0; by /= 2)
        x += tile.shfl_down(x, by);
    return tile.shfl(x, 0);
}
extern "C" __global__ void k(float *x, unsigned *ranks)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    auto pair = cg::tiled_partition<2>(tile);
    const unsigned i = block.thread_rank();
    x[i] = sum(tile, x[i]);
    block.sync();
    tile.sync();
    ranks[8 * i] = tile.thread_rank(); ranks[8 * i + 1] = tile.meta_group_rank(); ranks[8 * i + 2] = tile.meta_group_size();
    ranks[8 * i + 3] = tile.ballot(i % 3 == 0); ranks[8 * i + 4] = pair.meta_group_rank() * 16 + pair.meta_group_size();
    ranks[8 * i + 5] = pair.shfl_xor(i, 1); ranks[8 * i + 6] = tile.any(i == 9) * 2 + tile.all(i > 7);
    ranks[8 * i + 7] = tile.match_any(i / 4);
}
"""
ACTIVE = """#include <cooperative_groups.h>
using namespace cooperative_groups;
extern "C" __global__ void k(int *x, int *counters)
{
    const int i = threadIdx.x;
    if (i % 4 == 1) {
        coalesced_group active = coalesced_threads();
        int at = 0;
        if (active.thread_rank() == 0)
            at = atomicAdd(counters, active.size());
        x[i] = 1000 + active.shfl(at, 0) + active.thread_rank();
    } else {
        const unsigned mask = __activemask();
        x[i] = __reduce_add_sync(mask, 1u);
    }
}
"""
PROGRAMS = {"reduction": REDUCE, "scan": SCAN, "compaction": COMPACT, "butterfly": BUTTERFLY, "tiles": TILES, "active": ACTIVE}


@pytest.mark.parametrize("program", PROGRAMS)
def test_nvcc_also_compiles_the_programs_of_these_tests(program, tmp_path):
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("nvcc is not on PATH")
    (tmp_path / "k.cu").write_text(PROGRAMS[program])
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # a sanitizer is not for nvcc
    command = [nvcc, "-ptx", "-arch=compute_80", "-o", "k.ptx", "k.cu"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ".entry k(" in (tmp_path / "k.ptx").read_text()


@needs_compiler
def test_warps_add_by_shuffles():
    x = RANDOM.integers(-1000, 1000, 5000).astype(np.float32)
    blocks = -(-x.size // 256)
    _, out = launch(REDUCE, x, np.zeros(blocks, np.float32), np.int32(x.size), grid=blocks, block=256)
    padded = np.append(x, np.zeros(blocks * 256 - x.size, np.float32))
    np.testing.assert_array_equal(out, padded.reshape(blocks, 256).sum(axis=1))


@needs_compiler
def test_warps_scan_by_shuffles():
    x = RANDOM.integers(-1000, 1000, (64, 32)).astype(np.int32)
    np.testing.assert_array_equal(launch(SCAN, x.ravel(), grid=8, block=256)[0], np.cumsum(x, axis=1).ravel())


@needs_compiler
def test_ballots_place_the_elements_that_are_kept():
    x = RANDOM.integers(0, 1000, 20 * 64).astype(np.int32)
    _, out, count = launch(COMPACT, x, np.zeros_like(x), np.zeros(1, np.int32), grid=20, block=64)
    assert count[0] == np.count_nonzero(x % 3 == 0)
    np.testing.assert_array_equal(np.sort(out[:count[0]]), np.sort(x[x % 3 == 0]))


@needs_compiler
def test_a_butterfly_gives_every_lane_the_sum():
    x = RANDOM.integers(-1000, 1000, 96).astype(np.float64)
    np.testing.assert_array_equal(launch(BUTTERFLY, x, block=96)[0], x.reshape(3, 32).sum(axis=1).repeat(32))


@needs_compiler
def test_tiles_of_eight_threads_compute_on_their_own():
    x = RANDOM.integers(-1000, 1000, 40).astype(np.float32)
    out, ranks = launch(TILES, x, np.zeros((40, 8), np.uint32), block=40)
    i = np.arange(40)
    np.testing.assert_array_equal(out, x.reshape(5, 8).sum(axis=1).repeat(8))
    bits = (1 << (i % 8)) * (i % 3 == 0)
    expected = [i % 8, i // 8, 0 * i + 5, bits.reshape(5, 8).sum(axis=1).repeat(8), i % 8 // 2 * 16 + 4, i ^ 1, (i // 8 == 1) * 2 + (i > 7),
                np.where(i % 8 < 4, 0x0f, 0xf0)]
    np.testing.assert_array_equal(ranks, np.transpose(expected))


@needs_compiler
def test_the_lanes_of_a_branch_are_those_that_are_active_in_it():
    x, counters = launch(ACTIVE, np.zeros(40, np.int32), np.zeros(1, np.int32), block=40)
    i = np.arange(40)
    apart = i[i % 4 == 1]
    assert sorted(x[apart]) == list(range(1000, 1010)) and counters[0] == 10
    assert (np.diff(x[apart][:8]) == 1).all()  # those of one warp follow each other
    np.testing.assert_array_equal(x[i % 4 != 1], np.where(i < 32, 24, 6)[i % 4 != 1])


# ---- each function


@needs_compiler
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_shuffles_stay_in_segments_of_their_width(width):
    begin, rank = LANES // width * width, LANES % width
    source = f"""__global__ void k(int *out) {{ const int lane = threadIdx.x;
    out[lane] = __shfl_sync({ALL}, lane, lane * 7 - 3, {width});
    out[32 + lane] = __shfl_up_sync({ALL}, lane, 3, {width});
    out[64 + lane] = __shfl_down_sync({ALL}, lane, lane % 5, {width});
    out[96 + lane] = __shfl_xor_sync({ALL}, lane, 5, {width}); }}"""
    up = np.where(rank >= 3, LANES - 3, LANES)
    down = np.where(rank + LANES % 5 < width, LANES + LANES % 5, LANES)
    flip = np.where((LANES ^ 5) < begin + width, LANES ^ 5, LANES)
    expected = [begin + (LANES * 7 - 3) % width, up, down, flip]
    np.testing.assert_array_equal(launch(source, np.zeros((4, 32), np.int32))[0], expected)


TYPES = {"int": np.int32, "unsigned": np.uint32, "long": np.int64, "unsigned long": np.uint64, "long long": np.int64,
         "unsigned long long": np.uint64, "float": np.float32, "double": np.float64, "half": np.float16}


@needs_compiler
@pytest.mark.parametrize("kind", TYPES)
def test_shuffles_move_values_of_every_type(kind):
    size = np.dtype(TYPES[kind]).itemsize
    x = RANDOM.integers(0, 256, 32 * size).astype(np.uint8).view(TYPES[kind])
    before = "#include <cuda_fp16.h>" if kind == "half" else ""
    out = lanes_of(f"__shfl_xor_sync({ALL}, x, 1)", x, kind=kind, before=before)
    assert out.tobytes() == x[LANES ^ 1].tobytes()


@needs_compiler
def test_a_smaller_type_is_promoted_as_in_any_call():
    source = f"""__global__ void k(int *out) {{ auto x = __shfl_sync({ALL}, (signed char)(threadIdx.x + 100), 29);
    static_assert(sizeof(x) == sizeof(int), ""); out[threadIdx.x] = x; }}"""
    assert set(launch(source, np.zeros(32, np.int32))[0]) == {-127}


@needs_compiler
def test_votes_are_about_the_lanes_of_the_mask():
    mask = 0x0f0ff0ff
    source = f"""__global__ void k(int *out) {{ const int lane = threadIdx.x;
    if ({mask:#x}u >> lane & 1) {{
        out[lane] = __ballot_sync({mask:#x}u, lane % 2); out[32 + lane] = __all_sync({mask:#x}u, lane != 8);
        out[64 + lane] = __any_sync({mask:#x}u, lane == 8); out[96 + lane] = __all_sync({mask:#x}u, lane != 12); }} }}"""
    out = launch(source, np.full((4, 32), -5, np.int32))[0]
    inside = mask >> LANES & 1 == 1
    assert (out[:, ~inside] == -5).all()
    assert [set(row) for row in out[:, inside]] == [{mask & 0xaaaaaaaa}, {1}, {0}, {0}]


@needs_compiler
@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "half"])
def test_matches_compare_bits(kind):
    x = RANDOM.integers(0, 4, 32).astype(TYPES[kind])
    if x.dtype.kind == "f":
        x[:6] = [0.0, -0.0, np.nan, np.nan, np.inf, 0.0]
    source = f"""__global__ void k(const {kind} *in, unsigned *out) {{ const unsigned i = threadIdx.x; int all, same;
    out[i] = __match_any_sync({ALL}, in[i]); out[32 + i] = __match_all_sync({ALL}, in[i], &all);
    out[64 + i] = __match_all_sync({ALL}, in[7], &same); out[96 + i] = all + 2 * same; }}"""
    out = launch(source, x, np.zeros((4, 32), np.uint32))[1]
    same = np.array([a.tobytes() == b.tobytes() for a in x for b in x]).reshape(32, 32)
    np.testing.assert_array_equal(out[0], (same * (1 << LANES)).sum(axis=1))
    assert [set(row) for row in out[1:]] == [{0}, {0xffffffff}, {2}]


@needs_compiler
@pytest.mark.parametrize(("name", "kind", "reduce"), [
    ("add", "unsigned", np.add), ("add", "int", np.add), ("min", "unsigned", np.minimum), ("min", "int", np.minimum),
    ("max", "unsigned", np.maximum), ("max", "int", np.maximum), ("and", "unsigned", np.bitwise_and),
    ("or", "unsigned", np.bitwise_or), ("xor", "unsigned", np.bitwise_xor)])
def test_reductions_of_a_mask_have_numpys_result(name, kind, reduce):
    x = RANDOM.integers(0, 1 << 32, 32, np.uint32).view(TYPES[kind])
    out = lanes_of(f"lane < 11 ? __reduce_{name}_sync(0x7ffu, x) : __reduce_{name}_sync(~0x7ffu, x)", x, kind=kind)
    parts = [reduce.reduce(part, dtype=x.dtype) for part in (x[:11], x[11:])]
    np.testing.assert_array_equal(out, np.repeat(parts, [11, 21]))


@needs_compiler
def test_a_wave_through_shared_memory_needs_only_its_warp():
    source = """__global__ void k(int *out) {
    __shared__ int s[64];
    const int i = threadIdx.x, lane = i % 32, first = i - lane;
    s[i] = 1;
    __syncwarp();
    for (int by = 1; by < 32; by *= 2) {
        const int before = lane >= by ? s[i - by] : 0;
        __syncwarp(); s[i] += before; __syncwarp();
    }
    if (first == 0) { __syncwarp(); out[i] = s[i]; } else out[i] = -s[i];
    __syncthreads(); out[64 + i] = s[63 - i]; }"""
    out = launch(source, np.zeros(128, np.int32), block=64)[0]
    rank = np.arange(64) % 32 + 1
    assert out.tolist() == [*rank[:32], *-rank[32:], *rank[::-1]]


@needs_compiler
def test_a_warp_is_of_consecutive_threads_in_every_shape_of_block():
    value = np.arange(2 * 5 * 7, dtype=np.int32)
    out = lanes_of(f"__shfl_sync({ALL}, x, 0)", value, block=(5, 7, 2))
    np.testing.assert_array_equal(out, value // 32 * 32)


@needs_compiler
def test_lanes_beyond_the_block_and_lanes_that_have_ended_take_no_part():
    source = """__global__ void k(float *out, unsigned *votes) {
    const int i = threadIdx.x;
    __syncthreads();
    if (i % 32 >= 20) return;
    votes[i] = __ballot_sync(0xffffffff, 1);
    votes[100 + i] = __all_sync(0xffffffff, 1);
    out[i] = __shfl_down_sync(0xffffffff, (float)i, 16);
    if (i % 2) return;
    votes[200 + i] = __ballot_sync(0xffffffff, 1); }"""
    out, votes = launch(source, np.zeros(100, np.float32), np.zeros((3, 100), np.uint32), block=41)
    i = np.arange(41)
    live = i % 32 < 20
    here = np.where(i < 32, 0xfffff, 0x1ff)
    np.testing.assert_array_equal(votes[0, :41], here * live)
    np.testing.assert_array_equal(votes[1, :41], live)
    np.testing.assert_array_equal(votes[2, :41], (here & 0x55555555) * (live & (i % 2 == 0)))
    # CUDA leaves undefined what is read of a lane that has ended. Here it shows.
    np.testing.assert_array_equal(out[:41], np.where(live, np.where(i < 4, i + 16, np.where(i % 32 < 16, np.nan, i)), 0))


@needs_compiler
def test_two_parts_of_a_warp_work_at_the_same_time():
    source = """__global__ void k(int *out) {
    const int i = threadIdx.x;
    int sum = i;
    if (i % 2) { for (int by = 1; by < 32; by += 2) sum += __shfl_sync(0xaaaaaaaa, i, by); }
    else { for (int by = 0; by < 10; by++) { __syncwarp(0x55555555); sum = __reduce_add_sync(0x55555555, 1u); } }
    out[i] = sum; }"""
    np.testing.assert_array_equal(launch(source, np.zeros(32, np.int32))[0], np.where(LANES % 2, LANES + 256, 16))


@needs_compiler
def test_warps_of_many_blocks_on_several_threads_do_not_mix():
    x = RANDOM.integers(-1000, 1000, 2000 * 64).astype(np.int32)
    np.testing.assert_array_equal(launch(SCAN, x, grid=2000, block=64)[0], np.cumsum(x.reshape(-1, 32), axis=1, dtype=np.int32).ravel())


@needs_compiler
def test_groups_know_their_threads():
    source = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned of(cg::thread_group g) { g.sync(); return g.size() * 1000 + g.thread_rank(); }
__global__ void k(unsigned *out) {
    auto block = cg::this_thread_block(); auto grid = cg::this_grid(); auto warp = cg::tiled_partition<32>(block);
    out += 8 * grid.thread_rank();
    out[0] = grid.size(); out[1] = block.group_index().x; out[2] = block.thread_index().y; out[3] = block.size() + block.dim_threads().y;
    out[4] = of(block); out[5] = of(warp); cg::sync(warp); out[6] = warp.shfl_up(threadIdx.x, 1); out[7] = grid.is_valid(); }"""
    out = launch(source, np.zeros((96, 8), np.uint32), grid=3, block=(16, 2))[0]
    i = np.arange(96)
    expected = [0 * i + 96, i // 32, i % 32 // 16, 0 * i + 34, 32000 + i % 32, 32000 + i % 32, np.maximum(i % 32 - 1, 0) % 16, 0 * i]
    np.testing.assert_array_equal(out, np.transpose(expected))


@needs_compiler
def test_the_warp_of_the_device_and_of_kernels_agree():
    module = gg.Module(gg.compile("__global__ void k(int *x) { *x = warpSize; } int half(int warpSize) { return warpSize / 2; }", backend="host", arch=ARCH), "host")
    x = gg.zeros(1, np.int32, device="host")
    module["k"](x, grid=1, block=1)
    assert x.get()[0] == gg.Device("host").attributes["warp_size"] == module["k"].attributes["warp_size"] == 32


# ---- errors

FAILURES = {
    "a mask without its caller": ("__shfl_sync(0xf0, i, 4);", "lane 0 of warp 0 calls __shfl_sync with mask 0x000000f0, which does not name"),
    "an empty mask": ("__ballot_sync(0, i);", "__ballot_sync with mask 0x00000000, which does not name this lane"),
    "a wrong width": (f"__shfl_down_sync({ALL}, i, 1, 3);", "__shfl_down_sync with a width of 3: expected 1, 2, 4, 8, 16 or 32"),
    "a lane at a barrier": (f"if (i == 5) __syncthreads(); else __shfl_xor_sync({ALL}, i, 1);",
                            "0xffffffdf wait in __shfl_xor_sync with mask 0xffffffff for lane 5, which waits at a barrier of the block"),
    "another operation": (f"if (i < 16) __all_sync({ALL}, i); else __any_sync({ALL}, i);",
                          "0x0000ffff wait in __all_sync with mask 0xffffffff for lane 16, which calls __any_sync with mask 0xffffffff"),
    "another mask": (f"if (i % 32 < 16) __syncwarp({ALL}); else __syncwarp(0xffff0001);",
                     "for lane 16, which calls __syncwarp with mask 0xffff0001: all lanes that a mask names must make the same call"),
}


@needs_compiler
@pytest.mark.parametrize("case", FAILURES)
def test_a_call_that_some_lanes_do_not_make_fails_the_kernel(case):
    text, message = FAILURES[case]
    source = f"__global__ void k(int *out) {{ const int i = threadIdx.x; {text} out[i] = 1; }}"
    with pytest.raises(gg.DeviceError) as caught:
        launch(source, np.zeros(64, np.int32), block=64)
    assert message in str(caught.value)
    assert "the kernel k did not complete: block (0, 0, 0):" in str(caught.value)
    np.testing.assert_array_equal(launch(SCAN, np.ones(32, np.int32))[0], LANES + 1)  # the stream works on


@needs_compiler
def test_a_grid_on_several_threads_reports_one_failing_block():
    source = "__global__ void k(int *out) { if (blockIdx.x == 3000) __syncwarp(threadIdx.x); out[blockIdx.x] = 1; }"
    with pytest.raises(gg.DeviceError, match=r"block \(3000, 0, 0\): lane 0 of warp 0 calls __syncwarp with mask 0x00000000"):
        launch(source, np.zeros(4000, np.int32), grid=4000, block=32)


@needs_compiler
def test_a_grid_that_synchronizes_does_not_compile():
    source = "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_grid().sync(); }"
    with pytest.raises(gg.CompileError, match="a grid cannot synchronize on host"):
        gg.compile(source, backend="host", arch=ARCH)
