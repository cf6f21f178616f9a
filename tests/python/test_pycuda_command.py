"""gpuglue pycuda: a copy of PyCUDA's own Python files, here of a small package that is laid out as its sdist, and programs
that use the copy."""

import io
import json
import os
import shlex
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
from conftest import run_python, succeeds
from kernels import needs_compiler, runs_code

import gpuglue as gg
from gpuglue import _command
from gpuglue.compat import _pycuda_copy

FILES = {
    "__init__.py": "VERSION = (2024, 1, 2)\nOWN = True\n",
    "gpuarray.py": """
import pycuda.driver as drv
from pycuda.compyte.array import strides_of
class GPUArray:
    def __init__(self, array):
        self.gpudata, self.shape, self.dtype = drv.to_device(array), array.shape, array.dtype
        self.strides = strides_of(self)
""",
    "compyte/__init__.py": "",
    "compyte/array.py": "def strides_of(array):\n    return (array.dtype.itemsize,)\n",
    "tools.py": "import pycuda._driver as _drv\nDeviceMemoryPool, bitlog2 = _drv.DeviceMemoryPool, _drv.bitlog2\n",
    "curandom.py": "import pycuda._driver\nassert pycuda._driver.get_curand_version() < (3, 2, 0)\n",
    "reduction.py": "def get_reduction_module():\n    pass\ndef other():\n    return get_reduction_module\n",
    "cuda/pycuda-complex.hpp": "#define OF_THE_COPY 5\n",
}
# What must not be in the copy: gpuglue's modules, others, and names that lead out of it.
OTHERS = {"pycuda/driver.py": "1/0", "pycuda/compiler.py": "1/0", "pycuda/gl/__init__.py": "", "test/test_driver.py": "",
          "pycuda/../../../evil.py": "1/0", "pycuda/compyte/../../evil.py": "1/0"}


def sdist(path, version="2024, 1, 2", files=FILES):
    """The path of an sdist."""
    top = "pycuda-" + ".".join(version.split(", "))
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {**{f"pycuda/{name}": text for name, text in files.items()}, **OTHERS}.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            data = text.replace("2024, 1, 2", version).encode()
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo(f"{top}/pycuda/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return str(path)


@pytest.fixture(autouse=True)
def data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def pycuda(capsys):
    """The function that runs the command, whose result is what it prints."""
    def run(*arguments):
        assert _command.main(["pycuda", *arguments]) == 0
        return capsys.readouterr().out
    return run


def files_in(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_the_python_files_and_headers_of_an_sdist_are_copied_and_nothing_else(pycuda, data_home, tmp_path):
    assert "there is no copy of PyCUDA" in pycuda()
    assert f"PyCUDA 2024.1 in {data_home}/gpuglue/pycuda" in pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))
    assert files_in(data_home) == {f"gpuglue/pycuda/{name}" for name in FILES}
    assert not list(tmp_path.rglob("evil.py"))


def test_a_second_copy_replaces_the_first_and_it_can_be_removed(pycuda, data_home, tmp_path):
    pycuda("add", sdist(tmp_path / "old.tar.gz"))
    pycuda("add", sdist(tmp_path / "new.tar.gz", "2026, 1", {"__init__.py": FILES["__init__.py"]}))
    assert json.loads(pycuda("--json"))["version"] == "2026.1"
    assert files_in(data_home) == {"gpuglue/pycuda/__init__.py"}
    assert "there is no copy" in pycuda("remove") and "there is no copy" in pycuda("remove")
    assert files_in(data_home) == set() and os.listdir(data_home / "gpuglue") == []


def test_the_packages_that_are_missing_are_named(pycuda, tmp_path, monkeypatch):
    monkeypatch.setattr("gpuglue._pycuda._NEEDED", ("json", "no_such_package"))
    assert "pip install no_such_package\n" in pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))


@pytest.mark.parametrize("content, message", [
    (b"no archive", "cannot be read as an archive: expected an sdist"), (None, "No such file"), ("2021, 1", "has PyCUDA 2021.1: expected .*2022"),
    ("cut", "cannot be read"), ("empty", "has no PyCUDA: expected an sdist")])
def test_what_is_not_a_suitable_sdist_is_refused_and_the_copy_stays(pycuda, data_home, tmp_path, content, message):
    pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))
    path = tmp_path / "wrong.tar.gz"
    if content == "cut":
        path.write_bytes((tmp_path / "pycuda.tar.gz").read_bytes()[:300])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        sdist(path, *("2024, 1", {}) if content == "empty" else (content,))
    with pytest.raises(gg.Error, match=message):
        pycuda("add", str(path))
    assert files_in(data_home) == {f"gpuglue/pycuda/{name}" for name in FILES}


@pytest.mark.parametrize("arguments", [["add"], ["remove", "file"], ["build", "file"]])
def test_a_wrong_command_line_is_refused(pycuda, arguments, capsys):
    with pytest.raises(SystemExit):
        pycuda(*arguments)
    assert "gpuglue pycuda: error: " in capsys.readouterr().err


