"""Build the example library and its Python module: SWIG, then the compiler, then import.

    python build.py [--backend host|cuda] [--out DIRECTORY] [--wrapper FILE] [--generate DIRECTORY]

A step is skipped if its result is given, so a machine without SWIG or without a compiler can use
the result of another machine:

    python build.py --generate DIRECTORY            SWIG only: example.py and example_wrap.cxx
    python build.py --backend cuda --out DIRECTORY  SWIG and nvcc
    python build.py --wrapper DIRECTORY/example_wrap.cxx
"""

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
WRAPPER = "example_wrap.cxx"
MODULE = "_example.abi3.so"
SWIG = "swig==4.5.1"  # as a Python package
LIMITED_API = "-DPy_LIMITED_API=0x030b0000"  # one file for Python 3.11 and newer


class CannotBuild(Exception):
    """A program or header that the build needs is missing; the message names it."""


def run(command: list[Any], **options: Any) -> None:
    """Run a program; its output is shown only when it fails."""
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        raise CannotBuild(f"{' '.join(str(word) for word in command)} failed:\n{done.stdout}")


def swig_command(scratch: Path) -> tuple[list[str], dict[str, Any]]:
    """SWIG as a command: on PATH, beside this Python, or installed from the package index."""
    beside = Path(sys.executable).parent / "swig"
    found = shutil.which("swig") or (str(beside) if beside.exists() else None)
    if found:
        return [found], {}
    target = scratch / "swig"
    if not target.exists():
        install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run([*install, "--target", target, SWIG])
    environment = dict(os.environ, PYTHONPATH=str(target))
    return [sys.executable, "-c", "from swig import swig; swig()"], {"env": environment}


def generate(out: Path) -> Path:
    """Run SWIG, which writes the wrapper and example.py to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        command, options = swig_command(out)
    except CannotBuild as error:
        raise CannotBuild(f"SWIG is not installed and cannot be downloaded: {error}") from error
    arguments = ["-c++", "-python", "-o", out / WRAPPER, "-outdir", out, HERE / "example.i"]
    run([*command, *arguments], **options)
    return out / WRAPPER


def need(program: str, reason: str) -> str:
    """The path of a program; raises CannotBuild without it."""
    found = shutil.which(program)
    if not found:
        raise CannotBuild(f"{program} is not installed: {reason}")
    return found


def compile_host(wrapper: Path, out: Path, include: Path) -> None:
    """The C++ build for the host backend."""
    compiler = need(os.environ.get("CXX", "g++"), "the host build needs a C++ compiler")
    sources = [HERE / "reduce.cpp", HERE / "device_array.cpp", wrapper]
    flags = ["-O2", "-std=c++17", "-shared", "-fPIC", "-static-libstdc++", LIMITED_API]
    run([compiler, *flags, "-I", HERE, "-I", include, *sources, "-o", out / MODULE])


def compile_cuda(wrapper: Path, out: Path, include: Path) -> None:
    """The CUDA build, for the GPU of this machine, or without one for all major architectures."""
    compiler = need("nvcc", "the CUDA build needs NVIDIA's compiler")
    arch = "native" if Path("/dev/nvidiactl").exists() else "all-major"
    sources = [HERE / "reduce.cu", HERE / "device_array.cpp", wrapper]
    flags = ["-O2", "-std=c++17", "-shared", f"-arch={arch}", LIMITED_API]
    flags += ["-Xcompiler", "-fPIC,-static-libstdc++"]
    run([compiler, *flags, "-I", HERE, "-I", include, *sources, "-o", out / MODULE])


COMPILERS = {"host": compile_host, "cuda": compile_cuda}


def build(backend: str, out: Path, wrapper: Path | None = None) -> None:
    """Make example.py and its extension module in `out`; files that exist are kept."""
    if backend not in COMPILERS:
        raise CannotBuild(f"this library has no build for {backend}; it has {', '.join(COMPILERS)}")
    out.mkdir(parents=True, exist_ok=True)
    if wrapper is None:
        wrapper = generate(out)
    else:
        shutil.copy(Path(wrapper).parent / "example.py", out)
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        raise CannotBuild(f"Python's headers are not installed ({include}/Python.h)")
    COMPILERS[backend](Path(wrapper), out, include)


def load(directory: Path) -> ModuleType:
    """Import `example` from a directory."""
    sys.path.insert(0, str(directory))
    try:
        return importlib.import_module("example")
    finally:
        sys.path.remove(str(directory))


def obtain(backend: str, scratch: Path, carried: Path | None = None) -> ModuleType:
    """The module for a backend: carried and ready, from a carried wrapper, or built here.

    `carried` is a directory from another machine: <backend>/ with the finished module, or
    wrapper/ with the output of SWIG.
    """
    ready = Path(carried or scratch) / backend
    if (ready / MODULE).exists():
        return load(ready)
    wrapper = Path(carried or scratch) / "wrapper" / WRAPPER
    build(backend, Path(scratch) / backend, wrapper if wrapper.exists() else None)
    return load(Path(scratch) / backend)


def carry(directory: Path) -> None:
    """Fill a directory for obtain(): the wrapper, and each build that is possible on this machine."""
    wrapper = generate(directory / "wrapper")
    shutil.rmtree(directory / "wrapper" / "swig", ignore_errors=True)
    for backend in COMPILERS:
        try:
            build(backend, directory / backend, wrapper)
        except CannotBuild as error:
            print(f"{backend}: not built: {error}")


def main() -> None:
    """Build, import, and sum once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", default="host", choices=COMPILERS)
    parser.add_argument("--out", type=Path, default=HERE / "build", help="the output directory")
    parser.add_argument("--wrapper", type=Path, help="a wrapper that SWIG generated elsewhere")
    parser.add_argument("--generate", type=Path, metavar="DIRECTORY", help="run SWIG only")
    parser.add_argument("--carry", type=Path, metavar="DIRECTORY", help="make everything that obtain() uses")
    options = parser.parse_args()
    try:
        if options.generate:
            return print(generate(options.generate))
        if options.carry:
            return carry(options.carry)
        build(options.backend, options.out, options.wrapper)
    except CannotBuild as error:
        sys.exit(f"cannot build: {error}")
    print("built", options.out / MODULE)


if __name__ == "__main__":
    main()
