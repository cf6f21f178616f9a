"""Today's library against the description of the first one of ABI 1: no function or type that programs use has changed.

GPUGLUE_LIBRARY is the library, with debugging information. v1/libgpuglue.abi.xz was written by

    abidw --headers-dir core/include --drop-private-types --no-corpus-path --no-comp-dir-path

whose format all later versions of libabigail read."""

import lzma
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FIRST = ROOT / "tests/abi/v1"
USAGE_ERROR, CHANGED = 1 | 2, 4 | 8  # bits of the exit status

pytestmark = pytest.mark.skipif(not shutil.which("abidiff"), reason="abidiff is not installed (apt-get install abigail-tools)")


def compared(first, library):
    """The report of abidiff, empty if nothing but additions was found."""
    additions = ("--no-added-syms", "--suppressions", str(FIRST / "added.suppr"))
    done = subprocess.run(["abidiff", *additions, str(first), str(library)], capture_output=True, text=True)
    assert not done.returncode & USAGE_ERROR, done.stdout + done.stderr
    return done.stdout if done.returncode & CHANGED else ""


@pytest.fixture
def first(tmp_path):
    path = tmp_path / "libgpuglue.abi"
    path.write_bytes(lzma.decompress((FIRST / "libgpuglue.abi.xz").read_bytes()))
    return path


def test_functions_and_types_are_those_of_the_first_library_of_this_abi(first):
    assert compared(first, os.environ["GPUGLUE_LIBRARY"]) == ""


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("name='gg_stream_wait'", "name='gg_stream_await'", "Removed"),
        ("name='gg_tried' size-in-bits='128'", "name='gg_tried' size-in-bits='64'", "gg_tried"),
    ],
)
def test_a_function_or_a_type_that_differs_is_reported(first, old, new, reported):
    text = first.read_text()
    assert old in text
    first.write_text(text.replace(old, new))
    assert reported in compared(first, os.environ["GPUGLUE_LIBRARY"])