@pytest.mark.parametrize("part", ("gpuglue", "gpuglue/pycuda", "gpuglue/pycuda/compyte", "gpuglue/pycuda/__init__.py"))
def test_a_copy_that_others_can_write_to_is_not_used(pycuda, data_home, tmp_path, part):
    pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))
    assert _pycuda_copy.directory() == str(data_home / "gpuglue/pycuda")
    (data_home / part).chmod(0o777)
    with pytest.raises(ImportError, match=f"is not used: .*{part}: others can write to it .*gpuglue pycuda remove"):
        _pycuda_copy.directory()


def test_a_copy_is_its_users_alone_whatever_the_umask_also_after_an_import(pycuda, tmp_path):
    before = os.umask(0o002)
    try:
        pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))
        for _ in range(2):
            succeeds(run_python("import gpuglue.compat; gpuglue.compat.install('pycuda'); import pycuda.compyte", PYTHONDONTWRITEBYTECODE=None))
    finally:
        os.umask(before)
    assert _pycuda_copy.directory()


@pytest.mark.parametrize("theirs", ["added", "removed"])
def test_two_commands_at_once_both_succeed_and_the_last_copy_remains(pycuda, data_home, tmp_path, monkeypatch, theirs):
    pycuda("add", sdist(tmp_path / "first.tar.gz"))
    (mine, others), rename, turns = (sdist(tmp_path / f"{one}.tar.gz", f"202{one}, 1") for one in (5, 6)), os.rename, iter("x")

    def interrupted(old, new):
        mine_is_next = new == _pycuda_copy.place() if theirs == "added" else old == _pycuda_copy.place()
        if mine_is_next and next(turns, None):
            pycuda(*(["add", others] if theirs == "added" else ["remove"]))
        rename(old, new)

    monkeypatch.setattr(os, "rename", interrupted)
    pycuda("add", mine)
    assert next(turns, None) is None and json.loads(pycuda("--json"))["version"] == "2025.1"
    assert os.listdir(data_home / "gpuglue") == ["pycuda"]


def headers_in(source, tmp_path, monkeypatch, **headers):
    for name, text in headers.items():
        (tmp_path / f"{name}.hpp").write_text(text)
    monkeypatch.setattr(_pycuda_copy, "include_directories", lambda: [str(tmp_path)])
    return _pycuda_copy.with_headers(source)[0]


def preprocessed(source):
    """What the compiler makes of a source, as lines without the numbers of lines."""
    result = subprocess.run([*shlex.split(os.environ.get("CXX", "c++")), "-E", "-P", "-x", "c++", "-"], input=source, text=True,
                            capture_output=True, check=True)
    return result.stdout.split("\n")


def test_only_includes_outside_of_comments_and_strings_are_replaced(tmp_path, monkeypatch):
    source = '''const char *a = "/*"; // isn't a comment: /*
#include "mine.hpp"
char b = '"', c = '\\\\'; int d = 1'000; /* "
#include "mine.hpp"
*/ const char *e = R"x(
#include "mine.hpp"
")x"; // continued \\
#include "mine.hpp"
#include <mine.hpp> /* the rest
of the comment */ int line = __LINE__;
'''
    text = headers_in(source, tmp_path, monkeypatch, mine="int of_mine;")
    assert text.count("int of_mine;") == 2
    at_two, at_nine = ('#line 1 "mine.hpp"\nint of_mine;\n#line %d "kernel.cu"\n' % line for line in (2, 9))
    lines = source.split("\n")
    assert text == "\n".join([lines[0], at_two, *lines[2:8], at_nine + " /* the rest", *lines[9:]])
    if shutil.which(shlex.split(os.environ.get("CXX", "c++"))[0]):
        assert "int line = 10;" in "\n".join(preprocessed(text))


def test_a_header_with_pragma_once_is_read_once_where_it_is_first_enabled(tmp_path, monkeypatch):
    if not shutil.which(shlex.split(os.environ.get("CXX", "c++"))[0]):
        pytest.skip("no C++ compiler is installed")
    source = '#if 0\n#include <one.hpp>\n#endif\n#include <one.hpp>\n#include <two.hpp>\n#include <one.hpp>\nint line = __LINE__;\n'
    text = headers_in(source, tmp_path, monkeypatch, one="/* */\n#pragma once\nint one = __LINE__;",
                      two="# pragma once\n#include <one.hpp>\nint two = __LINE__;")
    assert [line for line in preprocessed(text) if line] == ["int one = 3;", "int two = 3;", "int line = 7;"]


