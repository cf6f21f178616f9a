"""gpuglue.compat.pycuda.compiler: nvcc's options and targets, without nvcc."""

import pathlib

import numpy as np
import pytest
from kernels import needs_compiler, runs_code

from gpuglue import _rtc
from gpuglue.compat.pycuda import _linking, compiler, gpuarray, tools
from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda.compiler import DynamicModule, DynamicSourceModule, SourceModule

SOURCE = "__global__ void f(int *x) { *x = 9; }"


@pytest.fixture(autouse=True)
def context(device, tmp_path, monkeypatch):
    if device.backend == "ze":
        pytest.skip("Level Zero has no compiler for CUDA C++")
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path / "cache"))
    needs_compiler(device)
    cuda.init()
    context = tools.make_default_context()
    yield context
    context.pop()


def answer(device, source, **kwargs):
    """What the kernel f writes; None if code cannot run, so that only the compilation is tested."""
    module = SourceModule(source, **kwargs)
    if not runs_code(device):
        return None
    out = gpuarray.zeros(1, np.int32)
    module.get_function("f")(out, block=(1, 1, 1))
    return out.get()[0]


def test_a_source_is_anything_whose_text_is_the_source(device):
    class Generated:  # as a Module of the package cgen
        def __str__(self):
            return SOURCE

    assert answer(device, Generated()) in (9, None)
    assert answer(device, SOURCE.encode()) in (9, None)
    assert answer(device, b'extern "C" ' + SOURCE.encode(), no_extern_c=True) in (9, None)


def test_options_of_nvcc_are_translated(device):
    options = ["-DVALUE=9", "-O3", "-use_fast_math", "--ptxas-options=-v", "-std=c++17"]
    assert answer(device, "__global__ void f(int *x) { *x = VALUE; }", options=options) in (9, None)


IGNORED = [
    ["-std=c++11"], ["--std=c++14"], ["-std", "c++14"], ["-lineinfo"], ["--generate-line-info"],
    ["--expt-relaxed-constexpr"], ["--expt-extended-lambda"], ["--default-stream", "per-thread"],
    ["--default-stream=legacy"], ["-res-usage"], ["-ftz=true"], ["-prec-div=false"], ["-prec-sqrt=false"], ["-fmad=false"],
    ["--restrict"], ["--extra-device-vectorization"], ["-maxrregcount", "32"], ["-Xptxas", "-v"], ["-Xcompiler", "-fPIC"],
    ["-Wno-deprecated-gpu-targets"], ["-Werror", "all-warnings"], ["-m64"], ["-lcudart"], ["-include", "math.h"],
    ["-gencode", "arch=compute_70,code=sm_70"]]


# In three compilations, one for each form of -std. A definition after each option shows that none took the next word with it.
@pytest.mark.parametrize("first", range(3))
def test_options_without_an_equivalent_are_ignored(device, first):
    chosen = IGNORED[first::3]
    options = [word for at, option in enumerate(chosen) for word in (*option, f"-DVALUE{at}=1")]
    total = " + ".join(f"VALUE{at}" for at in range(len(chosen)))
    assert answer(device, "__global__ void f(int *x) { *x = %s; }" % total, options=options) in (len(chosen), None)


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_types_and_constants_that_nvcc_declares_need_no_header(device, no_extern_c):
    body = ("uint a = 1; ushort b = 2; ulong c = 3; int8_t d = 3; int16_t e = 0; int32_t g = 0; double big = INFINITY; "
            "*x = a + b + c + d + e + g + (M_PI > 3 && INT_MAX > 3 && big > 3 && NAN != NAN) - 1;")
    source = ('extern "C" ' if no_extern_c else "") + "__global__ void f(int *x) { %s }" % body
    assert answer(device, source, no_extern_c=no_extern_c) in (9, None)


