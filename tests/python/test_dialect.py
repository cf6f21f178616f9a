"""CUDA source on the host: the contents of cuda_dialect.h, and the search for kernels and shared memory in a source."""

import numpy as np
import pytest
from compilers import ARCH, SMALL, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _host_compiler, _nvcc_options

SOURCE = 'extern "C" __global__ void f(int *x, int y) { *x = y; }'


def test_each_compiler_gets_only_options_that_it_knows():
    options = ["-DX=", "-I", "one", "-std", "gnu++14", "-include", "x.h", "-G", "-O3", "-Xptxas", "-v", "-lineinfo"]
    assert _nvcc_options.for_nvrtc(options) == ["-DX=", "-Ione", "-std=c++14", "--pre-include=x.h", "-G", "-lineinfo"]
    assert _nvcc_options.for_cxx(options) == ["-DX=", "-Ione", "-include", "x.h", "-O3"]
    assert _nvcc_options.for_cxx(["-Wall", "--std=c++20", "-fopenmp"]) == ["-Wall", "-std=c++20", "-fopenmp"]


@needs_nvrtc
@pytest.mark.parametrize("options", [
    ["-g"], ["--debug"], ["-debug"], ["-pg"], ["--profile"], ["--optimize=3"], ["--optimize", "3"], ["-optimize", "3"],
    ["-objtemp"], ["--objdir-as-tempdir"], ["-use-local-env"], ["--use-local-env"], ["-Xnvlink", "--suppress-stack-size"],
    ["-Xnvlink=--verbose"], ["--nvlink-options", "--verbose"], ["--nvlink-options=--verbose"]], ids=" ".join)
def test_options_of_nvcc_for_other_programs_are_not_passed_to_nvrtc(options):
    assert gg.compile(SMALL % 1, arch="sm_90", options=_nvcc_options.for_nvrtc(options))


@needs_compiler
def test_options_of_nvcc_and_an_older_standard_work_on_the_host():
    options = ["-std=c++11", "-ftz=true", "-prec-div=false", "-fmad=false", "-res-usage", "--restrict", "-lineinfo"]
    image = gg.compile("__global__ void f(int *x) { *x = 9; }", arch=ARCH, options=options)
    assert image.format == "shared object"


@needs_compiler
def test_the_host_compiler_produces_a_shared_object():
    image = gg.compile(SOURCE, arch=ARCH)
    assert (image.format, image.arch) == ("shared object", ARCH)


@needs_compiler
def test_the_c_library_may_have_functions_that_are_also_those_of_cuda(tmp_path):
    # glibc declares sinpi and cospi since 2.41, rsqrt since 2.42, as C23 does.
    declared = "".join(f'extern "C" {type} {name}{suffix}({type}) noexcept;\n'
                       for name in ("sinpi", "cospi", "rsqrt") for type, suffix in (("double", ""), ("float", "f")))
    (tmp_path / "math.h").write_text("#include_next <math.h>\n#ifndef DECLARED\n#define DECLARED\n" + declared + "#endif\n")
    source = """
__global__ void f(double *x)
{
    x[0] = sinpi(0.5), x[1] = cospi(1.0), x[2] = rsqrt(4.0);
    x[3] = sinpif(1.5f), x[4] = cospif(0.5f), x[5] = rsqrtf(0.25f);
}
"""
    x = gg.zeros(6, np.float64, device="host")
    gg.Module(gg.compile(source, arch=ARCH, options=["-I", str(tmp_path)]), "host")["f"](x, grid=1, block=1)
    assert x.get().tolist() == [1, -1, 0.5, -1, 0, 2]


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
def test_dynamic_shared_memory_works_inside_and_outside_of_functions(declaration, outside):
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
def test_the_specifiers_of_dynamic_shared_memory_may_have_any_order(words, outside):
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
def test_a_quote_that_does_not_begin_a_literal_hides_no_kernel(before):
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
def test_functions_of_cuda_return_the_same_on_the_host():
    lines = " ".join(f"a[{i}] = static_cast<float>({text});" for i, text in enumerate([*NUMBERS], 8))
    text = f"""__device__ __noinline__ float seven() {{ return 7; }}
struct P {{ float x; }};
__device__ float of(const __grid_constant__ P p) {{ return p.x; }}
{KERNEL} {{ const float b[] = {{3}}; a[0] = seven(); a[1] = of(P{{8}}); {lines} }}"""
    got = run_on_host(text, count=8 + len(NUMBERS))
    assert got[:2].tolist() == [7, 8]
    assert dict(zip(NUMBERS, got[8:].tolist())) == pytest.approx(NUMBERS)


