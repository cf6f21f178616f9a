"""The wheel, and an editable install, work in clean environments of every Python on this machine."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pythons import Environment, find

PYTHONS = find()
NUMPYS = {version: ["numpy"] for version in PYTHONS} | {"3.11": ["numpy", "numpy==1.24.4"]}
NO_LIBRARY = {"GPUGLUE_CUDA_LIBRARY": "/nowhere/libcuda.so.1", "GPUGLUE_HIP_LIBRARY": "/nowhere/libamdhip64.so", "GPUGLUE_ZE_LIBRARY": "/nowhere/libze_loader.so.1"}

ROUND_TRIP = """
import numpy, gpuglue
for dtype in "u1", "i4", "f4", "f8", "c16":
    a = numpy.arange(53735).astype(dtype)
    d = gpuglue.to_gpu(a)
    b = d.get()
    assert b.dtype == a.dtype and (a == b).all() and d.ptr
print(gpuglue.default_backend())
"""
LIST = """
import json, sys, gpuglue
found = {b.name: b.status for b in gpuglue.backends()}
print(json.dumps([found, "numpy" in sys.modules]))
"""


@pytest.fixture(scope="module", params=sorted(PYTHONS))
def bare(request, wheel, tmp_path_factory):
    """The wheel without its dependency."""
    environment = Environment(tmp_path_factory.mktemp("bare") / request.param, PYTHONS[request.param])
    environment.install("--no-deps", wheel)
    return environment


def test_backends_are_listed_without_numpy(bare):
    found, numpy_loaded = json.loads(bare.run(LIST, **NO_LIBRARY))
    assert "host" in found
    assert found["cuda"] == found["hip"] == found["ze"] == "library-not-found"
    assert not numpy_loaded


def test_the_command_prints_a_table_without_numpy_and_without_a_gpu(bare):
    code = "import runpy, sys; sys.argv = ['gpuglue']; runpy.run_module('gpuglue', run_name='__main__')"
    printed = bare.run(code, GPUGLUE_BACKEND="host", **NO_LIBRARY)
    assert all(name in printed for name in ("host", "cuda", "hip", "ze"))


@pytest.mark.parametrize("version,numpy", [(v, n) for v in sorted(PYTHONS) for n in NUMPYS[v]])
def test_a_round_trip_on_host_agrees_with_numpy(version, numpy, wheel, tmp_path):
    environment = Environment(tmp_path / "env", PYTHONS[version])
    environment.install("--only-binary=:all:", numpy)
    environment.install("--no-deps", wheel)
    assert environment.run(ROUND_TRIP, GPUGLUE_BACKEND="host") == "host"


def test_a_c_program_builds_against_the_installed_header(bare):
    program = '#include <gpuglue/gpuglue.h>\n#include <string.h>\nint main(void) { return strcmp(gg_version(), GG_VERSION); }\n'
    (bare.directory / "program.c").write_text(program)
    package = Path(bare.run("import gpuglue, os; print(os.path.dirname(gpuglue.__file__))"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(package / "_lib/pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "gpuglue"], env=env, check=True, capture_output=True, text=True)
    subprocess.run(["gcc", "-o", "program", "program.c", *flags.stdout.split()], cwd=bare.directory, check=True)
    assert subprocess.run([bare.directory / "program"]).returncode == 0


def test_an_editable_install_finds_every_plugin(tmp_path):
    root = Path(__file__).parents[2]
    environment = Environment(tmp_path / "env", sys.executable)
    # The build tools of the environment that runs this test, for the build and for the rebuild on import.
    site = environment.run("import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(site, "tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment.install("--no-build-isolation", "--no-deps", f"-Cbuild-dir={tmp_path}/build", "-Csetup-args=-Doptimization=0", "--editable", root)
    found, _ = json.loads(environment.run(LIST, **NO_LIBRARY))
    assert "host" in found
    assert found["cuda"] == found["hip"] == found["ze"] == "library-not-found"