def test_a_power_of_two_types_is_of_type_double(device):
    body = ("float f = 3; double d = 2; int i = 2; unsigned u = 2; long k = 2; double one[sizeof(pow(f, d)) == 8]; one[0] = 0; "
            "*x = (pow(f, d) + pow(3.0, f - 1) + pow(i + 1, 2) + pow(f, k) + pow(3.0, u) + pow(f, f - 1) + pow(f, 2)) / 7 + one[0] + .5;")
    assert answer(device, "__global__ void f(int *x) { %s }" % body) in (9, None)


COMPLEX = """#include <pycuda-complex.hpp>
__device__ void use(pycuda::complex<float> *x, pycuda::complex<double> *y)
{
    __shared__ pycuda::complex<float> part[2];
    part[0] = 3; part[0] += *y; part[1] = pycuda::pow(part[0], 2) + pycuda::pow(2.0f, part[0]); *x = part[1];
    *y = *x * 2 - 1.5 / *y; *y += conj(*x); y->real(abs(*y) + norm(*x)); y->imag(arg(-*y) + pycuda::polar(2.0).real());
    CALLS
}
__global__ void f(int *x)
{
    pycuda::complex<double> z(3, -4);
    z *= pycuda::complex<float>(0, 1);
    *x = z == pycuda::complex<double>(4, 3) && z != 4 && sizeof z == 16 ? (int)(abs(z) + z.real()) : 0;
}
"""


@pytest.mark.parametrize("no_extern_c", [True, False])
def test_programs_include_the_header_of_complex_numbers(device, no_extern_c):
    names = "exp log log10 sqrt sin cos tan sinh cosh tanh asin acos atan".split()
    source = COMPLEX.replace("CALLS", " ".join(f"*x = pycuda::{name}(*x); *y = {name}(*y);" for name in names))
    source = source.replace("__global__", 'extern "C" __global__' if no_extern_c else "__global__")
    assert answer(device, source, no_extern_c=no_extern_c) in (9, None)
    with pytest.raises(cuda.CompileError, match=r"kernel\.cu[:(]2\b"):
        compiler.compile("#include <pycuda-complex.hpp>\nnonsense here;")


def test_a_program_may_declare_what_nvcc_does(device):
    source = "#define M_PI 3.0\ntypedef unsigned int uint;\ntypedef long long int64_t;\n__global__ void f(int *x) { uint a = 9; *x = a; }"
    assert answer(device, source) in (9, None)
    assert answer(device, source.replace("long long", "long")) in (9, None)


@pytest.mark.parametrize("no_extern_c", [False, True])
def test_the_compilers_messages_count_the_lines_of_the_source(no_extern_c):
    with pytest.raises(cuda.CompileError, match=r"kernel\.cu.?3\b"):
        SourceModule("\n\nnonsense here;", no_extern_c=no_extern_c)


def test_an_empty_definition_stays_empty(device):
    assert answer(device, "__global__ void f(int *x) { *x = VALUE 9; }", options=["-DVALUE="]) in (9, None)
    assert answer(device, "__global__ void f(int *x) { *x = VALUE; }", options=["-D", "VALUE=9"]) in (9, None)


def test_an_architecture_of_another_vendor_is_ignored(device):
    if device.arch.startswith("sm_"):
        pytest.skip("sm_70 is an architecture of this vendor")
    for given in ({"arch": "sm_70"}, {"arch": "compute_70", "code": "sm_70"}, {"options": ["-arch=sm_70"]}):
        assert answer(device, SOURCE, **given) in (9, None)


def test_an_architecture_of_this_vendor_is_found_in_every_option(device):
    if not device.arch.startswith("sm_"):
        pytest.skip(f"{device} has no architecture that nvcc knows")
    newest = "sm_100"
    assert device.arch != newest
    for given in ({"arch": newest}, {"options": [f"-arch={newest}"]}, {"options": ["-arch", newest]},
                  {"arch": "compute_100", "code": newest}, {"options": ["-arch=compute_100", f"-code={newest}"]}):
        assert compiler.compile(SOURCE, **given).arch == newest
    assert compiler.compile(SOURCE).arch == compiler.compile(SOURCE, options=["-arch=native"]).arch == device.arch