@needs_compiler
def test_barriers_return_the_count_of_threads_with_a_true_argument():
    text = f"""{KERNEL} {{ const int i = threadIdx.x;
    const int count = __syncthreads_count(i < 5), any = __syncthreads_or(i == 39), none = __syncthreads_or(i > 39);
    const int all = __syncthreads_and(i < 40), most = __syncthreads_and(i < 39);
    if (i == 7) {{ a[0] = count; a[1] = any; a[2] = none; a[3] = all; a[4] = most; }} }}"""
    assert run_on_host(text, block=40).tolist()[:5] == [5, 1, 0, 1, 0]


@needs_compiler
def test_a_thread_may_have_large_local_arrays():
    text = f"""{KERNEL} {{ volatile char mine[700000]; mine[0] = 1; mine[699999] = 2;
    __syncthreads(); a[threadIdx.x] = mine[0] + mine[699999]; }}"""
    assert run_on_host(text, block=8).tolist() == [3] * 8


@needs_compiler
def test_threads_that_end_early_do_not_block_a_barrier():
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
    for i in range(50):  # numbers of files are reused
        with gg.Module(gg.compile(SMALL % (i % 5), arch=ARCH), "host") as module:
            x = gg.zeros(1, np.int32, device="host")
            module["f"](x, grid=1, block=1)
            assert x.get()[0] == i % 5


# ---- names of other functions


LIBC = ("step advance conj read write close link wait kill sleep pause fork index time div remove sin abs printf malloc memcpy exit main "
        "environ isnan signgam stdin stderr EOF NULL alloca strdupa M_PI htobe64 rsqrt gg_list gg_host_thread").split()  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("linkage", ['extern "C"', ""], ids=["c", "c++"])
def test_kernels_may_have_the_names_of_libc_and_of_the_compiler(linkage):
    text = "".join(f"{linkage} __global__ void {name}(float *x, int n) {{ x[threadIdx.x] = n + {i}; }}\n" for i, name in enumerate(LIBC))
    module = gg.Module(gg.compile(text, arch=ARCH), "host")
    for i, name in enumerate(LIBC):
        x = gg.zeros(2, np.float32, device="host")
        module[name](x, 7, grid=1, block=2)
        assert (name, *x.get()) == (name, 7 + i, 7 + i)


@needs_compiler
def test_a_kernel_may_have_the_name_of_each_macro_of_the_headers():
    text = _host_compiler._preprocessed([], "", [], "-dM")[0].decode()
    macros = {name: value for name, value in _host_compiler.DEFINED.findall(text) if name[0] != "_" and "gg_host" not in value}
    assert len(macros) > 300
    source = "".join(f"/* one; */ __global__ void __launch_bounds__(2 * (8)) {name}(int *x, int n) {{ }}\n" for name in macros)
    assert _host_compiler.kernels(_host_compiler.preprocess(source, [])[0].decode()).keys() == macros.keys()


@needs_compiler
def test_kernels_may_call_the_functions_of_their_names():
    calls = {"exp": "exp(*x)", "rsqrt": "rsqrt(*x)", "max": "max(*x, 5.0f)"}
    text = "".join(f"__global__ void {name}(float *x, int n);\n__global__ void {name}(float *x, int n) {{ *x = {call}; }}\n"
                   for name, call in calls.items())
    module = gg.Module(gg.compile(text, arch=ARCH), "host")
    for name, wanted in (("exp", np.exp(4)), ("rsqrt", 0.5), ("max", 5)):
        x = gg.to_gpu(np.array([4], np.float32), device="host")
        module[name](x, 1, grid=1, block=1)
        assert (name, x.get()[0]) == (name, pytest.approx(wanted))


@needs_compiler
def test_an_expression_for_a_kernel_named_like_a_function_of_libc_is_the_kernel():
    text = "template <class T> __global__ void exit(T *x) { *x = 4; }\n__global__ void abort() { (void)&abort; }"
    image = gg.compile(text, arch=ARCH, names=["exit<int>", "abort"])
    x = gg.zeros(1, np.int32, device="host")
    module = gg.Module(image, "host")
    module["exit<int>"](x, grid=1, block=1)
    module["abort"](grid=1, block=1)
    assert x.get()[0] == 4


@needs_compiler
@pytest.mark.parametrize("name, header", [("threadIdx", ""), ("errno", "#include <errno.h>\n"), ("new", ""), ("and", "")])
def test_a_name_that_no_kernel_can_have_is_refused_by_name(name, header):
    with pytest.raises(gg.CompileError, match=f"no function or variable can be named {name}: a keyword, or a macro"):
        gg.compile(f"{header}__global__ void {name}(int *x) {{ *x = 1; }}", arch=ARCH)


