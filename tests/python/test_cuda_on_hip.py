"""CUDA C++ for AMD's devices: compile(lang="cuda") and SourceModule map what HIP spells in another way. HIPRTC needs no device."""

import numpy as np
import pytest
from compilers import has_hiprtc, own_cache  # noqa: F401

import gpuglue as gg

pytestmark = pytest.mark.skipif(not has_hiprtc(), reason="HIPRTC is not on this machine")
ALL = "0xffffffffu"
STATEMENTS = {
    "shuffles": f"f[0] += __shfl_down_sync({ALL}, f[0], 16); o[0] = __shfl_sync({ALL}, o[1], 3, 16); "
                f"d[0] = __shfl_xor_sync(-1, d[1], 3); u[0] = __shfl_up_sync({ALL}, u[1], 1u);",
    "shuffles without a mask": "f[0] += __shfl_down(f[0], 16); o[0] = __shfl(o[1], 3); u[0] = __ballot(o[0]) + __any(o[1]) + __all(o[2]);",
    "votes": f"u[0] = __ballot_sync({ALL}, o[0]) + __activemask(); o[1] = __any_sync({ALL}, o[0]) + __all_sync({ALL}, o[1]);",
    "matches": f"int every; u[0] = __match_any_sync({ALL}, f[0]); u[1] = __match_all_sync({ALL}, o[0], &every); o[1] = every;",
    "reductions": f"o[0] = __reduce_add_sync({ALL}, o[0]) + __reduce_min_sync({ALL}, o[1]); u[0] = __reduce_max_sync({ALL}, u[1]) "
                  f"^ __reduce_and_sync({ALL}, u[2]) ^ __reduce_or_sync({ALL}, u[3]) ^ __reduce_xor_sync({ALL}, u[4]);",
    "the size of a warp": "static_assert(warpSize == 32, \"\"); __syncwarp(); __syncwarp(0xffu);",
    "atomic operations of a block": "atomicAdd_block(o, 1); atomicMax_block(o, 3); atomicCAS_block(u, 1u, 2u);",
    "assertions and traps": "assert(o[0] == 1); if (o[1]) __trap(); __nanosleep(100);",
    "products of bytes": "o[0] = __dp4a(o[1], o[2], o[3]); u[0] = __dp4a(u[1], u[2], u[3]);",
    "macros of nvcc": "\n#ifndef __CUDACC__\n#error not there\n#endif\n",
}
PROGRAMS = {
    "half": ("#include <cuda_fp16.h>", "half h = __float2half(f[0]); f[1] = __half2float(__hadd(h, h));"),
    "complex numbers": ("#include <cuComplex.h>", "cuFloatComplex z = make_cuFloatComplex(f[0], f[1]); z = cuCmulf(cuCaddf(z, z), cuConjf(z)); "
                        "f[0] = cuCrealf(z) + cuCabsf(z); cuDoubleComplex w = make_cuDoubleComplex(d[0], d[1]); d[0] = cuCimag(cuCdiv(w, w));"),
    "cooperative groups": ("#include <cooperative_groups.h>", "auto block = cooperative_groups::this_thread_block(); block.sync(); "
                           "auto tile = cooperative_groups::tiled_partition<32>(block); f[0] += tile.shfl_down(f[0], 4); o[0] = tile.thread_rank();"),
}


SINCE_6 = "complex numbers", "cooperative groups"


def compiled(body, before="", lang="cuda"):
    source = f'{before}\nextern "C" __global__ void k(int *o, unsigned *u, float *f, double *d) {{ {body} }}'
    return gg.compile(source, backend="hip", arch="gfx90a", lang=lang)


@pytest.mark.parametrize("what", STATEMENTS)
def test_a_kernel_in_cuda_cpp_compiles_with(what):
    assert "k" in compiled(STATEMENTS[what]).kernels


def hiprtc_is_older_than_6():
    """hiprtcVersion() returns 9.0 in all of them."""
    try:
        compiled("\n#if HIP_VERSION_MAJOR >= 6\n#error\n#endif\n", lang="hip")
    except gg.CompileError:
        return False
    return True


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_kernel_that_includes_a_header_of_cuda_compiles_with(what):
    before, body = PROGRAMS[what]
    if what in SINCE_6 and hiprtc_is_older_than_6():
        with pytest.raises(gg.CompileError, match=f"{what} need HIPRTC 6 or newer"):
            compiled(body, before)
    else:
        assert "k" in compiled(body, before).kernels


def test_without_the_language_the_source_is_hips_and_a_warp_the_devices():
    assert compiled('\n#ifdef __CUDACC__\n#error\n#endif\n', lang=None).kernels
    assert compiled("o[0] = __shfl_down(o[1], warpSize / 2);", lang="hip").kernels
    with pytest.raises(gg.CompileError):
        compiled(STATEMENTS["products of bytes"], lang="hip")


def test_masks_of_64_bits_keep_hips_meaning():
    compiled("unsigned long long all = ~0ull; o[0] = __shfl_sync(all, o[1], 40); u[0] = __popcll(__activemask());")


def test_an_error_names_the_line_of_the_source():
    with pytest.raises(gg.CompileError, match=r"source\.cu:2:.*undeclared"):
        compiled("int a = missing;")


@pytest.fixture
def amd(device):
    if device.backend != "hip" or not device.arch.startswith("gfx"):
        pytest.skip(f"{device} runs no code of HIPRTC")
    return device


def lanes(device, expression):
    """What each of 64 threads gets for an expression of its number `i` and its lane."""
    source = f'extern "C" __global__ void k(unsigned *o) {{ int i = threadIdx.x, lane = i % warpSize; (void)lane; o[i] = {expression}; }}'
    found = gg.zeros(64, "u4", device=device)
    gg.Module(gg.compile(source, backend="hip", lang="cuda"), device)["k"](found, grid=1, block=64)
    return found.get()


def test_a_warp_has_32_lanes_on_a_device_whose_wavefront_has_64(amd):
    i = np.arange(64)
    own = i // 32 * 32
    assert (lanes(amd, f"__shfl_sync({ALL}, i, 5)") == own + 5).all()
    assert (lanes(amd, f"__shfl_down_sync({ALL}, i, 16)") == np.where(i % 32 < 16, i + 16, i)).all()
    assert (lanes(amd, f"__ballot_sync({ALL}, i < 40)") == np.where(i < 32, 2**32 - 1, 2**8 - 1)).all()
    assert (lanes(amd, f"__reduce_add_sync({ALL}, (unsigned)i)") == np.where(i < 32, 496, 496 + 1024)).all()
    assert (lanes(amd, f"__match_any_sync({ALL}, lane % 2)") == np.where(i % 2, 0xAAAAAAAA, 0x55555555)).all()