def test_ptx_is_generated_on_request(device):
    if not device.arch.startswith("sm_"):
        with pytest.raises(cuda.LogicError, match="PTX"):
            compiler.compile(SOURCE, target="ptx")
        return
    for given in ({}, {"arch": device.arch}, {"arch": device.arch.replace("sm_", "compute_")}):
        assert compiler.compile(SOURCE, target="ptx", **given).format == "ptx"


def test_targets_that_need_nvcc_are_refused():
    with pytest.raises(cuda.LogicError, match="'fatbin'"):
        compiler.compile(SOURCE, target="fatbin")
    with pytest.raises(TypeError, match="list of str"):
        compiler.compile(SOURCE, options="-DX=1")


def test_options_are_read_from_the_environment(run_python):
    code = "from gpuglue.compat.pycuda import compiler; print(compiler.DEFAULT_NVCC_FLAGS)"
    result = run_python(code, PYCUDA_DEFAULT_NVCC_FLAGS="-O3 -DX=1")
    assert result.stdout.strip() == "['-O3', '-DX=1']", result.stderr


CURAND = r"""
#include <curand_kernel.h>
extern "C" __global__ void draw(float *out)
{
    curandStatePhilox4_32_10_t state;
    curand_init(42, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand_uniform(&state);
}
"""


def test_curand_kernel_h_is_found_where_the_toolkit_has_it(device):
    """The packages nvidia-curand and nvidia-cuda-cccl, beside nvidia-cuda-nvrtc."""
    if device.backend != "cuda":
        with pytest.raises(cuda.CompileError, match=r"CURAND is on cuda only.*: else pass an array that pycuda.curandom has filled"):
            SourceModule(CURAND, no_extern_c=True)
        return
    directories = _rtc.nvrtc.include_directories()
    missing = [name for name in ("curand_kernel.h", "nv/target") if not any((pathlib.Path(one) / name).exists() for one in directories)]
    if missing:
        with pytest.raises(cuda.CompileError, match=r"with its headers \(nvidia-curand and nvidia-cuda-cccl\)"):
            SourceModule(CURAND, no_extern_c=True)
        pytest.skip(f"{missing} are not among the toolkit's headers: pip install nvidia-curand nvidia-cuda-cccl")
    draw = SourceModule(CURAND, no_extern_c=True).get_function("draw")
    out = gpuarray.zeros(32, np.float32)
    if runs_code(device):
        draw(out, block=(32, 1, 1))
        found = out.get()
        assert (0 < found).all() and (found <= 1).all() and len(set(found)) > 16


# ---- debugging


def test_sources_are_compiled_for_a_debugger_on_request(device):
    assert b"debug_info" not in bytes(compiler.compile(SOURCE))
    cuda.set_debugging()
    try:
        assert b"debug_info" in bytes(compiler.compile(SOURCE)) and answer(device, SOURCE) in (9, None)
    finally:
        cuda.set_debugging(False)
    assert b"debug_info" not in bytes(compiler.compile(SOURCE))


PROGRAM = """
import sys
import pycuda.autoinit
from pycuda.compiler import compile
print(__name__, sys.argv[1:], b"debug_info" in bytes(compile("__global__ void f(int *x) { *x = 9; }")))
"""
AGAIN = """
import runpy, sys
import gpuglue.compat
gpuglue.compat.install("pycuda")
sys.argv = ["", *sys.argv[1:]]
runpy.run_module("pycuda.debug", run_name="__main__")
"""


@pytest.mark.parametrize("code", [None, AGAIN], ids=["gpuglue.compat.pycuda.debug", "pycuda.debug"])
def test_a_program_runs_with_kernels_for_a_debugger(run_python, tmp_path, code):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    options = ("-m", "gpuglue.compat.pycuda.debug") if code is None else ("-c", code)
    result = run_python(None, arguments=(*options, str(script), "-v", "two"))
    assert (result.returncode, result.stdout) == (0, "__main__ ['-v', 'two'] True\n"), result.stderr


