"""gpuglue.compat.pycuda.compiler: nvcc's options and targets, where nvcc is not."""

import numpy as np
import pytest
from kernels import needs_compiler, runs_code

from gpuglue.compat.pycuda import compiler, gpuarray, tools
from gpuglue.compat.pycuda import driver as cuda
from gpuglue.compat.pycuda.compiler import SourceModule

SOURCE = "__global__ void f(int *x) { *x = 9; }"


@pytest.fixture(autouse=True)
def context(device, tmp_path, monkeypatch):
    if device.backend == "ze":
        pytest.skip("the compatibility module is for cuda, hip and host")
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path / "cache"))
    needs_compiler(device)
    cuda.init()
    context = tools.make_default_context()
    yield context
    context.pop()


def answer(device, source, **kwargs):
    """What the kernel f writes; where nothing runs, that it was compiled has to do."""
    module = SourceModule(source, **kwargs)
    if not runs_code(device):
        return None
    out = gpuarray.zeros(1, np.int32)
    module.get_function("f")(out, block=(1, 1, 1))
    return out.get()[0]


def test_options_of_nvcc_are_understood(device):
    options = ["-DVALUE=9", "-O3", "-use_fast_math", "--ptxas-options=-v", "-std=c++17"]
    assert answer(device, "__global__ void f(int *x) { *x = VALUE; }", options=options) in (9, None)


@pytest.mark.parametrize("options", [
    ["-std=c++11"], ["--std=c++14"], ["-std", "c++14"], ["-lineinfo"], ["--generate-line-info"],
    ["--expt-relaxed-constexpr"], ["--expt-extended-lambda"], ["--default-stream", "per-thread"],
    ["--default-stream=legacy"], ["-res-usage"], ["-ftz=true"], ["-prec-div=false"], ["-prec-sqrt=false"], ["-fmad=false"],
    ["--restrict"], ["--extra-device-vectorization"], ["-maxrregcount", "32"], ["-Xptxas", "-v"], ["-Xcompiler", "-fPIC"],
    ["-Wno-deprecated-gpu-targets"], ["-Werror", "all-warnings"], ["-m64"], ["-lcudart"], ["-include", "math.h"],
    ["-gencode", "arch=compute_70,code=sm_70"]], ids=" ".join)
def test_options_that_mean_nothing_here_do_no_harm(device, options):
    assert answer(device, SOURCE, options=options) in (9, None)


def test_an_empty_definition_stays_empty(device):
    assert answer(device, "__global__ void f(int *x) { *x = VALUE 9; }", options=["-DVALUE="]) in (9, None)
    assert answer(device, "__global__ void f(int *x) { *x = VALUE; }", options=["-D", "VALUE=9"]) in (9, None)


def test_an_architecture_of_another_vendor_is_not_taken(device):
    if device.arch.startswith("sm_"):
        pytest.skip("sm_70 is this vendor's")
    for given in ({"arch": "sm_70"}, {"arch": "compute_70", "code": "sm_70"}, {"options": ["-arch=sm_70"]}):
        assert answer(device, SOURCE, **given) in (9, None)


def test_an_architecture_of_this_vendor_is_taken_from_all_places(device):
    if not device.arch.startswith("sm_"):
        pytest.skip(f"{device} has no architecture of nvcc's")
    newest = "sm_100"
    assert device.arch != newest
    for given in ({"arch": newest}, {"options": [f"-arch={newest}"]}, {"options": ["-arch", newest]},
                  {"arch": "compute_100", "code": newest}, {"options": ["-arch=compute_100", f"-code={newest}"]}):
        assert compiler.compile(SOURCE, **given).arch == newest
    assert compiler.compile(SOURCE).arch == compiler.compile(SOURCE, options=["-arch=native"]).arch == device.arch


def test_ptx_is_made_where_it_is_asked_for(device):
    if not device.arch.startswith("sm_"):
        with pytest.raises(cuda.LogicError, match="PTX"):
            compiler.compile(SOURCE, target="ptx")
        return
    for given in ({}, {"arch": device.arch}, {"arch": device.arch.replace("sm_", "compute_")}):
        assert compiler.compile(SOURCE, target="ptx", **given).format == "ptx"


def test_targets_that_take_nvcc_are_refused():
    with pytest.raises(cuda.LogicError, match="'fatbin'"):
        compiler.compile(SOURCE, target="fatbin")
    with pytest.raises(TypeError, match="list of str"):
        compiler.compile(SOURCE, options="-DX=1")


def test_options_are_taken_from_the_environment(run_python):
    code = "from gpuglue.compat.pycuda import compiler; print(compiler.DEFAULT_NVCC_FLAGS)"
    result = run_python(code, PYCUDA_DEFAULT_NVCC_FLAGS="-O3 -DX=1")
    assert result.stdout.strip() == "['-O3', '-DX=1']", result.stderr
