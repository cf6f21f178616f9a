"""What `import gpuglue` costs and touches: it must be cheap and load nothing of a vendor's."""

import ast
import os
import pathlib
import shutil

import pytest
from conftest import needed, run_python, succeeds

import gpuglue as gg

LIMIT_MS, LIMIT_MIB = 15, 15


def test_importing_loads_no_vendor_library_and_no_numpy():
    code = (
        "import sys, gpuglue\n"
        "maps = open('/proc/self/maps').read()\n"
        "print([n for n in ('libcuda', 'libamdhip64', 'libze_loader', 'gpuglue_', 'numpy') if n in maps],\n"
        "      'numpy' in sys.modules)"
    )
    assert succeeds(run_python(code)) == "[] False"


def test_importing_pulls_in_no_other_module():
    code = (
        "import sys; before = set(sys.modules); import gpuglue\n"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('gpuglue')))"
    )
    assert succeeds(run_python(code)) in ("['atexit']", "[]")  # some environments' site imports it


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer slows everything down")
def test_importing_takes_little_time_and_memory():
    code = (
        "import resource, time; peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before, start = peak(), time.perf_counter(); import gpuglue\n"
        "print((time.perf_counter() - start) * 1e3, (peak() - before) / 1024)"
    )
    runs = [tuple(map(float, succeeds(run_python(code)).split())) for _ in range(5)]
    assert min(ms for ms, _ in runs) <= LIMIT_MS
    assert min(mib for _, mib in runs) <= LIMIT_MIB


def own_library():
    """As the package comes: beside its compiled half (a system's package has it elsewhere)."""
    path = pathlib.Path(gg._core.__file__).resolve().parent / "_lib" / "libgpuglue.so"
    if not path.exists():
        pytest.skip("this is no installed package")
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


def test_every_function_type_and_method_has_a_docstring():
    bare = []
    for name in (name for name in dir(gg._core) if not name.startswith("_")):
        value = getattr(gg, name)
        members = vars(value).items() if isinstance(value, type) and not issubclass(value, (Exception, tuple)) else ()
        bare += [name] if not value.__doc__ else []
        bare += [f"{name}.{key}" for key, member in members if not key.startswith("__") and not member.__doc__]
    assert bare == []


def test_the_stub_has_the_names_that_there_are():
    stub = ast.parse((pathlib.Path(gg.__file__).parent / "_core.pyi").read_text())
    types = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    names = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)} | set(types)
    names |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)} & {"_C_API"}
    assert names == {name for name in dir(gg._core) if not name.startswith("__")}
    for name in ("Device", "Stream", "Event", "timer", "Buffer", "GPUArray"):
        members = {node.name for node in types[name].body if isinstance(node, ast.FunctionDef)}
        there = {key for key in vars(getattr(gg, name)) if not key.startswith("__")}
        assert {key for key in members if not key.startswith("__")} == there


def test_exceptions_are_also_the_built_in_ones():
    assert issubclass(gg.OutOfMemoryError, (gg.Error, MemoryError)) and issubclass(gg.OutOfMemoryError, MemoryError)
    assert issubclass(gg.InvalidArgumentError, ValueError) and issubclass(gg.DeviceLostError, gg.DeviceError)
    details = ("status", "backend", "device", "op", "code", "name", "text", "library", "library_version", "reports")
    assert all(getattr(gg.Error("x"), name) is None for name in details)