@pytest.mark.parametrize("arguments, status, message", [
    ((), 2, "usage: python -m gpuglue.compat.pycuda.debug SCRIPT"),
    (("nowhere.py",), 1, "there is no file 'nowhere.py': give the path of a Python program")])
def test_a_debugged_program_that_is_not_there_is_reported(run_python, arguments, status, message):
    result = run_python(None, arguments=("-m", "gpuglue.compat.pycuda.debug", *arguments))
    assert result.returncode == status and message in result.stderr


# ---- linking


ANSWER, ASKS = "__device__ int answer() { return 9; }", "__device__ int answer();\n__global__ void f(int *x) { *x = answer(); }"


@pytest.fixture
def linker(device):
    if device.arch.startswith("sm_"):
        try:
            _linking._library()
        except cuda.LogicError as error:
            pytest.skip(str(error))
    return _linking


def asked(device, module):
    """What the kernel f writes, where code runs."""
    function, out = module.get_function("f"), gpuarray.zeros(1, np.int32)
    if runs_code(device):
        function(out, block=(1, 1, 1))
        assert out.get()[0] == 9


def test_a_module_is_linked_from_several_sources(device, linker):
    module = DynamicModule()
    with pytest.raises(cuda.LogicError, match="call link.. first"):
        module.get_function("f")
    assert module.add_source(ASKS).add_source("__device__ int answer() { return VALUE; }", ["-DVALUE=9"], "answer") is module
    assert module.link() is module
    asked(device, module)


def test_sources_that_do_not_fit_are_rejected_with_the_log(device, linker):
    with pytest.raises(cuda.CompileError) as caught:
        DynamicModule().add_source("no C++").link()
    assert "error" in caught.value.stderr
    if device.arch.startswith("sm_"):
        with pytest.raises(cuda.CompileError, match="was not linked: nvJitLink") as caught:
            DynamicModule().add_source(ASKS, name="asks.cu").link()
        assert "'answer' in 'asks.cu'" in caught.value.stderr


def test_compiled_code_is_linked_where_the_device_loads_it(device, linker, tmp_path):
    if not device.arch.startswith("sm_"):
        with pytest.raises(cuda.LogicError, match="loads no linked code"):
            DynamicModule().add_source(ASKS).add_data(b"code", cuda.jit_input_type.OBJECT).link()
        with pytest.raises(cuda.LogicError, match="call add_source.. first"):
            DynamicModule().link()
        return
    (tmp_path / "answer.cubin").write_bytes(compiler.compile(ANSWER, options=["-rdc=true"]))
    ptx = compiler.compile(ASKS, options=["-rdc=true"], target="ptx")
    module = DynamicModule().add_data(ptx, cuda.jit_input_type.PTX, "asks")
    asked(device, module.add_file(tmp_path / "answer.cubin", cuda.jit_input_type.CUBIN).link())


def test_a_source_whose_kernels_launch_kernels_is_a_module(device, linker):
    if device.arch.startswith("sm_"):
        try:
            linker.static_library("cudadevrt")
        except cuda.LogicError as error:
            pytest.skip(str(error))
        source = "__global__ void child(int *x) { *x = 9; }\n__global__ void f(int *x) { child<<<1, 1>>>(x); }"
    else:
        source = SOURCE
    asked(device, DynamicSourceModule(source, options=["-O3", "-rdc=true", "-lcudadevrt"]))


def test_what_linking_needs_is_named_where_it_is_not_found(device, monkeypatch, tmp_path):
    _linking._library.cache_clear()
    monkeypatch.setattr(_linking, "_candidates", lambda: [])
    with pytest.raises(cuda.LogicError, match="install the package nvidia-nvjitlink, or compile all sources in one"):
        _linking.Linker("sm_90")
    with pytest.raises(cuda.LogicError, match="libcudadevrt.a was not found: expected it in cuda_libdir="):
        _linking.static_library("cudadevrt", str(tmp_path))
