"""CUDA source on the host: what cuda_dialect.h has, and how kernels and shared memory are found in it."""

import numpy as np
import pytest
from compilers import ARCH, SMALL, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _nvcc_options

SOURCE = 'extern "C" __global__ void f(int *x, int y) { *x = y; }'


def test_each_compiler_is_told_what_it_knows():
    options = ["-DX=", "-I", "one", "-std", "gnu++14", "-include", "x.h", "-G", "-O3", "-Xptxas", "-v", "-lineinfo"]
    assert _nvcc_options.for_nvrtc(options) == ["-DX=", "-Ione", "-std=c++14", "--pre-include=x.h", "-G", "-lineinfo"]
    assert _nvcc_options.for_cxx(options) == ["-DX=", "-Ione", "-include", "x.h", "-O3"]
    assert _nvcc_options.for_cxx(["-Wall", "--std=c++20", "-fopenmp"]) == ["-Wall", "-std=c++20", "-fopenmp"]


@needs_nvrtc
@pytest.mark.parametrize("options", [
    ["-g"], ["--debug"], ["-debug"], ["-pg"], ["--profile"], ["--optimize=3"], ["--optimize", "3"], ["-optimize", "3"],
    ["-objtemp"], ["--objdir-as-tempdir"], ["-use-local-env"], ["--use-local-env"], ["-Xnvlink", "--suppress-stack-size"],
    ["-Xnvlink=--verbose"], ["--nvlink-options", "--verbose"], ["--nvlink-options=--verbose"]], ids=" ".join)
def test_what_nvcc_tells_other_programs_is_kept_from_nvrtc(options):
    assert gg.compile(SMALL % 1, arch="sm_90", options=_nvcc_options.for_nvrtc(options))


@needs_compiler
def test_options_of_nvcc_and_an_older_language_do_no_harm_on_the_host():
    options = ["-std=c++11", "-ftz=true", "-prec-div=false", "-fmad=false", "-res-usage", "--restrict", "-lineinfo"]
    image = gg.compile("__global__ void f(int *x) { *x = 9; }", arch=ARCH, options=options)
    assert image.format == "shared object"


@needs_compiler
def test_the_host_compiler_makes_a_shared_object():
    image = gg.compile(SOURCE, arch=ARCH)
    assert (image.format, image.arch) == ("shared object", ARCH)


@needs_compiler
def test_kernels_in_namespaces_and_behind_macros_are_found():
    text = r"""
#define KERNEL(name) __global__ void name
namespace a { namespace b { KERNEL(one)(int *x) { *x = 1; } } }
KERNEL(two)(int *x) { *x = '{' ? 2 : 3; }
__global__ void
three(int *x);
__global__ void three(int *x) { *x = 3; }
template <class T> __global__ void four(T *) {}
"""
    module = gg.Module(gg.compile(text, arch=ARCH), "host")
    for name, value in (("one", 1), ("two", 2), ("three", 3)):
        x = gg.zeros(1, np.int32, device="host")
        module[name](x, grid=1, block=1)
        assert x.get()[0] == value
    with pytest.raises(gg.InvalidArgumentError, match="four.*one, two, three"):
        module["four"]


@needs_compiler
@pytest.mark.parametrize("declaration", ["extern __shared__ float s[];", "extern __shared__ __align__(16) float s[];"])
@pytest.mark.parametrize("outside", [False, True])
def test_dynamic_shared_memory_inside_and_outside_of_functions(declaration, outside):
    before, inside = (declaration, "") if outside else ("", declaration)
    text = f"""{before}
extern "C" __global__ void turn(float *x) {{ {inside}
    s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x]; }}"""
    x = gg.to_gpu(np.arange(70, dtype=np.float32), device="host")
    gg.Module(gg.compile(text, arch=ARCH), "host")["turn"](x, grid=1, block=70, smem=280)
    np.testing.assert_array_equal(x.get(), np.arange(70)[::-1])


def run_on_host(text, name="k", count=8, kind=np.float32, names=(), options=(), **shape):
    x = gg.zeros(count, kind, device="host")
    module = gg.Module(gg.compile(text, backend="host", arch=ARCH, names=names, options=options), "host")
    module[name](x, **{"grid": 1, "block": 1, **shape})
    return x.get()


