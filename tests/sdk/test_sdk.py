"""The C interface of the installed package: headers, gpuglue-config, pkg-config, CMake, and extensions built with
plain C, pybind11, nanobind and SWIG, which accept arrays of several libraries.

Needs a C++ compiler, pybind11, nanobind and SWIG in this environment. The extensions run on the backend that
GPUGLUE_BACKEND names, else on host."""

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import gpuglue as gg

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "extensions"
BENCH = Path(__file__).resolve().parents[2] / "bench"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
os.environ.setdefault("GPUGLUE_BACKEND", "host")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def config(*options):
    return run(sys.executable, "-m", "gpuglue._config", *options).split()


def package_of(name):
    found = importlib.util.find_spec(name)
    if not found:
        pytest.skip(f"{name} is not installed here")
    return Path(found.origin).parent


WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def flags():
    return ["-fPIC", "-shared", "-O1", f"-I{sysconfig.get_paths()['include']}", *config("--cflags")]


def build_c(out):
    pedantic = [*WARNINGS, "-std=c11", "-Wpedantic", "-DPy_LIMITED_API=0x030b0000"]
    run("cc", *pedantic, EXAMPLES / "zero_c.c", *flags(), "-o", out / "zero_c.abi3.so")


def build_cpp(out):
    run("c++", *WARNINGS, "-std=c++17", EXAMPLES / "zero_cpp.cpp", *flags(), "-o", out / f"zero_cpp{SUFFIX}")


def build_pybind11(out):
    include = package_of("pybind11") / "include"
    name = out / f"zero_pybind11{SUFFIX}"
    visible = ["-std=c++17", "-fvisibility=hidden", f"-isystem{include}"]
    run("c++", *WARNINGS, EXAMPLES / "zero_pybind11.cpp", *visible, *flags(), "-o", name)


def build_nanobind(out):
    directory = package_of("nanobind")
    sources = [EXAMPLES / "zero_nanobind.cpp", directory / "src" / "nb_combined.cpp"]
    includes = [f"-isystem{directory / part}" for part in ("include", "ext/robin_map/include")]
    options = ["-std=c++17", "-fvisibility=hidden", "-fno-strict-aliasing", "-DNB_COMPACT_ASSERTIONS", *includes]
    run("c++", *sources, *options, *flags(), "-o", out / f"zero_nanobind{SUFFIX}")


def build_swig(out):
    beside = Path(sys.executable).parent / "swig"
    swig = str(beside) if beside.exists() else shutil.which("swig")
    if not swig:
        pytest.skip("there is no swig")
    run(swig, "-python", "-o", out / "zero_swig_wrap.c", "-outdir", out, EXAMPLES / "zero_swig.i")
    run("cc", out / "zero_swig_wrap.c", f"-I{EXAMPLES}", *flags(), "-o", out / f"_zero_swig{SUFFIX}")


BUILDERS = {
    "zero_c": build_c,
    "zero_cpp": build_cpp,
    "zero_pybind11": build_pybind11,
    "zero_nanobind": build_nanobind,
    "zero_swig": build_swig,
}


@pytest.fixture(scope="session", params=BUILDERS)
def zero(request, tmp_path_factory):
    """The function of an extension: zero(array) → (address, shape, code, bits); SWIG returns only a part."""
    out = tmp_path_factory.mktemp(request.param)
    BUILDERS[request.param](out)
    sys.path.insert(0, str(out))
    yield importlib.import_module(request.param).zero
    sys.path.remove(str(out))


@pytest.fixture(scope="session")
def device():
    return gg.Device(os.environ["GPUGLUE_BACKEND"].split(",")[0] + ":0")


# ---- arrays of other libraries -----------------------------------------------------------------------------------


class Dressed:
    """A GPUArray that has one protocol only."""

    def __init__(self, array, *names):
        for name in names:
            setattr(self, name, getattr(array, name))


def torch_array(array):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    return torch.from_dlpack(array)


def cupy_array(array):
    cupy = pytest.importorskip("cupy", exc_type=ImportError)
    return cupy.from_dlpack(array)


def numpy_array(array):
    if not hasattr(array, "__array_interface__"):
        pytest.skip(f"the host cannot access the memory of {array.device}")
    return np.asarray(array)


def by_cuda_interface(array):
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip(f"{array.device} has no CUDA Array Interface")
    return Dressed(array, "__cuda_array_interface__")


DRESSES = {
    "gpuglue": lambda array: array,
    "DLPack": lambda array: Dressed(array, "__dlpack__", "__dlpack_device__"),
    "CUDA Array Interface": by_cuda_interface,
    "ptr": lambda array: Dressed(array, "ptr", "shape", "dtype"),
    "numpy": numpy_array,
    "torch": torch_array,
    "cupy": cupy_array,
}


@pytest.mark.parametrize("dress", DRESSES)
def test_arrays_of_every_library_are_accepted(zero, device, dress):
    with device:
        array = gg.arange(6, dtype="i4", device=device).reshape(2, 3)
        result = zero(DRESSES[dress](array))
        assert result[0] == array.ptr and tuple(result[-2:]) == (0, 32)
        assert len(result) == 3 or result[1] == (2, 3)
        gg.synchronize(device)
        assert not array.get().any()


