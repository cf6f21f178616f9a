"""examples/plugin: its operations and dependencies, and how gpuglue finds it as an installed package.

GPUGLUE_PLUGIN_PATH: the directory of gpuglue_mine.so as its Makefile built it. GPUGLUE_PYTHON: an interpreter that
has gpuglue installed; this one builds the package and does not need it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import conformance
import copy_host
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE, HOST = ROOT / "examples/plugin", ROOT / "backends/host"
PYTHON = os.environ.get("GPUGLUE_PYTHON", sys.executable)
FOUND = (
    "import sys, gpuglue as gg; (info,) = (i for i in gg.backends('active') if i.name == 'mine')\n"
    "print(info.status, info.plugin); print('gpuglue_mine' in sys.modules, 'numpy' in sys.modules)"
)


def test_the_example_has_the_required_operations_and_no_others():
    slots = re.findall(r"^    \.(\w+) = mine_\1,$", (EXAMPLE / "src/mine.c").read_text(), re.M)
    assert slots == re.findall(r"^OP\((\w+), GG_REQUIRED\)", conformance.OPS.read_text(), re.M)


def test_the_copy_of_host_has_every_operation_that_host_has(tmp_path):
    missing = re.compile(r"^#define (?:host|mine)_(\w+) NULL", re.M)
    copy_host.main(tmp_path)
    copied = (tmp_path / "mine.c").read_text()
    assert missing.findall(copied) == missing.findall((HOST / "host.c").read_text()) != []
    assert ".slot = mine_##slot," in copied


def output(*command, **environment):
    variables = {**os.environ, **environment}
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=variables).stdout


def test_it_exports_one_symbol_and_needs_none_of_ours():
    plugin = pathlib.Path(os.environ["GPUGLUE_PLUGIN_PATH"]) / "gpuglue_mine.so"
    exported = output("nm", "-D", "--defined-only", str(plugin)).split()[2::3]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(plugin)))
    assert exported == ["gg_backend_query"]
    assert {name.split(".so")[0] for name in needed} <= {"libc", "libpthread"}


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The example as an installed package: its wheel, built away from this tree, unpacked."""
    directory = tmp_path_factory.mktemp("package")
    shutil.copytree(EXAMPLE, directory / "source", ignore=shutil.ignore_patterns("build"))
    gpuglue = output(PYTHON, "-P", "-c", "import gpuglue, os; print(os.path.dirname(gpuglue.__file__))").strip()
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check")
    output(*build, "--outdir", str(directory), str(directory / "source"), PKG_CONFIG_PATH=f"{gpuglue}/_lib/pkgconfig")
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def in_python(code, site, *options, cwd=None, **environment):
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    variables = {name: value for name, value in os.environ.items() if name != "GPUGLUE_PLUGIN_PATH"}
    command = [PYTHON, *(options or ["-P"]), "-c", code]
    return subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, cwd=cwd, env={**variables, "PYTHONPATH": path, **environment}
    ).stdout


def test_its_package_is_found_by_the_entry_point_and_not_imported(site):
    lines = in_python(FOUND, site).splitlines()
    assert lines == [f"available {site}/gpuglue_mine/gpuglue_mine.so", "False False"]


def test_its_package_is_found_from_its_own_directory_too(site):
    lines = in_python(FOUND, site, "-u", cwd=EXAMPLE).splitlines()
    assert lines[0] == f"available {site}/gpuglue_mine/gpuglue_mine.so"


def test_its_package_serves_arrays(site):
    code = "import gpuglue as gg; a = gg.full(3, 7.0); print(a.device.backend, a.get().tolist())"
    assert in_python(code, site, GPUGLUE_BACKEND="mine") == "mine [7.0, 7.0, 7.0]\n"


def test_its_package_without_the_file_reports_what_is_missing(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site/gpuglue_mine/gpuglue_mine.so").unlink()
    code = "import gpuglue as gg; print(*(f'{i.status}: {i.reason}' for i in gg.backends() if i.name == 'mine'))"
    said = in_python(code, tmp_path / "site")
    assert said.startswith("plugin-load-failed: entry point 'mine' = 'gpuglue_mine' of gpuglue.backends failed")
    assert f"there is no {tmp_path}/site/gpuglue_mine/gpuglue_mine.so" in said
