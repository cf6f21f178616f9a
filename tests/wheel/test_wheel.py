"""The wheel runs on the platforms of its tag, and the checker detects problems that would prevent it."""

import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import check_wheel


def test_the_wheel_has_no_problem(wheel):
    problems, _, _ = check_wheel.check(wheel)
    assert problems == []


def test_the_wheel_is_smaller_than_its_limit(wheel):
    if (compiler := check_wheel.compiler_version()) != check_wheel.SIZED_COMPILER:
        pytest.skip(f"the limit is that of gcc {check_wheel.SIZED_COMPILER}; the major version of this gcc is {compiler or 'unknown'}")
    assert list(check_wheel.size_problems(wheel)) == []


RENAMED = re.compile(r"(?:__isoc\d+_)?((?:v?[fs]?scanf|strto(?:l|ul|ll|ull|imax|umax)))")  # by headers of glibc from 2.38 on


def test_functions_that_newer_headers_rename_are_bound_to_the_old_names(wheel):
    """Else a wheel that is built on Debian 13 needs the glibc of Debian 13, or is refused."""
    header = (Path(__file__).parents[2] / "core/base/glibc_compat.h").read_text()
    with zipfile.ZipFile(wheel) as archive:
        named = set().union(*(binary.undefined for binary in check_wheel.binaries(archive)))
    used = {found[1] for name in named if (found := RENAMED.fullmatch(name))}
    assert {"strtol", "sscanf"} <= used <= set(re.findall(r"OLD_AS\(__isoc23_(\w+), ", header))


def test_the_file_name_is_the_tag_that_the_symbols_allow(wheel):
    _, tag, _ = check_wheel.check(wheel)
    assert re.fullmatch(rf"gpuglue-[\d.]+-cp311-abi3-{tag}\.whl", wheel.name)


def test_core_and_plugins_lie_in_one_directory(wheel):
    _, _, found = check_wheel.check(wheel)
    libraries = {b.name for b in found} - {check_wheel.EXTENSION}
    assert {name.rpartition("/")[0] for name in libraries} == {"gpuglue/_lib"}


def test_the_wheel_contains_the_documents_and_examples_of_the_tree(wheel):
    root = Path(__file__).parents[2]
    lists = subprocess.run([sys.executable, root / "scripts/documents.py"], check=True, capture_output=True, text=True)
    with zipfile.ZipFile(wheel) as archive:
        inside = {name.partition("/_documents/")[2]: archive.read(name) for name in archive.namelist() if "/_documents/" in name}
    assert inside == {name: (root / name).read_bytes() for name in lists.stdout.split()}


# Each row: the source, how it is linked, and the checker's message about it as a plugin.
QUERY = "int gg_backend_query(void); int gg_backend_query(void) { return 0; }\n"
BAD_PLUGINS = {
    "links the vendor's library": (QUERY, ["-Wl,--no-as-needed", "-L.", "-l:libcuda.so.1"], "links libcuda.so.1"),
    "needs a newer glibc": (
        QUERY + "#include <dlfcn.h>\nvoid *gg_backend_query2(void);\n"
        "static void *open_it(void) { return dlopen(0, 1); }\nvoid *(*volatile keep)(void) = open_it;\n",
        [], "needs GLIBC_2.34"),
    "has an undefined symbol": (QUERY + "extern int cuInit(int); int f(void); int f(void) { return cuInit(0); }\n",
                             [], "imports cuInit"),
    "uses Python": (QUERY + "extern int Py_IsInitialized(void); int f(void);\nint f(void) { return Py_IsInitialized(); }\n",
                    [], "imports Py_IsInitialized"),
    "exports more than its entry": (QUERY + "int helper(void); int helper(void) { return 1; }\n", [], "exports helper"),
    "runs code when it is loaded": (QUERY + "__attribute__((constructor)) static void at_load(void) {}\n",
                                    [], "has a constructor"),
    "runs code at exit": (QUERY + "__attribute__((destructor)) static void at_exit_(void) {}\n", [], "has a destructor"),
    "searches a fixed directory": (QUERY, ["-Wl,-rpath,/usr/local/lib"], "has '/usr/local/lib' in its RUNPATH"),
    "needs an executable stack": (QUERY, ["-Wl,-z,execstack"], "needs an executable stack"),
}


