"""AMD's and Intel's own compilers, without a device: images for real targets, and the metadata that gpuglue reads from them.

GPUGLUE_COMPILERS lists the compilers of the root (hiprtc, ocloc). A listed compiler must be found; others are skipped."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import gpuglue as gg
from gpuglue import _opencl

HAVE = os.environ.get("GPUGLUE_COMPILERS", "").split(",")
needs_hiprtc = pytest.mark.skipif("hiprtc" not in HAVE, reason="HIPRTC is not installed here")
needs_ocloc = pytest.mark.skipif("ocloc" not in HAVE, reason="ocloc is not installed here")
GFX = ("gfx90a", "gfx942")  # the second since HIP 6
DEVICES = ("tgllp", "dg2")  # an integrated and a discrete GPU; the second since ocloc 23

DOUBLIFY = """
#include <stdio.h>
#include <hip/hip_runtime.h>
extern "C" __global__ void doublify(float *a)
{
    int idx = threadIdx.x + threadIdx.y*4;
    a[idx] *= 2;
}
template <class T> __global__ void add(T *x, T y) { x[threadIdx.x] += y; }
struct mixed { char letter; double number; };
extern "C" __global__ void say(double *out, signed char a, unsigned short b, int c, long long d, float e, double f, mixed g)
{
    out[0] = a + b + c + d + e + f + g.number;
}
"""
OPENCL = """
kernel void doublify(global float *a) { a[get_global_id(0)] *= 2; }
kernel void scale(global float *x, uint n, float by, local int *room, long4 four)
{
    if (get_global_id(0) < n) x[get_global_id(0)] *= by + room[0] + four.x;
}
"""
WRONG = {"hip": "\n\n__global__ void f() { nonsense(); }", "ze": "\n\nkernel void f() { nonsense(); }"}


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """The compilers' directory for temporary files; the cache is off."""
    directory = tmp_path / "scratch"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setenv("GPUGLUE_CACHE", "0")
    monkeypatch.delenv("GPUGLUE_OCLOC", raising=False)
    monkeypatch.delenv("GPUGLUE_OCLOC_LIBRARY", raising=False)
    return directory


def gfx(arch):
    if arch == "gfx942" and "gfx942" not in os.environ.get("GPUGLUE_GFX", "gfx942"):
        pytest.skip("this HIP is older than gfx942")
    return arch


@needs_hiprtc
@pytest.mark.parametrize("arch", GFX)
def test_hiprtc_makes_code_objects_and_their_metadata_is_read(arch):
    image = gg.compile(DOUBLIFY, arch=gfx(arch), names=["add<float>"])
    assert (image.format, image.arch.split(":")[0]) == ("code object", arch)
    assert image.kernels["doublify"] == ((0, 8, "pointer"),)
    places = [(offset, size) for offset, size, _ in image.kernels["say"]]
    assert places == [(0, 8), (8, 1), (10, 2), (12, 4), (16, 8), (24, 4), (32, 8), (40, 16)]
    assert [place[:2] for place in image.kernels[image.names["add<float>"]]] == [(0, 8), (8, 4)]


@needs_hiprtc
def test_an_architecture_unknown_to_hiprtc_is_an_error_and_does_not_end_the_process():
    with pytest.raises(gg.CompileError):
        gg.compile(DOUBLIFY, arch="gfx9999")
    assert gg.compile(DOUBLIFY, arch="gfx90a").kernels["doublify"]


@pytest.fixture(params=["library", "program"])
def ocloc(request, monkeypatch):
    """ocloc as a library and as a program."""
    if request.param == "program":
        monkeypatch.setenv("GPUGLUE_OCLOC", "ocloc")
        assert shutil.which("ocloc")
    assert _opencl.find()[0] == request.param
    return request.param


def intel(device):
    if device == "dg2" and "dg2" not in os.environ.get("GPUGLUE_INTEL", "dg2"):
        pytest.skip("this ocloc is older than dg2")
    return device


@needs_ocloc
@pytest.mark.parametrize("device", DEVICES)
def test_ocloc_makes_spirv_for_a_real_target_and_it_is_read(ocloc, device):
    image = gg.compile(OPENCL, backend="ze", arch=intel(device))
    assert (image.format, image.arch) == ("spirv", "spirv")
    assert [(size, kind) for _, size, kind in image.kernels["doublify"]] == [(8, "pointer")]
    sizes = [size for _, size, _ in image.kernels["scale"]]
    assert sizes[:3] == [8, 4, 4] and sizes[4] == 32
    assert [kind for _, _, kind in image.kernels["scale"]][1:4] == ["integer", "float", "local"]


@needs_ocloc
def test_options_reach_ocloc(ocloc):
    with pytest.raises(gg.CompileError, match="chosen"):
        gg.compile("#ifdef CHOSEN\n#error chosen\n#endif\n", backend="ze", arch="tgllp", options=["-DCHOSEN=1"])


TARGETS = [
    pytest.param({"arch": "gfx90a"}, marks=needs_hiprtc, id="hiprtc"),
    pytest.param({"backend": "ze", "arch": "tgllp"}, marks=needs_ocloc, id="ocloc"),
]


def source_of(target):
    return OPENCL if target.get("backend") else DOUBLIFY


@pytest.mark.parametrize("target", TARGETS)
def test_errors_carry_the_compilers_log(target, scratch):
    with pytest.raises(gg.CompileError, match="nonsense") as caught:
        gg.compile(WRONG[target.get("backend", "hip")], **target)
    assert "nonsense" in caught.value.log and ":3:" in caught.value.log and "\0" not in caught.value.log
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("target", TARGETS)
def test_a_compile_leaves_no_file(target, scratch):
    gg.compile(source_of(target), **target)
    assert not list(scratch.iterdir())


def start(target, form):
    code = "import gpuglue as gg\nfrom gpuglue import _opencl\n" + ("_opencl._library = lambda: None\n" if form == "program" else "")
    code += f"print('begin', flush=True)\nprint(len(gg.compile({source_of(target)!r}, **{target!r})))"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(condition):
    """Wait for the condition: an orphaned compiler needs time to end. The limit ends a hang."""
    deadline = time.monotonic() + 900
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("form", ["library", "program"])
@pytest.mark.parametrize("moment", [0, 0.05, 0.15, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("target", TARGETS)
def test_a_compile_that_is_killed_leaves_no_file(target, moment, form, scratch):
    if form == "program" and not target.get("backend"):
        pytest.skip("HIPRTC is a library")
    process = start(target, form)
    assert process.stdout.readline() == "begin\n"
    time.sleep(moment)  # during the compile or after it: in either case no file may remain
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert until(lambda: not list(scratch.iterdir())), list(scratch.rglob("*"))


@pytest.mark.parametrize("target", TARGETS)
def test_two_processes_may_compile_the_same_source_at_once(target, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUGLUE_CACHE", "1")
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path / "cache"))
    running = [start(target, "library") for _ in range(2)]
    results = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0], results
    assert results[0][0] == results[1][0] and len(list((tmp_path / "cache").iterdir())) == 1
