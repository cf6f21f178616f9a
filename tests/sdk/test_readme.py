"""The commands in examples/extensions/README.md build the extensions, as they are written there."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from test_sdk import EXAMPLES, package_of

ROWS = re.findall(r"^\| `(\w+)\.(?:c|cpp)` \|[^|]*\| `(c(?:c|\+\+) .*?)` \|", (EXAMPLES / "README.md").read_text(), re.M)


def test_each_tool_has_a_command_of_its_own():
    """"The same with c++" is wrong: C's option for the stable ABI does not compile with pybind11."""
    assert {"zero_c", "zero_pybind11"} <= {name for name, _ in ROWS}


@pytest.mark.parametrize("name, command", ROWS, ids=lambda text: text.split(" ")[0])
def test_a_command_of_the_readme_builds_an_extension(name, command, tmp_path):
    if "pybind11" in command:
        package_of("pybind11")
    directory = tmp_path / "extensions"
    shutil.copytree(EXAMPLES, directory)
    config = tmp_path / "gpuglue-config"  # the wheel has it, this build does not
    config.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpuglue._config "$@"\n')
    config.chmod(0o755)
    path = f"{tmp_path}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", command], check=True, cwd=directory, env={**os.environ, "PATH": path})
    code = f"import {name}, gpuglue; g = gpuglue.ones(3); {name}.zero(g); assert not g.get().any()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=directory)