KERNEL = 'extern "C" __global__ void k(float *a)'


@needs_compiler
@pytest.mark.parametrize("words", ["extern __shared__ {}", "extern volatile __shared__ {}", "__shared__ extern {}",
                                   "extern __shared__ volatile {}", "volatile extern __shared__ {}"])
@pytest.mark.parametrize("outside", [False, True])
def test_the_words_of_dynamic_shared_memory_stand_in_any_order(words, outside):
    line = words.format("float s[];")
    text = f"{line} {KERNEL} {{ s[1] = 3; a[0] = s[1]; }}" if outside else f"{KERNEL} {{ {line} s[1] = 3; a[0] = s[1]; }}"
    assert run_on_host(text, smem=64)[0] == 3


@needs_compiler
def test_dynamic_shared_memory_outside_of_functions_is_a_pointer():
    text = f"""
struct P {{ int x; }};
namespace n {{ extern __shared__ P s[]; }}
extern __shared__ int t[];
extern __shared__ int t[];
template <class T> __device__ T first(T *p) {{ return p[0]; }}
{KERNEL} {{
    if (!threadIdx.x) n::s->x = 2;
    __syncthreads(); atomicAdd(t, 1); __syncthreads();
    if (!threadIdx.x) {{ a[blockIdx.x] = first(t); a[2] = *reinterpret_cast<int *>(n::s); }} }}"""
    assert run_on_host(text, smem=64, grid=2, block=40).tolist()[:3] == [42, 42, 42]


@needs_compiler
@pytest.mark.parametrize("before", ["__device__ int n() { return 1'000; } __device__ char c() { return 'x'; }",
                                    '__device__ const char *text = R"({ " )";', "__device__ int n = 0x1'0'f;"])
def test_quotes_that_begin_no_text_hide_no_kernel(before):
    assert run_on_host(f"{before}\n__global__ void k(float *a) {{ a[0] = 1; }}")[0] == 1


@needs_compiler
def test_kernels_of_one_name_in_two_namespaces_keep_them_apart():
    text = """namespace a { __global__ void k(float *x) { *x = 1; } __global__ void l(float *x) { *x = 3; } }
namespace b { __global__ void k(float *x) { *x = 2; } }"""
    assert [run_on_host(text, name)[0] for name in ("a::k", "b::k", "l")] == [1, 2, 3]
    with pytest.raises(gg.InvalidArgumentError, match="a::k.*b::k"):
        run_on_host(text, "k")
    assert run_on_host(text + "__global__ void k(float *x) { *x = 4; }", "k")[0] == 4


@needs_compiler
def test_macros_may_be_called_like_names_in_our_header():
    names = ("A", "B", "T", "U", "at", "self", "compare", "was", "function", "current", "thread", "value")
    text = f"{KERNEL} {{ a[0] = {' + '.join(names)} + TWICE(21) + SET + __OWN; a[1] = atomicAdd(a, 1.0f); }}"
    options = [*(f"-D{name}=2" for name in names), "-DTWICE(x)=((x) * 2)", "-D", "SET", "-D__OWN=5", "-DSET2", "-USET2"]
    assert run_on_host(text, options=options)[0] == 2 * len(names) + 42 + 1 + 5 + 1


