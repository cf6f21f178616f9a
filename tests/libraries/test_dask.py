"""Dask with plain `distributed`: sizes of arrays by the entry point, and arrays that move between workers."""

import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def metadata(directory):
    """What pip would install: the entry points of pyproject.toml, which a build that is only copied lacks."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    installed = directory / "gpuglue-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: gpuglue\nVersion: 0\n")
    lines = [f"[dask.sizeof]\n{name} = {target}\n" for name, target in groups["dask.sizeof"].items()]
    (installed / "entry_points.txt").write_text("".join(lines))


def test_dask_counts_the_bytes_of_arrays_and_moves_them_between_workers(tmp_path):
    pytest.importorskip("distributed")
    metadata(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = pathlib.Path(__file__).with_name("dask_program.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr
