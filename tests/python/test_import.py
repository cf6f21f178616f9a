"""The cost of `import gpuglue`: it must be cheap and load no vendor library."""

import ast
import os
import pathlib
import shutil

import pytest
from conftest import needed, run_python, succeeds

import gpuglue as gg

LIMIT_MIB = 15


def test_importing_loads_no_vendor_library_and_no_numpy():
    code = (
        "import sys, gpuglue\n"
        "maps = open('/proc/self/maps').read()\n"
        "print([n for n in ('libcuda', 'libamdhip64', 'libze_loader', 'gpuglue_', 'numpy') if n in maps],\n"
        "      'numpy' in sys.modules)"
    )
    assert succeeds(run_python(code)) == "[] False"


def test_importing_gpuglue_imports_only_its_core():
    code = (
        "import sys; before = set(sys.modules) | {'atexit'}; import gpuglue\n"  # some environments' site imports it
        "print(sorted(set(sys.modules) - before))"
    )
    assert succeeds(run_python(code)) == "['gpuglue', 'gpuglue._core']"


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the library of a sanitizer would be counted")
def test_importing_takes_less_time_than_the_interpreter_to_start_and_little_memory():
    """Processor time, relative to the interpreter's: independent of other programs and of the machine's speed."""
    code = (
        "import resource, time; peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before, start = peak(), time.process_time(); import gpuglue\n"
        "print((time.process_time() - start) / start, (peak() - before) / 1024)"
    )
    runs = [tuple(map(float, succeeds(run_python(code)).split())) for _ in range(5)]
    assert min(share for share, _ in runs) <= 1
    assert min(mib for _, mib in runs) <= LIMIT_MIB


def own_library():
    """The library of an installed package is beside the extension module (a system's package has it elsewhere)."""
    path = pathlib.Path(gg._core.__file__).resolve().parent / "_lib" / "libgpuglue.so"
    if not path.exists():
        pytest.skip("the package is not installed")
    return path


def test_the_library_that_was_loaded_is_the_packages_own():
    assert pathlib.Path(gg._core._library()[0]).samefile(own_library())


def test_another_copy_of_the_library_is_refused_naming_both(tmp_path):
    foreign = shutil.copy(own_library(), tmp_path)
    result = run_python("import gpuglue", LD_LIBRARY_PATH=str(tmp_path))
    assert result.returncode == 1 and "ImportError" in result.stderr
    assert foreign in result.stderr and str(own_library()) in result.stderr


def test_another_library_of_that_name_is_refused_naming_both(tmp_path):
    foreign = shutil.copy(needed("GPUGLUE_TEST_GATE", "libgate.so"), tmp_path / "libgpuglue.so")
    result = run_python("import gpuglue", LD_LIBRARY_PATH=str(tmp_path))
    assert result.returncode == 1 and "ImportError" in result.stderr
    assert str(foreign) in result.stderr and str(own_library().parent.parent) in result.stderr


def test_every_public_name_is_exported():
    public = {name for name in dir(gg._core) if not name.startswith("_")}
    assert public <= set(dir(gg)) and gg.__version__
    assert {"compile", "CompileError", "Image", "stack", "concatenate"} <= set(dir(gg))
    assert "TYPE_CHECKING" not in dir(gg)


def test_every_function_type_and_method_has_a_docstring():
    bare = []
    for name in (name for name in dir(gg._core) if not name.startswith("_")):
        value = getattr(gg, name)
        members = vars(value).items() if isinstance(value, type) and not issubclass(value, (Exception, tuple)) else ()
        bare += [name] if not value.__doc__ else []
        bare += [f"{name}.{key}" for key, member in members if not key.startswith("__") and not member.__doc__]
    assert bare == []


def is_foreign(member):
    """A name of other libraries, which only raises an AttributeError: see test_names.py."""
    return getattr(member, "__doc__", None) == "Of other libraries: not an attribute."


def test_the_stub_has_the_names_of_the_module():
    stub = ast.parse((pathlib.Path(gg.__file__).parent / "_core.pyi").read_text())
    types = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    names = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)} | set(types)
    names |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)} & {"_C_API"}
    assert names == {name for name in dir(gg._core) if not name.startswith("__")}
    for name in ("Device", "Stream", "Event", "Timer", "Buffer", "GPUArray"):
        members = {node.name for node in types[name].body if isinstance(node, ast.FunctionDef)}
        there = {key for key, value in vars(getattr(gg, name)).items() if not key.startswith("__") and not is_foreign(value)}
        assert {key for key in members if not key.startswith("__")} == there


def test_exceptions_are_also_the_built_in_ones():
    assert issubclass(gg.OutOfMemoryError, (gg.Error, MemoryError)) and issubclass(gg.OutOfMemoryError, MemoryError)
    assert issubclass(gg.InvalidArgumentError, ValueError) and issubclass(gg.DeviceLostError, gg.DeviceError)
    details = ("status", "backend", "device", "op", "code", "name", "text", "library", "library_version", "reports")
    assert all(getattr(gg.Error("x"), name) is None for name in details)