NUMBERS = {
    "__float_as_int(1.0f) == 0x3f800000": 1, "__int_as_float(0x40000000)": 2, "__uint_as_float(0x40000000u)": 2,
    "__float_as_uint(-0.0f) == 0x80000000u": 1, "__umul24(3u, 5u)": 15, "__umulhi(1u << 31, 8u)": 4, "__mulhi(-1, 1)": -1,
    "__fmul_rn(2, 3)": 6, "__fmaf_rn(2, 3, 4)": 10, "__frcp_rn(4)": 0.25, "__fsqrt_rn(9)": 3, "__dadd_rn(1, 2)": 3,
    "__float2int_rn(2.5f)": 2, "__float2int_rz(-2.5f)": -2, "__float2int_rd(-2.5f)": -3, "__double2int_ru(2.1)": 3,
    "__int2float_rn(7)": 7, "__double2float_rn(0.5)": 0.5, "__popcll(255ull)": 8, "__clzll(1)": 63, "__ffsll(8)": 4,
    "__brev(1u) == 0x80000000u": 1, "__brevll(1ull) == 1ull << 63": 1, "__saturatef(NAN)": 0, "__saturatef(2)": 1,
    "umin(1u, 2u) + umax(1u, 2u)": 3, "__ldcg(b) + __ldcv(b)": 6, "make_long2(1, 2).y + make_ulong4(1, 2, 3, 4).w": 6,
    "make_longlong3(1, 2, 3).z": 3, "uint3(dim3(1, 2)).y": 2, "clock64() > 0": 1, "clock() >= 0": 1, "norm3df(2, 3, 6)": 7,
    "rcbrtf(8)": 0.5, "__exp10f(2)": 100, "atomicAdd_block(a + 7, 1.0f)": 0,
}


@needs_compiler
def test_functions_of_cuda_give_what_they_give_there():
    lines = " ".join(f"a[{i}] = static_cast<float>({text});" for i, text in enumerate([*NUMBERS], 8))
    text = f"""__device__ __noinline__ float seven() {{ return 7; }}
struct P {{ float x; }};
__device__ float of(const __grid_constant__ P p) {{ return p.x; }}
{KERNEL} {{ const float b[] = {{3}}; a[0] = seven(); a[1] = of(P{{8}}); {lines} }}"""
    got = run_on_host(text, count=8 + len(NUMBERS))
    assert got[:2].tolist() == [7, 8]
    assert dict(zip(NUMBERS, got[8:].tolist())) == pytest.approx(NUMBERS)


@needs_compiler
def test_barriers_count_the_threads_that_say_so():
    text = f"""{KERNEL} {{ const int i = threadIdx.x;
    const int count = __syncthreads_count(i < 5), any = __syncthreads_or(i == 39), none = __syncthreads_or(i > 39);
    const int all = __syncthreads_and(i < 40), most = __syncthreads_and(i < 39);
    if (i == 7) {{ a[0] = count; a[1] = any; a[2] = none; a[3] = all; a[4] = most; }} }}"""
    assert run_on_host(text, block=40).tolist()[:5] == [5, 1, 0, 1, 0]


@needs_compiler
def test_a_thread_may_have_large_arrays_of_its_own():
    text = f"""{KERNEL} {{ volatile char mine[700000]; mine[0] = 1; mine[699999] = 2;
    __syncthreads(); a[threadIdx.x] = mine[0] + mine[699999]; }}"""
    assert run_on_host(text, block=8).tolist() == [3] * 8


@needs_compiler
def test_threads_that_end_early_do_not_hold_a_barrier():
    text = """extern "C" __global__ void some(int *x) {
    if (threadIdx.x >= 5) return;
    __syncthreads(); atomicAdd(x, 1); __syncthreads(); if (*x != 5) *x = -1000; }"""
    x = gg.zeros(1, np.int32, device="host")
    gg.Module(gg.compile(text, arch=ARCH), "host")["some"](x, grid=1, block=64)
    assert x.get()[0] == 5


@needs_compiler
def test_images_of_one_kernel_name_do_not_mix():
    modules = [gg.Module(gg.compile(f'extern "C" __global__ void f(int *x, {kind} y) {{ *x = (int)y + {i}; }}', arch=ARCH),
                         "host") for i, kind in enumerate(("int", "double", "signed char"))]
    for i, (module, size) in enumerate(zip(modules, (4, 8, 1))):
        x = gg.zeros(1, np.int32, device="host")
        assert module["f"].parameters[1][1] == size
        module["f"](x, 40, grid=1, block=1)
        assert x.get()[0] == 40 + i
    for i in range(50):  # files' numbers come again
        with gg.Module(gg.compile(SMALL % (i % 5), arch=ARCH), "host") as module:
            x = gg.zeros(1, np.int32, device="host")
            module["f"](x, grid=1, block=1)
            assert x.get()[0] == i % 5
