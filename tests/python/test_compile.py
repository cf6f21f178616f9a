"""compile(): source to images, for devices that need not exist; the cache on disk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compilers import ARCH, SMALL, entries, needs_compiler, needs_nvrtc, only_once, own_cache  # noqa: F401
from conftest import until
from kernels import runs_code

import gpuglue as gg
from gpuglue import _cache, _compile, _host_compiler, _rtc

SOURCE = r"""
#include <stdio.h>
#include <stdint.h>
namespace deep { __global__ void inner(int *x) { *x = 7; } }
template <class T> __global__ void add(T *x, T y) { x[threadIdx.x] += y; }
extern "C" {
__constant__ float offsets[4];
__global__ void __launch_bounds__(256) vector_add(float *c, const float *a, const float *b, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
__global__ void block_sum(const float *x, float *out)
{
    extern __shared__ float part[];
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (!threadIdx.x)
        atomicAdd(out, part[0]);
}
__global__ void histogram(const unsigned char *x, unsigned n, unsigned *bins)
{
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&mine[x[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
}
"""


def test_no_expression_repeats_a_group_possessively():
    """Python 3.11.0 to 3.11.4, which is Debian 12's, matches too little then (CPython's issue 106052)."""
    sources = list(Path(gg.__file__).parent.rglob("*.py"))
    assert len(sources) > 50
    assert not [path.name for path in sources if re.search(r"\)[*+?}]\+", path.read_text())]


def compiled(device, **kwargs):
    """SOURCE for the device; skips if there is no compiler for it, or if code does not run."""
    if not runs_code(device) or not device.supports("module_load"):
        pytest.skip(f"{device} runs no compiled code")
    try:
        return gg.Module(gg.compile(SOURCE, backend=device.backend, **kwargs), device)
    except gg.UnsupportedError as error:
        pytest.skip(str(error).splitlines()[0])


# ---- compiled code runs


def test_one_source_adds_vectors_everywhere(device):
    kernel = compiled(device)["vector_add"]
    n = (1 << 24) + 11
    a, b = np.random.default_rng(1).random((2, n), dtype=np.float32)
    c = gg.empty(n, np.float32, device=device)
    kernel(c, gg.to_gpu(a, device), gg.to_gpu(b, device), np.uint32(n), grid=(n + 255) // 256, block=256)
    np.testing.assert_array_equal(c.get(), a + b)


def test_blocks_share_memory_and_wait_for_each_other(device):
    kernel = compiled(device)["block_sum"]
    x = np.random.default_rng(2).integers(0, 100, 4096).astype(np.float32)
    out = gg.zeros(1, np.float32, device=device)
    kernel(gg.to_gpu(x, device), out, grid=16, block=256, smem=1024)
    assert out.get()[0] == x.sum()


def test_atomics_and_static_shared_memory_work(device):
    kernel = compiled(device)["histogram"]
    x = np.random.default_rng(3).integers(0, 256, 5000).astype(np.uint8)
    bins = gg.zeros(256, np.uint32, device=device)
    kernel(gg.to_gpu(x, device), np.uint32(5000), bins, grid=1, block=256)
    np.testing.assert_array_equal(bins.get(), np.bincount(x, minlength=256))


def test_templates_are_found_by_their_expression(device):
    module = compiled(device, names=["add<float>", "add<int>", "deep::inner"])
    x = gg.to_gpu(np.ones(8, np.float32), device)
    module["add<float>"](x, np.float32(2.5), grid=1, block=8)
    np.testing.assert_array_equal(x.get(), np.full(8, 3.5, np.float32))
    number = gg.zeros(1, np.int32, device=device)
    module["deep::inner"](number, grid=1, block=1)
    assert number.get()[0] == 7


def test_constant_memory_is_a_variable(device):
    assert compiled(device).get_global("offsets").nbytes == 16


# ---- images without a device


@needs_nvrtc
@pytest.mark.parametrize("arch, form, expected", [("sm_90", "cubin", "sm_90"), ("compute_80", "ptx", "sm_80")])
def test_nvrtc_compiles_without_a_gpu(arch, form, expected):
    image = gg.compile(SOURCE, arch=arch)
    assert (image.format, image.arch) == (form, expected) and isinstance(image, bytes)
    assert [size for _, size, _ in image.kernels["vector_add"]] == [8, 8, 8, 4]


STANDARD = {
    "float.h": "FLT_MAX + DBL_EPSILON", "cfloat": "FLT_EPSILON", "math.h": "M_PI + INFINITY + NAN", "cmath": "std::sqrt(a[1]) + M_PI",
    "stdint.h": "INT32_MAX + UINT64_MAX + INT64_MIN + (uint_fast32_t)1 + UINT32_C(1)", "cstdint": "(std::uint32_t)1 + INT8_MIN",
    "limits.h": "INT_MAX + LLONG_MIN", "climits": "UINT_MAX", "stddef.h": "offsetof(float4, y)", "cstddef": "(std::size_t)1",
    "string.h": "(memcpy(a, a, 4), 1)", "cstring": "(std::memcpy(a, a, 4), 1)", "assert.h": "(assert(a), 1)",
    "cassert": "1", "stdbool.h": "true", "stdio.h": "printf(\"\")", "stdlib.h": "abs(-1)", "cstdlib": "std::abs(-1)",
    "time.h": "clock()",
}


@pytest.mark.parametrize("arch", [pytest.param("sm_90", marks=needs_nvrtc), pytest.param(ARCH, marks=needs_compiler)])
def test_standard_headers_have_the_usual_declarations_for_kernels(arch):
    includes = "".join(f"#include <{name}>\n" for name in STANDARD)
    lines = " ".join(f"a[{i}] = {text};" for i, text in enumerate(STANDARD.values()))
    assert gg.compile(f"{includes}__global__ void f(float *a) {{ {lines} }}", arch=arch)


@needs_nvrtc
@pytest.mark.parametrize("name", STANDARD)
def test_each_standard_header_compiles_alone(name):
    assert gg.compile(f"#include <{name}>\n__global__ void f(float *a) {{ a[0] = {STANDARD[name]}; }}", arch="compute_80")


@needs_nvrtc
def test_headers_of_the_toolkit_are_found_beside_the_compiler(own_cache, tmp_path, monkeypatch):
    if not _rtc.nvrtc.include_directories():
        pytest.skip("the compiler came without its toolkit's headers")
    text = """#include <stdint.h>
#include <cuda_fp16.h>
#include <cuComplex.h>
#include <math_constants.h>
__global__ void f(__half *a, float *b) { a[0] = __float2half(CUDART_PI_F); b[0] = cuCrealf(make_cuFloatComplex(1, 2)); }"""
    first = gg.compile(text, arch="sm_90")
    monkeypatch.setattr(_rtc.Rtc, "compile", None)
    assert gg.compile(text, arch="sm_90") == first  # and is kept
    monkeypatch.undo()
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(own_cache))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cuComplex.h").write_text("#error mine")
    try:
        gg.compile(text, arch="sm_90")
    except gg.CompileError as error:
        assert "mine" in error.log
    assert len(entries(own_cache)) == 1


@needs_nvrtc
def test_options_reach_the_compiler():
    with pytest.raises(gg.CompileError, match="chosen"):
        gg.compile("#ifdef CHOSEN\n#error chosen\n#endif\n", arch="sm_90", options=["-DCHOSEN=1"])


@pytest.mark.parametrize("arch", [pytest.param("sm_90", marks=needs_nvrtc), pytest.param(ARCH, marks=needs_compiler)])
def test_errors_carry_the_compilers_log(arch):
    with pytest.raises(gg.CompileError, match="nonsense") as caught:
        gg.compile("\n\n__global__ void f() { nonsense(); }", arch=arch)
    assert "nonsense" in caught.value.log and isinstance(caught.value, gg.Error)
    assert "3" in caught.value.log  # the line


@pytest.mark.parametrize("arch", [pytest.param("sm_90", marks=needs_nvrtc), pytest.param(ARCH, marks=needs_compiler)])
def test_the_message_shows_the_source_line_of_an_error(arch):
    with pytest.raises(gg.CompileError) as caught:
        gg.compile("// first\n\n__global__ void f() {\n    nonsense(); }", arch=arch)
    assert str(caught.value).count("nonsense(); }") == 1  # NVRTC's log has it already


def test_source_that_cannot_be_compiled_is_refused_with_a_reason():
    with pytest.raises(TypeError, match="must be a str or UTF-8 bytes, got None$"):
        gg.compile(None)
    with pytest.raises(gg.InvalidArgumentError, match="no backend has the architecture"):
        gg.compile("", arch="z80")
    with pytest.raises(gg.InvalidArgumentError, match="lang='opencl'"):
        gg.compile("", arch="sm_90", lang="opencl")
    with pytest.raises(TypeError, match="must be a sequence of str"):
        gg.compile("", arch="sm_90", options="-O2")
    with pytest.raises(gg.UnsupportedError, match="generates code for 'sparc'"):
        gg.compile("", backend="host", arch="sparc")


NOT_THERE = {
    "nvrtc": ("sm_90", "GPUGLUE_NVRTC_LIBRARY", "/nonexistent/libnvrtc.so"),
    "nvrtc by a relative path": ("sm_90", "GPUGLUE_NVRTC_LIBRARY", "libnvrtc.so"),
    "hiprtc": ("gfx90a", "GPUGLUE_HIPRTC_LIBRARY", "/nonexistent/libhiprtc.so"),
    "hiprtc by a relative path": ("gfx90a", "GPUGLUE_HIPRTC_LIBRARY", "./libhiprtc.so"),
    "ocloc": ("tgllp", "GPUGLUE_OCLOC_LIBRARY", "/nonexistent/libocloc.so"),
    "ocloc by a relative path": ("tgllp", "GPUGLUE_OCLOC_LIBRARY", "libocloc.so"),
    "ocloc as a program": ("tgllp", "GPUGLUE_OCLOC", "/nonexistent/ocloc"),
}


@pytest.mark.parametrize("arch, variable, path", NOT_THERE.values(), ids=NOT_THERE)
def test_a_missing_compiler_named_by_a_variable_is_reported_and_not_replaced(
        run_python, arch, variable, path):
    code = f"""
import gpuglue as gg
try:
    gg.compile("", arch={arch!r}, backend={'"ze"' if "OCLOC" in variable else None})
except gg.UnsupportedError as error:
    print(error)
"""
    result = run_python(code, **{variable: path})
    assert path in result.stdout and variable in result.stdout, result.stdout + result.stderr


ENDS_ITS_PROCESS = """#include <stdlib.h>
extern "C" int hiprtcVersion(int *major, int *minor) { *major = 5; *minor = 2; return 0; }
extern "C" int hiprtcCreateProgram() { abort(); }
"""


@needs_compiler
def test_a_compiler_that_ends_its_process_is_reported_with_the_architecture(run_python, tmp_path):
    source, library = tmp_path / "ends.cpp", tmp_path / "libhiprtc.so"
    source.write_text(ENDS_ITS_PROCESS)
    subprocess.run([_host_compiler.find(), "-shared", "-fPIC", "-o", library, source], check=True)
    code = """
import gpuglue as gg
try:
    gg.compile("", arch="gfx942")
except gg.CompileError as error:
    print(error)
"""
    result = run_python(code, GPUGLUE_HIPRTC_LIBRARY=str(library), GPUGLUE_CACHE="0")
    assert "gfx942" in result.stdout and str(library) in result.stdout, result.stdout + result.stderr
    assert "older than the architecture" in result.stdout and "GPUGLUE_HIPRTC_LIBRARY" in result.stdout


# ---- the cache


@pytest.fixture(params=[pytest.param("sm_90", marks=needs_nvrtc), pytest.param(ARCH, marks=needs_compiler)])
def arch(request):
    return request.param


def test_the_same_source_is_compiled_once(own_cache, arch, monkeypatch):
    first = gg.compile(SMALL % 1, arch=arch, names=["f"])
    assert len(entries(own_cache)) == 1
    monkeypatch.setattr(_rtc.Rtc, "compile", None)
    monkeypatch.setattr(_host_compiler, "build", None)
    again = gg.compile(SMALL % 1, arch=arch, names=["f"])
    assert again == first and again.names == first.names and again.log == first.log


def test_sources_that_differ_are_compiled_again(own_cache, arch):
    gg.compile(SMALL % 1, arch=arch)
    gg.compile(SMALL % 2, arch=arch)
    gg.compile(SMALL % 1, arch=arch, options=["-DX"])
    assert len(entries(own_cache)) == 3


def test_a_damaged_entry_is_replaced(own_cache, arch):
    first = gg.compile(SMALL % 1, arch=arch)
    [entry] = entries(own_cache)
    entry.write_bytes(entry.read_bytes()[:-10] + b"0123456789")
    assert gg.compile(SMALL % 1, arch=arch) == first
    assert _cache.load(entry.name.removesuffix(".image"))[1] == first


def test_the_cache_can_be_disabled_and_may_be_unwritable(own_cache, arch, monkeypatch, tmp_path):
    monkeypatch.setenv("GPUGLUE_CACHE", "0")
    gg.compile(SMALL % 1, arch=arch)
    assert not entries(own_cache)
    monkeypatch.delenv("GPUGLUE_CACHE")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert gg.compile(SMALL % 1, arch=arch)


def test_the_cache_does_not_exceed_its_size(own_cache, monkeypatch):
    monkeypatch.setenv("GPUGLUE_CACHE_SIZE", "5000")
    for i in range(10):
        _cache.store(_cache.key("test", i), {"log": ""}, bytes(1000))
        os.utime(own_cache / (_cache.key("test", i) + ".image"), (i, i))
    assert sum(entry.stat().st_size for entry in entries(own_cache)) <= 6200
    assert _cache.load(_cache.key("test", 9)) and not _cache.load(_cache.key("test", 0))


HEADED = 'extern "C" __global__ void f(int *x) { *x = VALUE; }'


@pytest.mark.parametrize("include, options", [
    ('#include "mine.h"', []),
    ('#include "mine.h"', ["-I{directory}"]),
    ('#include <mine.h>', ["-I", "{directory}"]),
    ('#define NAME "mine.h"\n#include NAME', ["-I{directory}"]),
    ('#inc\\\nlude "mine.h"', []),
    ('/* */ # /* */ include "mine.h"', []),
    ('#if __has_include("mine.h")\n#include <stdio.h>\n#include "mine.h"\n#endif', []),
])
def test_a_header_that_changed_is_compiled_again(arch, tmp_path, monkeypatch, include, options):
    monkeypatch.chdir(tmp_path)
    images = []
    for value in (3, 4):
        (tmp_path / "mine.h").write_text(f"#define VALUE {value}\n")
        images.append(gg.compile(f"{include}\n{HEADED}", arch=arch, options=[o.format(directory=tmp_path) for o in options]))
    assert images[0] != images[1]


@needs_compiler
@pytest.mark.parametrize("options", [["-iquote", "{directory}"], ["-isystem{directory}"], ["-include", "{directory}/fenv.h"]])
def test_a_header_with_the_name_of_a_standard_one_is_read_again(tmp_path, options):
    images = []
    for value in (3, 4):
        (tmp_path / "fenv.h").write_text(f"#define VALUE {value}\n")
        images.append(gg.compile(f'#include "fenv.h"\n{HEADED}', arch=ARCH,
                                 options=[o.format(directory=tmp_path) for o in options]))
    assert images[0] != images[1]


@needs_compiler
def test_an_unchanged_header_is_not_compiled_again(own_cache, tmp_path, monkeypatch):
    (tmp_path / "mine.h").write_text("#define VALUE 3\n")
    first = gg.compile(f'#include "mine.h"\n{HEADED}', arch=ARCH, options=[f"-I{tmp_path}"])
    monkeypatch.setattr(_host_compiler, "build", None)
    assert gg.compile(f'#include "mine.h"\n{HEADED}', arch=ARCH, options=[f"-I{tmp_path}"]) == first


@needs_nvrtc
def test_source_with_own_headers_is_not_cached_if_their_text_is_unknown(own_cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.h").write_text("#define VALUE 3\n")
    gg.compile(f'#include "mine.h"\n{HEADED}', arch="sm_90")
    assert not entries(own_cache)


def start(code, **environment):
    paths = os.pathsep.join(sys.path)
    return subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths, **environment},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


COMPILE = "import gpuglue as gg; print(len(gg.compile({source!r}, arch={arch!r})))"


def test_two_processes_may_compile_the_same_source_at_once(own_cache, arch):
    code = COMPILE.format(source=SMALL % 5, arch=arch)
    running = [start(code) for _ in range(2)]
    results = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert len(entries(own_cache)) == 1


@needs_compiler
def test_a_compile_that_is_killed_leaves_no_file(own_cache, tmp_path):
    """The compiler begins when its parent has been killed."""
    scratch, begun, killed, compiler = (tmp_path / name for name in ("scratch", "begun", "killed", "compiler"))
    scratch.mkdir()
    compiler.write_text(f"""#!/bin/sh
if [ "$1" != --version ]; then
    touch "{begun}"
    until [ -e "{killed}" ]; do sleep 0.02; done
fi
exec "{_host_compiler.find()}" "$@"
""")
    compiler.chmod(0o755)
    process = start(COMPILE.format(source=SOURCE, arch=ARCH), TMPDIR=str(scratch), GPUGLUE_CXX=str(compiler))
    until(lambda: begun.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert any(scratch.iterdir())
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed.touch()
    until(lambda: not any(scratch.iterdir()))  # the shell around the compiler removes its directory
    assert all(entry.suffix == ".image" for entry in entries(own_cache))


def test_failed_compiles_leave_no_file(own_cache, arch, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with pytest.raises(gg.CompileError):
        gg.compile("nonsense", arch=arch)
    gg.compile(SMALL % 1, arch=arch)
    assert not list(scratch.iterdir()) and len(entries(own_cache)) == 1


@needs_compiler
@pytest.mark.parametrize("name", ["a $(touch X) b", "a `touch X`", 'a" b', "a' ; touch X '", "-f $HOME \\"])
def test_directories_of_any_name_hold_temporary_files(own_cache, tmp_path, monkeypatch, name):
    scratch = tmp_path / name
    scratch.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(scratch))
    assert gg.compile(SMALL % 1, arch=ARCH)
    assert not list(scratch.iterdir()) and not (tmp_path / "X").exists()


@needs_compiler
def test_a_process_without_standard_streams_compiles(run_python):
    code = f"""
import os
os.close(0), os.close(1)
import gpuglue as gg
os.write(2, b"%d" % len(gg.compile({SMALL % 1!r}, arch={ARCH!r})))
"""
    result = run_python(code)
    assert result.stderr.isdigit(), result.stderr


@pytest.mark.parametrize("wrong", [{"source": "a\0b"}, {"options": ["-DX\0"]}, {"names": ["f\0"]}])
def test_a_nul_is_refused(wrong):
    with pytest.raises(gg.InvalidArgumentError, match="null character"):
        gg.compile(**{"source": "", "arch": "sm_90", **wrong})


BAD_ARGUMENTS = {
    "source": {"source": None},
    "arch": {"source": "", "arch": 5},
    "backend": {"source": "", "backend": 5},
    "lang": {"source": "", "lang": 5},
    "options": {"source": "", "options": "-O2"},
    "names": {"source": "", "names": 7},
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_an_argument_of_another_type_is_named(name):
    arguments = dict(BAD_ARGUMENTS[name])
    with pytest.raises(TypeError, match=f"compile: {name} must be a"):
        gg.compile(arguments.pop("source"), **arguments)


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(ValueError, match="compile: the source is not UTF-8"):
        gg.compile(b"\xff")


@pytest.mark.parametrize("encode", [str, lambda text: bytearray(text.encode())], ids=["str", "bytearray"])
def test_a_byte_order_mark_before_the_source_is_ignored(encode):
    assert _compile._text(encode("\ufeffint x;")) == "int x;"


@pytest.mark.parametrize("rtc", (_rtc.nvrtc, _rtc.hiprtc), ids=lambda rtc: rtc.prefix)
def test_no_library_of_the_current_directory_is_loaded_where_a_toolkits_variable_is_not_set(rtc, tmp_path, monkeypatch):
    for pattern in rtc.directories[:3]:
        monkeypatch.delenv(pattern[1:].partition("/")[0], raising=False)
        (tmp_path / pattern).mkdir(parents=True)
        (tmp_path / pattern / rtc.names[0]).touch()
    monkeypatch.chdir(tmp_path)
    assert not [path for path in rtc._candidates() if "$" in path]