def test_the_time_for_a_source_grows_with_its_length_only(tmp_path, monkeypatch):
    """A text that is read again from each of these would take minutes."""
    for text in ("#/*", "/*", 'R"(', '"', "'", "#include ", "1'", " ", "// \\\n"):
        source = text * (2_000_000 // len(text))
        assert headers_in(source, tmp_path, monkeypatch, mine="") == source


def test_a_relative_data_home_is_not_used(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", "/home/me")
    assert _pycuda_copy.place() == "/home/me/.local/share/gpuglue/pycuda"


PROGRAM = """
import sys, numpy as np
import gpuglue.compat
gpuglue.compat.install("pycuda")
gpuglue.compat.install("pycuda")  # once more: nothing happens
import pycuda, pycuda.driver as drv, pycuda.gpuarray, pycuda.tools, pycuda.curandom, pycuda.compiler
import gpuglue.compat.pycuda as ours
import gpuglue.compat.pycuda.driver, gpuglue.compat.pycuda.gpuarray
assert pycuda.OWN and pycuda.VERSION == (2024, 1, 2)
assert drv is ours.driver and pycuda.compiler is ours.compiler and pycuda.tools.bitlog2(9) == 3
assert pycuda.gpuarray.GPUArray is not ours.gpuarray.GPUArray
import pycuda.reduction
assert pycuda.reduction.other() is pycuda.reduction.get_reduction_module
assert pycuda.reduction.get_reduction_module.__module__ == "gpuglue.compat.pycuda._reduction_module"
for name in ("sparse", "elementwise"):
    try:
        __import__("pycuda." + name)
    except ModuleNotFoundError as error:
        print(error)
import pycuda.autoinit
array, out = pycuda.gpuarray.GPUArray(np.arange(3.0)), np.empty(3)
drv.memcpy_dtoh(out, array.gpudata)
print(array.strides, *out)
"""


def test_a_program_uses_the_arrays_of_the_copy_and_the_driver_of_gpuglue(device, pycuda, tmp_path):
    if device.backend == "ze":
        pytest.skip("the compatibility module is for cuda, hip and host")
    pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))
    printed = succeeds(run_python(PROGRAM)).splitlines()
    assert "there is no pycuda.sparse on gpuglue: use CuPy" in printed[0]
    assert printed[1:] == ["No module named 'pycuda.elementwise'", "(8,) 0.0 1.0 2.0"]


COMPILED = r"""
import gpuglue.compat
gpuglue.compat.install("pycuda")
from pycuda import compiler
source = '#include <pycuda-complex.hpp>\n%s __device__ int x = OF_THE_COPY;\n'
compiler.compile(source % "", no_extern_c=True)
commented = source % '/*\n#include "pycuda-complex.hpp"\n*/'
compiler.compile(commented)
try:
    compiler.compile(commented + "nonsense here;")
except compiler.CompileError as error:
    print("line 5" if ":5:" in str(error) or "(5)" in str(error) else error)
"""


def test_kernels_that_include_headers_of_the_copy_are_cached_by_the_text_of_these(device, pycuda, tmp_path):
    if device.backend == "ze":
        pytest.skip("the compatibility module is for cuda, hip and host")
    needs_compiler(device)
    cache = tmp_path / "cache"
    for kept, value in ((1, "5"), (1, "5"), (2, "6")):  # on host also what has an #include in a comment
        header = {"cuda/pycuda-complex.hpp": "#if 0\n# include <stl/_complex.c>\n#endif\n#include <pycuda-impl.hpp>\n", "cuda/pycuda-impl.hpp": f"#define OF_THE_COPY {value}\n"}
        pycuda("add", sdist(tmp_path / "pycuda.tar.gz", files={**FILES, **header}))
        assert succeeds(run_python(COMPILED, GPUGLUE_CACHE_DIR=str(cache))) == "line 5"
        assert len(list(cache.iterdir())) == kept * (2 if device.backend == "host" else 1)


REDUCTION = """
import numpy as np
import gpuglue.compat
gpuglue.compat.install("pycuda")
import pycuda.autoinit, pycuda.driver as drv
from pycuda.reduction import get_reduction_module
module = get_reduction_module("float", 64, "OF_THE_COPY", "a+b", "round(x[i]*factor)", "const float *x, float factor", preamble="//")
out, x = np.zeros(2, np.float32), np.arange(200, dtype=np.float32)
args = drv.Out(out), drv.In(x), np.float32(2), np.uint32(2), np.uintp(x.size)
module.get_function("reduce_kernel")(*args, block=(64, 1, 1), grid=(2, 1), shared=256)
print(*out)
"""


def test_kernels_of_the_copy_include_its_headers_and_reduce_without_lockstep(device, pycuda, tmp_path):
    if device.backend == "ze" or not runs_code(device):
        pytest.skip(f"PyCUDA's kernels do not run on {device}")
    needs_compiler(device)
    pycuda("add", sdist(tmp_path / "pycuda.tar.gz"))
    x = np.arange(200) * 2
    # Each thread begins with the neutral element, which is 5 by the header of the copy.
    assert succeeds(run_python(REDUCTION)) == f"{x[:128].sum() + 64 * 5.0} {x[128:].sum() + 64 * 5.0}"