def test_a_view_is_imported_in_place(zero, device):
    array = gg.arange(6, dtype="f8", device=device)
    assert zero(array[2:4])[0] == array.ptr + 16
    assert array.tolist() == [0, 1, 0, 0, 4, 5]


@pytest.mark.parametrize("made, match", [
    (lambda device: gg.zeros((4, 4), device=device)[::2], "C order"),
    (lambda device: gg.zeros((4, 4), device=device).T, "C order"),
    (lambda device: gg.asarray(np.broadcast_to(np.zeros(1), 4), device="host:0"), "read-only"),
])  # fmt: skip
def test_an_array_that_does_not_match_the_request_is_a_value_error(zero, device, made, match):
    with pytest.raises(ValueError, match=match):
        zero(made(device))


@pytest.mark.parametrize("odd", [3, "text", None, object(), [1, 2, 3], (1.5,), 2.5, np.float32(3), np.int64(3)])
def test_an_object_that_is_not_an_array_is_a_type_error(zero, device, odd):
    with pytest.raises(TypeError):
        zero(odd)


def test_work_of_the_extension_is_a_use_of_the_array(zero, device):
    stream = gg.Stream(device, nonblocking=True)
    with stream:
        array = gg.full(1 << 20, 7, "u1", device=device)
        zero(array)
    assert not array.get().any()  # get() uses another stream, which waits
    stream.close()


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_cpp_headers_compile_without_warnings(compiler, standard, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    (tmp_path / "a.cpp").write_text("#include <gpuglue/python.hpp>\n#include <gpuglue/gpuglue.hpp>\n"
                                    "template double *gg::array_view::data<double>() const;\n"
                                    "template class gg::device_span<const float>;\n")
    options = [*WARNINGS, "-Wpedantic", "-Wconversion", f"-std={standard}", "-c", "-o", tmp_path / "a.o"]
    run(compiler, tmp_path / "a.cpp", *options, f"-isystem{sysconfig.get_paths()['include']}", *config("--cflags"))


# ---- programs and build systems ----------------------------------------------------------------------------


def check_program(program):
    output = run(program, f"{os.environ['GPUGLUE_BACKEND'].split(',')[0]}:0")
    assert output.startswith("there and back on ")


def test_a_program_is_built_with_gpuglue_config(tmp_path):
    run("cc", "-std=c11", *WARNINGS, EXAMPLES / "program.c", *config("--cflags", "--libs"), "-o", tmp_path / "program")
    check_program(tmp_path / "program")


def test_the_benchmark_of_many_streams_is_built_and_its_rows_make_a_table(tmp_path):
    program, figures = tmp_path / "scale", tmp_path / "scale.json"
    run("cc", "-std=c11", "-D_GNU_SOURCE", *WARNINGS, *BENCH.glob("scale*.c"), *config("--cflags", "--libs"), "-lpthread", "-o", program)
    run(program, 300, "streams", figures)
    sys.path.insert(0, str(BENCH))
    import report
    rows = json.loads(figures.read_text())
    table = report.scale(rows)
    assert all(f"| {row} |" in table for row in rows)
    assert {"1000 streams, own blocks", "1000 streams, each in use", "1000 streams: a record and a query"} <= set(rows)
    assert all(found["result"] in ("ok", "missed", "too noisy to say") for row, found in rows.items() if ":" not in row)


def test_a_program_is_built_with_pkg_config(tmp_path):
    if not shutil.which("pkg-config"):
        pytest.skip("there is no pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": config("--pkgconfigdir")[0]}
    options = run("pkg-config", "--cflags", "--libs", "gpuglue", env=environment).split()
    run("cc", EXAMPLES / "program.c", *options, "-o", tmp_path / "program")
    check_program(tmp_path / "program")


def test_a_program_is_built_with_cmake(tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake")
    run("cmake", "-S", EXAMPLES, "-B", tmp_path, f"-Dgpuglue_DIR={config('--cmakedir')[0]}")
    run("cmake", "--build", tmp_path)
    check_program(tmp_path / "program")


def test_cmake_refuses_another_version(tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(x C)\nfind_package(gpuglue 99.0 REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-Dgpuglue_DIR={config('--cmakedir')[0]}"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode and "99.0" in done.stderr


def test_gpuglue_config_names_directories_that_exist():
    include, library, package = config("--includedir"), config("--libdir"), config("--cmakedir")
    assert (Path(include[0]) / "gpuglue" / "python.h").exists() and include[0] == gg.get_include()
    assert (Path(library[0]) / "libgpuglue.so").exists() and (Path(package[0]) / "gpuglueConfig.cmake").exists()
    assert config("--version") == [gg.__version__]


def test_ctypes_takes_arrays(device):
    specification = importlib.util.spec_from_file_location("use_ctypes", EXAMPLES / "use_ctypes.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert module.main(f"{device.backend}:{device.ordinal}").tolist() == [0, 0, 0, 0, 4, 5, 6, 7]


# ---- the table ----------------------------------------------------------------------------------------------


def test_the_capsule_has_the_name_by_which_it_is_imported():
    assert 'object "gpuglue._core._C_API"' in repr(gg._core._C_API)
