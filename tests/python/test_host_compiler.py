"""The system's C++ compiler: which one is run, with which arguments, and how its output is read."""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from compilers import ARCH, SMALL, needs_compiler, only_once, own_cache  # noqa: F401
from conftest import HANG, run_python

import gpuglue as gg
from gpuglue import _compile, _host_compiler, _tempdir

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
    """Like ccache: under its own name it compiles nothing."""
    real = _host_compiler.find()
    (tmp_path / "c++").symlink_to(stand_in(f'case $0 in */c++) exec "{real}" "$@";; esac; exit 1', "ccache"))
    monkeypatch.setenv("GPUGLUE_CXX", str(tmp_path / "c++"))
    assert gg.compile(SMALL % 1, arch=ARCH)


@pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not on this machine")
def test_clang_links_the_cxx_library(monkeypatch):
    monkeypatch.setenv("GPUGLUE_CXX", "clang++")
    text = "#include <string>\n__global__ void f(int *x) { *x = std::stoi(std::to_string(*x)); }"
    assert b"libstdc++" in gg.compile(text, arch=ARCH)


def test_a_missing_compiler_of_gpuglue_cxx_is_not_replaced(monkeypatch):
    monkeypatch.setenv("GPUGLUE_CXX", "no-such-compiler")
    with pytest.raises(gg.UnsupportedError, match="GPUGLUE_CXX is 'no-such-compiler'"):
        gg.compile(SMALL % 1, arch=ARCH)


def test_a_missing_compiler_of_cxx_is_replaced(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert gg.compile(SMALL % 1, arch=ARCH)


def test_another_compiler_behind_the_same_wrapper_is_recognised(stand_in, tmp_path):
    (tmp_path / "version").write_text("one 1.0\n")
    stand_in(f'cat "{tmp_path}/version"')
    first = _host_compiler.identity()
    (tmp_path / "version").write_text("one 2.0\n")
    _host_compiler._versions.clear()  # as in the next process
    assert _host_compiler.identity() != first


@pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not on this machine")
def test_the_kind_of_a_compiler_behind_a_wrapper_is_detected(stand_in):
    """clang++ without its name in any path; it refuses an option that only g++ has."""
    stand_in(f'exec "{shutil.which("clang++")}" "$@"')
    assert gg.compile(SMALL % 1, arch=ARCH)


def test_a_template_with_a_long_name_may_stand_before_a_plain_kernel():
    name = "a_function_whose_name_is_long_enough_to_be_read_in_very_many_ways"
    text = f"template <class T> __device__ T {name}(T x) {{ return x; }}\n__global__ void f(int *x) {{ *x = {name}(1); }}"
    assert _host_compiler.kernels(_host_compiler.preprocess(text, [])[0].decode()) == {"f": "f"}


@pytest.mark.parametrize("deaf", ["", "trap '' TERM"], ids=["that ends when asked", "that does not"])
def test_an_interrupt_leaves_neither_a_directory_nor_a_compiler(stand_in, tmp_path, deaf):
    """Every process in the compiler's place holds a pipe: it ends when the last of them has exited."""
    os.mkfifo(tmp_path / "pipe")
    stand_in(f'[ "$1" = --version ] && exit\n{deaf}\nexec 9>"{tmp_path}/pipe"\necho >&9\nexec sleep {2 * HANG}')
    (tmp_path / "scratch").mkdir()
    code = f"import gpuglue as gg; gg.compile('', arch={ARCH!r})"
    python = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env={
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path / "scratch")})
    with open(tmp_path / "pipe", "rb") as pipe:
        assert pipe.read(1) and any((tmp_path / "scratch").iterdir())
        python.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in python.communicate()[1]
        assert not any((tmp_path / "scratch").iterdir())
        assert select.select([pipe], [], [], HANG)[0] and not pipe.read()


def test_an_interrupt_while_the_compiler_is_being_started_ends_it(monkeypatch):
    started, popen = [], subprocess.Popen

    def interrupted(*arguments, **options):
        started.append(popen(*arguments, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _tempdir.run(lambda output: ["sleep", str(2 * HANG)], b"")
    assert started[0].returncode is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


def test_many_comments_before_a_kernel_take_no_time(device):
    """With one expression that could be matched in 2**n ways, 40 comments took minutes."""
    text = "// see issue #\n" + "/* note */\n" * 2000 + SMALL % 1
    assert not _compile._asks(text)
    assert _host_compiler.kernels("__global__ void " + "*" * 2000) == {}
    name = _host_compiler.NAME.match("__global__ void " + "*" * 2000 + " k(")
    assert name[1] == "k"


STEPS = """
import ctypes, os, signal
from gpuglue import _compile, _host_compiler
text = {!r} * {} + "int x;"
again = ctypes.PyDLL(None)["raise"]
again.argtypes = [ctypes.c_int, ctypes.py_object]
reader, writer = os.pipe()
os.set_blocking(writer, False)
signal.signal(signal.SIGUSR1, again)
signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
signal.raise_signal(signal.SIGUSR1)
_compile._asks(text), _host_compiler.kernels(text)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
print(len(os.read(reader, 1 << 16)))
"""


@pytest.mark.parametrize("piece", ["/* note */\n", "#/*", "# \n", "__global__ void k();\n"])
def test_reading_a_source_takes_steps_in_proportion_to_its_length(piece):
    """Counted, not timed: Python looks for signals every few thousand steps, and the signal is raised again each time."""
    short, long = (int(run_python(STEPS.format(piece, count)).stdout) for count in (1000, 4000))
    assert long < 6 * short


def test_the_directory_for_a_compilers_files_is_private_and_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    status, output, log = _tempdir.run(
        lambda handle: ["/bin/sh", "-c", f'touch "$TMPDIR/file" && stat -c "%a %u" "$TMPDIR" >/proc/self/fd/{handle}'], b"")
    assert (status, log) == (0, "") and output.split() == [b"700", str(os.geteuid()).encode()]
    assert not list(tmp_path.iterdir())


def test_a_directory_that_another_made_first_is_not_used_for_a_compilers_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f"gpuglue-{os.getpid()}-{bytes(6).hex()}").mkdir(mode=0o777)
    status, output, _ = _tempdir.run(lambda handle: ["/bin/sh", "-c", f"echo used >/proc/self/fd/{handle}"], b"")
    assert status == 1 and output == b""
