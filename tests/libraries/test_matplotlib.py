"""The picture of `gpuglue bench`."""

import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")


def test_the_picture_of_a_benchmark_has_a_line_for_each_kind_of_copy(tmp_path):
    picture = tmp_path / "copies.svg"
    options = ("--seconds", "0.1", "--max-bytes", "70000", "--plot", str(picture))
    done = subprocess.run([sys.executable, "-P", "-m", "gpuglue", "bench", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = picture.read_text()
    kinds = ("to device", "from device", "on device", "pinned to device", "pinned from device")
    assert all(f"<!-- gpuglue, {kind} -->" in text for kind in kinds)
