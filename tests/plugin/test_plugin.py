"""examples/plugin: what it is a copy of, what it needs, and how gpuglue finds it as an installed package.

GPUGLUE_PLUGIN_PATH: the folder of gpuglue_mine.so as its Makefile built it. GPUGLUE_PYTHON: an interpreter that
has gpuglue installed; this one builds the package and does not need it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE, HOST = ROOT / "examples/plugin", ROOT / "backends/host"
PYTHON = os.environ.get("GPUGLUE_PYTHON", sys.executable)
FOUND = (
    "import sys, gpuglue as gg; (info,) = (i for i in gg.backends('active') if i.name == 'mine')\n"
    "print(info.status, info.plugin); print('gpuglue_mine' in sys.modules, 'numpy' in sys.modules)"
)


def renamed(text):
    """What becomes of the host backend's text under the plugin's name."""
    return re.sub(r"\bhost\.([ch])", r"mine.\1", re.sub(r"(?<!gpuglue/)\bhost_", "mine_", text))


@pytest.mark.parametrize("row", ["device.c", "memory.c", "copy.c", "stream.c", "event.c", "module.c", "launch.c", "block.c"])
def test_each_row_is_the_host_backends_under_another_name(row):
    assert (EXAMPLE / "src" / row).read_text() == renamed((HOST / row).read_text())


def test_the_plugin_has_every_operation_that_host_has():
    slots = re.compile(r"^    \.(\w+) = mine_\1,$", re.M)
    theirs, ours = ((EXAMPLE / "src/mine.c").read_text(), renamed((HOST / "host.c").read_text()))
    assert slots.findall(theirs) == slots.findall(ours) != []


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
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("*.so"))
    gpuglue = output(PYTHON, "-P", "-c", "import gpuglue, os; print(os.path.dirname(gpuglue.__file__))").strip()
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check")
    output(*build, "--outdir", str(folder), str(folder / "source"), PKG_CONFIG_PATH=f"{gpuglue}/_lib/pkgconfig")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def in_python(code, site, **environment):
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    variables = {name: value for name, value in os.environ.items() if name != "GPUGLUE_PLUGIN_PATH"}
    command = [PYTHON, "-P", "-c", code]
    return subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, env={**variables, "PYTHONPATH": path, **environment}
    ).stdout


def test_its_package_is_found_by_the_entry_point_and_not_imported(site):
    lines = in_python(FOUND, site).splitlines()
    assert lines == [f"available {site}/gpuglue_mine/gpuglue_mine.so", "False False"]


def test_its_package_serves_arrays(site):
    code = "import gpuglue as gg; a = gg.full(3, 7.0); print(a.device.backend, a.get().tolist())"
    assert in_python(code, site, GPUGLUE_BACKEND="mine") == "mine [7.0, 7.0, 7.0]\n"


def test_its_package_without_the_file_says_what_is_missing(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site/gpuglue_mine/gpuglue_mine.so").unlink()
    code = "import gpuglue as gg; print(*(f'{i.status}: {i.reason}' for i in gg.backends() if i.name == 'mine'))"
    said = in_python(code, tmp_path / "site")
    assert said.startswith("plugin-load-failed: entry point 'mine' = 'gpuglue_mine' of gpuglue.backends failed")
    assert f"there is no {tmp_path}/site/gpuglue_mine/gpuglue_mine.so" in said
