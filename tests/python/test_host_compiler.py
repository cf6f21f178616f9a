"""The system's C++ compiler: which one is run, how, and what is made of its text."""

import os
import select
import shutil
import signal
import subprocess
import sys

import pytest
from compilers import ARCH, SMALL, needs_compiler, only_once, own_cache  # noqa: F401

import gpuglue as gg
from gpuglue import _host_compiler

pytestmark = needs_compiler


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A shell script in the compiler's place: stand_in(lines) is its path."""

    def write(lines, name="stand-in"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        monkeypatch.setenv("GPUGLUE_CXX", str(path))
        return path

    return write


def test_a_compiler_that_is_a_link_is_run_by_the_links_name(stand_in, tmp_path, monkeypatch):
    """As ccache is: by its own name it compiles nothing."""
    real = _host_compiler.find()
    (tmp_path / "c++").symlink_to(stand_in(f'case $0 in */c++) exec "{real}" "$@";; esac; exit 1', "ccache"))
    monkeypatch.setenv("GPUGLUE_CXX", str(tmp_path / "c++"))
    assert gg.compile(SMALL % 1, arch=ARCH)


@pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not on this machine")
def test_clang_links_the_library_of_cxx(monkeypatch):
    monkeypatch.setenv("GPUGLUE_CXX", "clang++")
    text = "#include <string>\n__global__ void f(int *x) { *x = std::stoi(std::to_string(*x)); }"
    assert b"libstdc++" in gg.compile(text, arch=ARCH)


def test_a_compiler_of_gpuglues_variable_that_is_not_there_gives_way_to_no_other(monkeypatch):
    monkeypatch.setenv("GPUGLUE_CXX", "no-such-compiler")
    with pytest.raises(gg.UnsupportedError, match="GPUGLUE_CXX is 'no-such-compiler'"):
        gg.compile(SMALL % 1, arch=ARCH)


def test_a_compiler_of_everyones_variable_that_is_not_there_gives_way(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert gg.compile(SMALL % 1, arch=ARCH)


def test_another_compiler_behind_the_same_wrapper_is_told(stand_in, tmp_path):
    (tmp_path / "version").write_text("one 1.0\n")
    stand_in(f'cat "{tmp_path}/version"')
    first = _host_compiler.identity()
    (tmp_path / "version").write_text("one 2.0\n")
    _host_compiler._versions.clear()  # as in the next process
    assert _host_compiler.identity() != first


@pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not on this machine")
def test_a_compiler_behind_a_wrapper_is_known_for_what_it_is(stand_in):
    """No path has its name in it, and it refuses an option that is g++'s alone."""
    stand_in(f'exec "{shutil.which("clang++")}" "$@"')
    assert gg.compile(SMALL % 1, arch=ARCH)


def test_a_template_with_a_long_name_may_stand_before_a_plain_kernel():
    name = "a_function_whose_name_is_long_enough_to_be_read_in_very_many_ways"
    text = f"template <class T> __device__ T {name}(T x) {{ return x; }}\n__global__ void f(int *x) {{ *x = {name}(1); }}"
    assert _host_compiler.kernels(_host_compiler.preprocess(text, [])[0].decode()) == {"f": "f"}


@pytest.mark.parametrize("deaf", ["", "trap '' TERM"], ids=["that ends when asked", "that does not"])
def test_an_interrupt_leaves_neither_a_folder_nor_a_compiler(stand_in, tmp_path, deaf):
    """Whoever runs in the compiler's place holds a pipe: it is at its end when the last of them is gone."""
    os.mkfifo(tmp_path / "pipe")
    stand_in(f'[ "$1" = --version ] && exit\n{deaf}\nexec 9>"{tmp_path}/pipe"\necho >&9\nsleep 1000')
    (tmp_path / "scratch").mkdir()
    code = f"import gpuglue as gg; gg.compile('', arch={ARCH!r})"
    python = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env={
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path / "scratch")})
    with open(tmp_path / "pipe", "rb") as pipe:
        assert pipe.read(1) and any((tmp_path / "scratch").iterdir())
        python.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in python.communicate()[1]
        assert not any((tmp_path / "scratch").iterdir())
        assert select.select([pipe], [], [], 20)[0] and not pipe.read()


@pytest.mark.parametrize("linker", ["lld", "mold"])
def test_linkers_that_write_beside_the_output_and_rename_make_images(linker):
    if not shutil.which(f"ld.{linker}"):
        pytest.skip(f"ld.{linker} is not on this machine")
    assert gg.compile(SMALL % 1, arch=ARCH, options=[f"-fuse-ld={linker}"])


def test_a_compiler_that_writes_beside_the_output_and_renames_makes_images(stand_in):
    real = _host_compiler.find()
    stand_in(f"""for word; do [ "$last" = -o ] && out=$word; last=$word; done
for word; do shift; [ "$word" = "$out" ] && word=$out.new; set -- "$@" "$word"; done
"{real}" "$@" && {{ [ ! "$out" ] || mv "$out.new" "$out"; }}""")
    assert gg.compile(SMALL % 1, arch=ARCH)