@needs_compiler
def test_device_functions_and_variables_may_have_the_names_of_macros():
    text = """__constant__ int BUFSIZ[2] = {1, 2};
__device__ int EOF = 4;
__device__ int alloca(int a, int b) { return a + b; }
__device__ float3 rsqrt(float3 v) { return make_float3(rsqrtf(v.x), 0, 0); }
__global__ void f(int *x) { *x = alloca(BUFSIZ[1], EOF) + rsqrt(make_float3(0.25f, 0, 0)).x; }"""
    module = gg.Module(gg.compile(text, arch=ARCH), "host")
    x = gg.zeros(1, np.int32, device="host")
    module["f"](x, grid=1, block=1)
    assert x.get()[0] == 8
    assert module.get_global("BUFSIZ").nbytes == 8


@needs_compiler
def test_device_functions_and_variables_may_have_the_names_of_libc():
    text = """extern "C" {
#include <math.h>
__constant__ float timezone[2] = {1, 2};
__device__ float step(float x) { return x + timezone[1]; }
__device__ double conj(double x) { return -x; }
__device__ int wait(int *x) { return *x; }
__global__ void f(float *x, int n) { x[0] = step(x[0]); x[1] = (float)conj(x[1]); x[2] = (float)wait(&n) + floorf(0.5f); }
}"""
    module = gg.Module(gg.compile(text, arch=ARCH), "host")
    x = gg.to_gpu(np.array([1, 2, 3], np.float32), device="host")
    module["f"](x, 9, grid=1, block=1)
    assert list(x.get()) == [3, -2, 9]
    variable = module.get_global("timezone")
    assert variable.nbytes == 8


@needs_compiler
def test_variables_in_namespaces_are_found_by_the_name_of_their_symbol():
    module = gg.Module(gg.compile("namespace a { __device__ int x = 5; }\n__device__ int y = 6;\n", arch=ARCH), "host")
    assert [module.get_global(name).nbytes for name in ("_ZN1a1xE", "y")] == [4, 4]


@needs_compiler
def test_sources_that_extend_the_c_library_or_the_c_plus_plus_library_are_compiled_as_they_are():
    text = """#include <functional>
struct point { int x; };
namespace std { template <> struct hash<point> { int operator()(point p) const { return p.x + 1; } }; }
__global__ void f(int *x) { *x = std::hash<point>()(point{4}); }"""
    declared = """extern "C" double lgamma_r(double, int *);
__global__ void f(int *x) { int sign; lgamma_r(-0.5, &sign); *x = sign + 6; }"""
    for source in (text, declared):
        x = gg.zeros(1, np.int32, device="host")
        gg.Module(gg.compile(source, arch=ARCH), "host")["f"](x, grid=1, block=1)
        assert x.get()[0] == 5


@needs_compiler
def test_a_function_may_overload_one_of_cuda():
    text = """__device__ float max(float a, float b, float c) { return fmaxf(a, fmaxf(b, c)); }
__global__ void f(float *x) { *x = max(1.0f, 2.0f) + max(1.0f, 2.0f, 3.0f); }"""
    x = gg.zeros(1, np.float32, device="host")
    gg.Module(gg.compile(text, arch=ARCH), "host")["f"](x, grid=1, block=1)
    assert x.get()[0] == 5


@needs_compiler
def test_an_error_names_the_functions_as_the_source_does():
    with pytest.raises(gg.CompileError) as caught:
        gg.compile("__device__ int g(int); __device__ int rsqrt(int3);\n__global__ void f(int *x) { *x = g(*x, 2); }", arch=ARCH)
    assert "source.cu:2" in str(caught.value) and "gg_user" not in str(caught.value)
    assert str(caught.value).startswith("the host's C++ compiler: the source was not compiled")


@needs_compiler
def test_sine_and_cosine_together_have_every_form_of_cuda():
    text = """__global__ void f(double *x, double at) {
    double s, c;
    float a, b;
    sincos(at, &s, &c);
    x[0] = s, x[1] = c;
    sincos((float)at, &a, &b);
    x[2] = a, x[3] = b;
    sincospi(at, &s, &c);
    x[4] = s, x[5] = c;
    sincospif((float)at, &a, &b);
    x[6] = a, x[7] = b;
    x[8] = sinpi(at), x[9] = cospi(at), x[10] = sinpif((float)at), x[11] = cospif((float)at);
}"""
    kernel = gg.Module(gg.compile(text, arch=ARCH), "host")["f"]
    for at in (0.0, 0.25, -0.75, 2.5, 1e9 + 0.5, -7.0):
        x = gg.zeros(12, np.float64, device="host")
        kernel(x, at, grid=1, block=1)
        single = float(np.float32(at))
        turn, turn32 = (np.pi * (value % 2) for value in (at, single))
        expected = [np.sin(at), np.cos(at), np.sin(single), np.cos(single), np.sin(turn), np.cos(turn), np.sin(turn32), np.cos(turn32)]
        expected += [expected[4], expected[5], expected[6], expected[7]]
        np.testing.assert_allclose(x.get(), expected, atol=2e-6)