def compile_library(directory, name, source, arguments=()):
    (directory / "source.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "-o", name, "source.c", *arguments]
    subprocess.run(command, cwd=directory, check=True)
    return (directory / name).read_bytes()


def changed(wheel, directory, replace=None, links=()):
    """A copy of the wheel with replaced files and with symbolic links."""
    copy = directory / wheel.name
    replace = dict(replace or {})
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            data = replace.pop(info.filename, old.read(info))
            if data is not None:
                new.writestr(info, data)
        for name, data in replace.items():
            new.writestr(name, data)
        for name in links:
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            new.writestr(info, "target")
    return copy


def problems_of(wheel):
    return "\n".join(check_wheel.check(wheel)[0])


@pytest.mark.parametrize("name", BAD_PLUGINS)
def test_the_checker_refuses_a_plugin_that(name, wheel, tmp_path):
    source, arguments, expected = BAD_PLUGINS[name]
    compile_library(tmp_path, "libcuda.so.1", "int cuInit(int f); int cuInit(int f) { return f; }\n",
                    ["-Wl,-soname,libcuda.so.1"])
    plugin = compile_library(tmp_path, "plugin.so", source, arguments)
    bad = changed(wheel, tmp_path, {"gpuglue/_lib/gpuglue_bad.so": plugin})
    assert f"gpuglue/_lib/gpuglue_bad.so {expected}" in problems_of(bad)


def test_the_checker_refuses_an_extension_outside_the_stable_abi(wheel, tmp_path):
    source = "extern char *PyUnicode_AsUTF8(void *); char *PyInit__core(void);\n"
    source += "char *PyInit__core(void) { return PyUnicode_AsUTF8(0); }\n"
    data = compile_library(tmp_path, "_core.so", source)
    bad = changed(wheel, tmp_path, {check_wheel.EXTENSION: data})
    assert "imports PyUnicode_AsUTF8, which is not in the stable ABI" in problems_of(bad)
    assert "it would not find libgpuglue" in problems_of(bad)


def test_the_checker_refuses_a_library_of_another_machine_and_one_for_small_pages(wheel, tmp_path):
    """AArch64 has pages of up to 64 KiB; a library whose segments are aligned to less does not load there."""
    data = bytearray(compile_library(tmp_path, "plugin.so", QUERY, ["-Wl,-z,max-page-size=4096"]))
    data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64 in e_machine
    bad = changed(wheel, tmp_path, {"gpuglue/_lib/gpuglue_bad.so": bytes(data)})
    assert "gpuglue/_lib/gpuglue_bad.so is for aarch64, but the wheel's platform is manylinux" in problems_of(bad)
    assert "gpuglue/_lib/gpuglue_bad.so is aligned to 4096 bytes: it does not load where pages have 65536" in problems_of(bad)


def test_the_checker_refuses_a_symbolic_link(wheel, tmp_path):
    bad = changed(wheel, tmp_path, links=["gpuglue/_lib/libgpuglue.so.0"])
    assert "gpuglue/_lib/libgpuglue.so.0 is a symbolic link" in problems_of(bad)


def test_the_checker_refuses_a_missing_file(wheel, tmp_path):
    bad = changed(wheel, tmp_path, {"gpuglue/py.typed": None})
    assert "gpuglue/py.typed is missing" in problems_of(bad)


def test_the_checker_refuses_a_large_wheel(wheel, tmp_path):
    import random

    bad = changed(wheel, tmp_path, {"gpuglue/large": random.Random(1).randbytes(1_000_000)})
    assert "the limit is 1000000" in "".join(check_wheel.size_problems(bad))
    assert list(check_wheel.size_problems(bad, "14")) == []  # a user who builds it with another compiler is not stopped


@pytest.mark.parametrize("line, version", [
    ("cc (Debian 12.2.0-14+deb12u1) 12.2.0", "12"), ("gcc (Ubuntu 13.2.0-23ubuntu4) 13.2.0", "13"), ("x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0", "14"),
    ("gcc (GCC) 15.1.1 20250425 (Red Hat 15.1.1-1)", "15"), ("Debian clang version 14.0.6", ""), ("clang version 18.1.3", ""),
])  # fmt: skip
def test_the_version_of_the_compiler_is_read_from_its_first_line(line, version, tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\necho '{line}'\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"{compiler} -m64")
    assert check_wheel.compiler_version() == version


def tagged(wheel, directory, python):
    """The wheel with the tag that meson-python gives it where this Python builds it."""
    command = [sys.executable, "-m", "wheel", "tags", "--python-tag", python, str(shutil.copy(wheel, directory))]
    return directory / subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]


def test_a_wheel_that_a_newer_python_builds_gets_the_tag_of_the_stable_abi_that_it_needs(wheel, tmp_path, monkeypatch):
    monkeypatch.setattr(check_wheel, "compress", lambda path: None)  # takes long, and has a test of its own
    built = tagged(wheel, tmp_path, "cp313")
    problems, tag, _ = check_wheel.check(built)
    assert problems == []
    copy = check_wheel.retag(built, tag, tmp_path / "out")
    assert re.fullmatch(rf"gpuglue-[\d.]+-cp311-abi3-{tag}\.whl", copy.name)
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    with zipfile.ZipFile(copy) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        assert re.findall(r"^Tag: (.*)", archive.read(metadata).decode(), re.M) == [f"cp311-abi3-{tag}"]


@pytest.mark.parametrize("python, accepted", [("cp312", True), ("cp320", True), ("cp310", False), ("cp39", False), ("py3", False)])
def test_the_checker_accepts_only_wheels_for_the_stable_abi_of_python_3_11_and_newer(python, accepted, wheel, tmp_path):
    with zipfile.ZipFile(tagged(wheel, tmp_path, python)) as archive:
        problems = list(check_wheel.metadata_problems(archive))
    assert bool(problems) != accepted and all("is not tagged for the stable ABI" in problem for problem in problems)


def test_a_compressed_copy_is_smaller_and_has_the_same_members(wheel, tmp_path):
    def members(path):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            return [(info.filename, info.external_attr, info.date_time, archive.read(info)) for info in archive.infolist()]

    names = ["gpuglue/py.typed", "gpuglue/_command.py", "gpuglue/_lib/gpuglue_cuda.so"]  # an empty file, a text, a library
    copy = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
        for name in names:
            info = old.getinfo(name)
            new.writestr(info, old.read(info))
    before, size = members(copy), copy.stat().st_size
    check_wheel.compress(copy)
    assert members(copy) == before and copy.stat().st_size < size


def test_a_newer_glibc_gives_a_newer_tag():
    class Needs:
        machine = "x86_64"

        def __init__(self, *versions):
            self.versions = set(versions)

    assert check_wheel.platform_tag([Needs("GLIBC_2.2.5"), Needs("GLIBC_2.14")]) == "manylinux_2_17_x86_64"
    assert check_wheel.platform_tag([Needs("GLIBC_2.2.5"), Needs("GLIBC_2.27")]) == "manylinux_2_28_x86_64"
