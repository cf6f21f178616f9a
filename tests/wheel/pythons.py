"""Finds the Pythons of this machine and creates clean environments with them."""

import glob
import os
import subprocess
import sys

MINORS = (11, 12, 13, 14)
HANG = 900  # seconds: a time limit for a program


def version(path):
    question = "import sys, venv; print(*sys.version_info[:2])"
    try:
        result = subprocess.run([path, "-c", question], capture_output=True, text=True, timeout=HANG)
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def find():
    """{"3.11": path, …}: from PATH, or from pyenv's directories if PATH has only its shims."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for minor in MINORS:
        candidates = [f"python3.{minor}", *sorted(glob.glob(f"{root}/versions/3.{minor}.*/bin/python3"))]
        for path in candidates:
            if version(path) == f"3 {minor}":
                found.setdefault(f"3.{minor}", path)
    return found


class Environment:
    """A virtual environment without pip; the pip of this process installs into it."""

    def __init__(self, directory, python):
        self.directory = directory
        self.python = str(directory / "bin" / "python")
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", str(directory)], check=True)

    def install(self, *arguments):
        command = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet"]
        # The build tools of the environment that runs the tests, for an editable install.
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        # Without --no-compile all of NumPy would be compiled, of which a test imports little.
        subprocess.run([*command, "--disable-pip-version-check", "--no-compile", *map(str, arguments)], check=True,
                       env={**os.environ, "PATH": path})

    def run(self, code, **variables):
        """The output of code that runs in the environment's directory, away from the sources."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUGLUE_", "PYTHON", "LD_"))}
        kept["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        done = subprocess.run([self.python, "-c", code], cwd=self.directory, env={**kept, **variables},
                              capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