HALF = """#include <cuda_fp16.h>
__global__ void widen(const __half *x, float *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __half2float(x[i]);
}
__global__ void narrow(const double *x, half *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __double2half(x[i]);
}
__global__ void compute(const half *a, const half *b, half *out, half by)
{
    __shared__ half part[64];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    part[threadIdx.x] = a[i];
    const half x = part[threadIdx.x], y = __ldg(b + i);
    out[i] = x + y; out[n + i] = __hsub(x, y); out[2 * n + i] = x * y; out[3 * n + i] = __hdiv(x, y);
    out[4 * n + i] = hsqrt(__habs(x)); out[5 * n + i] = __hfma(x, y, by); out[6 * n + i] = x < y ? -x : x;
    half2 pair = __halves2half2(x, y);
    pair += __float2half2_rn(1);
    out[7 * n + i] = __low2half(__lowhigh2highlow(__hmul2(pair, pair)));
}
"""


@needs_compiler
def test_numbers_of_half_precision_have_the_bits_of_numpys():
    module = gg.Module(gg.compile(HALF, arch=ARCH), "host")
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = gg.empty(1 << 16, np.float32, device="host")
    module["widen"](gg.to_gpu(every, device="host"), wide, grid=1 << 10, block=64)
    np.testing.assert_array_equal(wide.get(), every.astype(np.float32))

    ordered = np.sort(every[np.isfinite(every)].astype(np.float64))
    between = (ordered[1:] + ordered[:-1]) / 2  # where a number is as near to the one as to the other
    given = np.concatenate([ordered, between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf),
                            [np.inf, -np.inf, 65520, 65519.9, -65520, 1e300, 1e-300, -1e-300]])
    given = np.append(given, np.zeros(-len(given) % 64))
    narrow = gg.empty(given.size, np.float16, device="host")
    module["narrow"](gg.to_gpu(given, device="host"), narrow, grid=given.size // 64, block=64)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow.get().view(np.uint16), given.astype(np.float16).view(np.uint16))

    random = np.random.default_rng(4)
    a, b = (random.permutation(every[np.isfinite(every)])[:1 << 14] for _ in range(2))
    out, by = gg.empty((8, a.size), np.float16, device="host"), np.float16(0.333)
    module["compute"](gg.to_gpu(a, device="host"), gg.to_gpu(b, device="host"), out, by, grid=a.size // 64, block=64)
    with np.errstate(all="ignore"):
        fused = (a.astype(np.float64) * b + np.float64(by)).astype(np.float16)
        expected = [a + b, a - b, a * b, a / b, np.sqrt(abs(a)), fused, np.where(a < b, -a, a), (b + np.float16(1)) ** 2]
    np.testing.assert_array_equal(out.get(), expected)


@needs_compiler
def test_the_complex_numbers_of_cuda_compute_as_numpys_do():
    source = "#include <cuComplex.h>\n" + "".join(f"""
__global__ void of_{real}({kind} *x, {kind} y, {real} *size)
{{
    x[1] = cuCadd{f}(x[0], y); x[2] = cuCsub{f}(x[0], y); x[3] = cuCmul{f}(x[0], y); x[4] = cuCdiv{f}(x[0], y);
    x[5] = cuCfma{f}(x[0], y, cuConj{f}(y)); x[6] = make_{kind}(cuCimag{f}(y), cuCreal{f}(y)); *size = cuCabs{f}(y);
}}""" for kind, real, f in (("cuFloatComplex", "float", "f"), ("cuDoubleComplex", "double", "")))
    module = gg.Module(gg.compile(source, arch=ARCH), "host")
    for real, dtype in (("float", np.complex64), ("double", np.complex128)):
        a, b = np.asarray(1.5 - 2j, dtype)[()], np.asarray(-0.75 + 1j, dtype)[()]
        x, size = gg.to_gpu(np.full(7, a), device="host"), gg.zeros(1, b.real.dtype, device="host")
        module[f"of_{real}"](x, gg.RawArgument(b.tobytes()), size, grid=1, block=1)
        np.testing.assert_allclose(x.get(), [a, a + b, a - b, a * b, a / b, a * b + b.conj(), b.imag + 1j * b.real], rtol=1e-6)
        assert size.get()[0] == 1.25
