"""`make release`: the source distribution has addresses, and the recipes for conda-forge and Spack agree with pyproject.toml."""

import hashlib
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
URL = "https://example.org/gpuglue"
VERSION = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text()).group(1)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason=f"{ROOT} is not a checkout, of which a release is made")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    out = tmp_path_factory.mktemp("release")
    subprocess.run([sys.executable, ROOT / "packaging/release.py", URL, out, "--no-wheel"], check=True)
    return out


@pytest.fixture(scope="module")
def sdist(release):
    (path,) = release.glob("*.tar.gz")
    return path


def member(sdist, name):
    with tarfile.open(sdist) as packed:
        return packed.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/{name}").read().decode()


def required(kind):
    """The names of the packages that a build or the installed package needs."""
    lines = PYPROJECT["build-system"]["requires"] if kind == "build" else PYPROJECT["project"]["dependencies"]
    return {re.match(r"[\w-]+", line)[0]: line[re.match(r"[\w-]+", line).end():] for line in lines}  # fmt: skip


# ---- the source distribution ------------------------------------------------------------------------------------


def test_the_metadata_has_the_addresses(sdist):
    text = member(sdist, "PKG-INFO")
    labels = ("Homepage", "Documentation", "Source", "Issues", "Changelog")
    assert [label for label in labels if f"Project-URL: {label}, {URL}" not in text] == []


def test_no_link_of_the_description_is_relative(sdist):
    links = re.findall(r"\]\(([^)\s]+)\)", member(sdist, "PKG-INFO"))
    assert links and [link for link in links if not link.startswith(("https://", "#"))] == []


def test_each_absolute_link_leads_to_a_file_of_this_tree(sdist):
    paths = re.findall(rf"{URL}/blob/v[\d.]+/([^)#\s,]+)", member(sdist, "PKG-INFO"))
    assert paths and [path for path in paths if not (ROOT / path).exists()] == []


def test_an_address_that_is_none_is_refused(tmp_path):
    command = [sys.executable, ROOT / "packaging/release.py", "gpuglue.git", tmp_path]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2 and "'gpuglue.git': expected the address of the repository" in refused.stderr


# ---- conda-forge ------------------------------------------------------------------------------------------------


@pytest.fixture
def conda(release):
    text = (release / "conda/recipe.yaml").read_text()
    assert "@" not in text
    return text


def test_the_conda_recipe_names_the_source_distribution_by_its_hash(conda, sdist):
    assert f"sha256: \"{hashlib.sha256(sdist.read_bytes()).hexdigest()}\"" in conda and sdist.name in conda


@pytest.mark.parametrize("kind", ["build", "run"])
def test_the_conda_recipe_requires_what_pyproject_does(conda, kind):
    section = conda.split("  host:\n" if kind == "build" else "  run:\n")[1]
    lines = re.match(r"(    - .*\n)+", section)[0].splitlines()
    found = dict((*line.strip("- ").split(" ", 1), "")[:2] for line in lines)
    assert required(kind).items() <= found.items()
    assert f"python_min: \"{PYPROJECT['project']['requires-python'].removeprefix('>=')}\"" in conda


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64"])
def test_rattler_build_renders_the_recipe(conda, platform):
    rattler = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed (scripts/requirements-full.txt)")
    config = rattler.RenderConfig(platform=rattler.PlatformConfig(target_platform=platform))
    variants = rattler.VariantConfig({"c_compiler": ["gcc"], "c_stdlib": ["sysroot"]})
    (rendered,) = rattler.Stage0Recipe.from_yaml(conda).render(variants, config)
    assert (rendered.recipe.package.name, str(rendered.recipe.package.version)) == ("gpuglue", VERSION)
    assert "gcc_linux" in str(rendered.recipe.requirements.build[0])


def test_the_commands_by_which_conda_tests_the_package_work(conda):
    commands = [line.strip("- ") for line in conda.split("  - script:\n")[1].splitlines() if line.startswith("      - ")]
    assert len(commands) == 2
    for command in commands:
        line = command.replace("gpuglue --version", f"{sys.executable} -P -m gpuglue --version").replace("python -c", f"{sys.executable} -P -c")
        subprocess.run(line, shell=True, check=True)


# ---- Spack ------------------------------------------------------------------------------------------------------


class Recorded:
    """What a package declares, by directive."""

    def __init__(self):
        self.calls = []

    def directive(self, name):
        return lambda *arguments, **options: self.calls.append((name, arguments, options))

    def of(self, name):
        return [(arguments, options) for called, arguments, options in self.calls if called == name]


@pytest.fixture
def spack(release, monkeypatch):
    """The package, executed with stand-ins for Spack's modules: their names are those of Spack 1.0."""
    recorded = Recorded()
    modules = ("spack", "spack.package", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems",
               "spack_repo.builtin.build_systems.python")  # fmt: skip
    for name in modules:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    for name in ("license", "version", "depends_on", "conflicts"):
        setattr(sys.modules["spack.package"], name, recorded.directive(name))
    sys.modules[modules[-1]].PythonPackage = type("PythonPackage", (), {})
    recorded.package = runpy.run_path(str(release / "spack/py_gpuglue/package.py"))["PyGpuglue"]
    return recorded


def test_the_spack_package_names_the_source_distribution_by_its_hash(spack, sdist):
    ((arguments, options),) = spack.of("version")
    assert (arguments, options["sha256"]) == ((VERSION,), hashlib.sha256(sdist.read_bytes()).hexdigest())
    assert spack.package.url.endswith(sdist.name) and spack.package.homepage == URL
    assert spack.of("license") == [((PYPROJECT["project"]["license"],), {})]


@pytest.mark.parametrize("kind", ["build", "run"])
def test_the_spack_package_requires_what_pyproject_does(spack, kind):
    declared = {arguments[0] for arguments, options in spack.of("depends_on") if kind in options["type"]}
    here = ("meson", "ninja", "patchelf")  # Spack's own packages, which are not Python's
    wanted = {("" if name in here else "py-") + name + (f"@{version.removeprefix('>=')}:" if version else "")
              for name, version in required(kind).items()}  # fmt: skip
    assert wanted <= declared
    assert f"python@{PYPROJECT['project']['requires-python'].removeprefix('>=')}:" in declared
