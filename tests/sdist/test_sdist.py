"""The source distribution: a wheel built from it is the wheel of the checkout, and it has what the tests need.

GPUGLUE_WHEEL is the checkout's wheel."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason=f"{ROOT} is not a checkout, from which an sdist is made")


def build(kind, source, target):
    # Which files there are does not depend on the optimization, which takes half of the compilation.
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "-Csetup-args=-Doptimization=0", "--outdir", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(target.iterdir())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The directory of an unpacked sdist, which has no .git."""
    directory = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, directory / "packed")) as packed:
        packed.extractall(directory, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return next(path for path in directory.iterdir() if re.fullmatch(r"gpuglue-[\d.]+", path.name))


def files(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_a_wheel_built_from_it_has_the_files_of_the_wheel_of_the_checkout(unpacked, tmp_path):
    assert files(build("wheel", unpacked, tmp_path)) == files(os.environ["GPUGLUE_WHEEL"])


def test_it_has_every_committed_file(unpacked):
    listed = subprocess.run(["git", "ls-tree", "-rz", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [name for name in listed.split("\0") if name and not (unpacked / name).exists()] == []


def test_the_source_checks_find_its_sources(unpacked):
    def found(directory):
        command = [sys.executable, str(directory / "scripts/sources.py"), ".c", ".h", ".py"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")

    assert "core/base/env.c" in found(unpacked)
    assert found(unpacked) == [name for name in found(ROOT) if not name or (unpacked / name).exists()]
