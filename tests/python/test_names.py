"""Names that users type out of habit: other libraries' attributes, arguments and backends, and messages that name ours."""

import json
import os
import re
import subprocess
import sys

import kernels
import pytest
from conftest import HANG, NO_GPU, run_python, succeeds

import gpuglue as gg
from gpuglue._doctor_case import ALIASES
from gpuglue._foreign_names import OURS

# Attributes, and what the error names.
FOREIGN = {
    "Device": {"use": "set_current()", "sync": "synchronize()", "properties": "attributes", "compute_capability": "arch",
               "allocate": "alloc(nbytes, device)", "create_stream": "Stream(device)"},
    "Stream": {"sync": "synchronize()", "query": "done", "wait_event": "wait(event)", "ptr": "handle", "begin_capture": "capture(stream)"},
    "Event": {"elapsed_time": "elapsed_since(start)", "sync": "synchronize()", "query": "done"},
    "GPUArray": {"sum": "get().sum()", "cpu": "get()", "numpy": "get()", "to": "to_device(device)", "clone": "copy()",
                 "data_ptr": "ptr", "device_data": "ptr", "to_host": "get()"},
    "Buffer": {"free": "close()", "size": "nbytes", "copy_to": "copy(target, buffer)"},
    "Pool": {"set_limit": "limit", "used_bytes": "stats().used_bytes", "free_all_blocks": "trim()"},
}  # fmt: skip


@pytest.fixture
def objects(device):
    made = {"Device": device, "Stream": gg.Stream(device), "Event": gg.Event(device), "GPUArray": gg.zeros(2, device=device), "Buffer": gg.alloc(4, device),
            "Pool": device.pool}  # fmt: skip
    yield made
    for name in ("Stream", "Event", "Buffer"):
        made[name].close()


@pytest.mark.parametrize("kind, name", [(kind, name) for kind in FOREIGN for name in FOREIGN[kind]])
def test_an_attribute_of_another_library_names_ours_and_is_not_listed(objects, kind, name):
    with pytest.raises(AttributeError) as caught:
        getattr(objects[kind], name)
    assert str(caught.value).startswith(f"'gpuglue.{kind}' object has no attribute '{name}': use ") and FOREIGN[kind][name] in str(caught.value)
    assert not hasattr(objects[kind], name) and name not in dir(objects[kind])


def test_an_attribute_of_another_library_of_a_kernel_names_ours(device):
    kernel = kernels.load(device)["scale"]
    with pytest.raises(AttributeError, match="'gpuglue.Kernel' object has no attribute 'prepare': use bind"):
        kernel.prepare("P")
    assert "prepare" not in dir(kernel) and "bind" in dir(kernel)


@pytest.mark.parametrize("kind, name, ours", [("Stream", "from_handle", "Stream.borrow(handle)"), ("Device", "count", "len(devices())")])
def test_a_call_of_another_librarys_class_names_ours(objects, kind, name, ours):
    for called in getattr(gg, kind), objects[kind]:
        with pytest.raises(AttributeError) as caught:
            getattr(called, name)(1, key=2)
        assert str(caught.value) == f"type object 'gpuglue.{kind}' has no attribute '{name}': use {ours}"
    assert name not in dir(objects[kind])


def test_messages_about_attributes_have_one_form_of_the_type(objects):
    for kind, one in objects.items():
        foreign = next(iter(FOREIGN[kind]))
        messages = []
        for name in foreign, "no_such_name":
            with pytest.raises(AttributeError) as caught:
                getattr(one, name)
            messages.append(str(caught.value).partition(" object has")[0])
        assert messages[0] == messages[1]


TYPES = {"array": gg.GPUArray, "stream": gg.Stream, "end": gg.Event, "Device": gg.Device, "Stream": gg.Stream}


@pytest.mark.parametrize("name", OURS)
def test_a_function_of_another_library_names_ours_and_is_not_listed(name):
    with pytest.raises(AttributeError, match=f"module 'gpuglue' has no attribute '{name}': use ") as caught:
        getattr(gg, name)
    ours = str(caught.value).partition(": use ")[2]
    functions = set(re.findall(r"(?<![.\w])([A-Za-z]\w*)(?=\()", ours)) - {"len", "kernel"} | set(re.findall(r"gpuglue\.(\w+)", ours))
    methods = [(TYPES[kind], method) for kind, method in re.findall(r"\b([A-Za-z]+)(?:\([^)]*\))?\.(\w+)", ours) if kind != "gpuglue"]
    assert functions or methods or hasattr(gg, ours) or ours.startswith("kernel(") or ours.startswith("exceptions"), ours
    assert all(hasattr(gg, one) for one in functions) and all(hasattr(kind, method) for kind, method in methods), ours
    assert name not in dir(gg)


def test_dir_lists_every_attribute_that_there_is(objects):
    assert {"synchronize", "done", "handle", "wait"} <= set(dir(objects["Stream"]))
    assert {"elapsed_since", "done"} <= set(dir(objects["Event"])) and {"get", "set", "shape"} <= set(dir(objects["GPUArray"]))


def test_an_argument_of_another_library_names_ours(device):
    with pytest.raises(TypeError, match="there is no argument 'non_blocking': use nonblocking="):
        gg.Stream(device, non_blocking=True)
    with pytest.raises(TypeError, match="there is no argument 'enable_timing': use timing="):
        gg.Event(enable_timing=True)
    with pytest.raises(TypeError, match="colour"):
        gg.Stream(device, colour=1)


def test_a_source_given_to_module_is_reported_as_one(device):
    for text in ('extern "C" __global__ void f() {}', ".version 8.0\n.target sm_80\n"):
        with pytest.raises(gg.InvalidArgumentError, match=r"an image is compiled code as bytes .* Module\(gpuglue.compile\(source\)\)"):
            gg.Module(text, device)
    with pytest.raises(FileNotFoundError):
        gg.Module("/none/f.cubin", device)


def test_an_alias_stands_for_its_backend():
    code = (
        "import json, sys, gpuglue as gg\nfound = {}\n"
        f"for name in {list(ALIASES)!r}:\n"
        "    try: found[name] = gg.Device(name + ':0').backend\n"
        "    except gg.BackendUnavailableError as error: found[name] = error.backend\n"
        "print(json.dumps(found))"
    )
    assert json.loads(succeeds(run_python(code, GPUGLUE_BACKEND="auto", GPUGLUE_DEVICE=None, **NO_GPU))) == ALIASES


def test_an_alias_in_the_variable_selects_and_excludes():
    code = "import gpuglue as gg; print([r.name for r in gg.backends('{}', timeout={}) if r.status == 'disabled'], gg.default_backend())"
    for level in ("passive", "isolated"):
        run = lambda selection: succeeds(run_python(code.format(level, HANG), GPUGLUE_BACKEND=selection, GPUGLUE_DEVICE=None,
                                                           GPUGLUE_PLUGIN_PATH=None, **NO_GPU))  # fmt: skip
        assert run("CPU") == "['cuda', 'hip', 'ze'] host"
    assert succeeds(run_python("import gpuglue as gg; gg.use_backend('^nvidia,rocm,intel'); print(gg.default_backend())",
                               arguments=("-W", "ignore"), GPUGLUE_DEVICE=None, **NO_GPU)) == "host"  # fmt: skip


def test_a_misspelt_backend_or_alias_is_answered_with_the_nearest_name():
    for typed, meant in ("cuad", "cuda"), ("nvdia", "nvidia"), ("lvel_zero", "level_zero"), ("cu", "cuda"):
        code = f"import gpuglue as gg\ntry: gg.Device('{typed}:0')\nexcept gg.BackendUnavailableError as error: print(error)"
        assert f'there is no backend "{typed}": did you mean {meant}?' in succeeds(run_python(code, **NO_GPU))


def test_gpu_is_no_misspelt_name_of_one_backend():
    code = "import gpuglue as gg\ntry: gg.Device('gpu:0')\nexcept gg.BackendUnavailableError as error: print(error)"
    message = succeeds(run_python(code, **NO_GPU))
    assert 'there is no backend "gpu" (no plugin gpuglue_gpu.so); the backends are ' in message


def test_a_device_in_the_variable_of_backends_names_the_other_variable():
    code = "import gpuglue as gg\ntry: gg.Device()\nexcept gg.InvalidArgumentError as error: print(error)"
    message = succeeds(run_python(code, GPUGLUE_BACKEND="cuda:1", GPUGLUE_DEVICE=None))
    assert 'has "cuda:1", which is a device, where a backend is expected: set GPUGLUE_DEVICE=cuda:1' in message


WARN = "import warnings, gpuglue as gg\nwith warnings.catch_warnings(record=True) as caught:\n    warnings.simplefilter('always'); gg.default_backend()\n"
ALL = {"GPUGLUE_BACKEND": "auto", "GPUGLUE_DEVICE": None, **NO_GPU}


def test_the_warning_of_no_device_has_two_lines_and_names_the_doctor():
    lines = succeeds(run_python(WARN + "print(caught[0].message)", **ALL)).splitlines()
    assert len(lines) == 2 and max(map(len, lines)) < 160
    assert lines[0].startswith('no GPU was found, so work runs on backend "host" (cuda: library-not-found, hip: ')
    assert "`gpuglue doctor` names the cause" in lines[1] and "GPUGLUE_BACKEND=host" in lines[1]


@pytest.mark.parametrize("variable", ["SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"])
def test_only_the_first_rank_of_a_node_warns(variable):
    assert succeeds(run_python(WARN + "print(len(caught))", **ALL, **{variable: "0"})) == "1"
    assert succeeds(run_python(WARN + "print(len(caught))", **ALL, **{variable: "3"})) == "0"


def test_sizes_in_messages_are_in_gib_with_the_bytes_behind(device):
    with pytest.raises(gg.OutOfMemoryError) as caught:
        gg.alloc(1 << 50, device)
    assert f"1048576.0 GiB ({1 << 50} bytes)" in str(caught.value)


@pytest.mark.slow
def test_a_type_checker_reports_a_misspelt_name_of_the_module(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text("import gpuglue as gg\ngg.Strem\ngg.Stream\ngg.compile\ngg.stack\n")
    command = [sys.executable, "-P", "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(program)]
    environment = {**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(gg.__file__))}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.stdout.count("error:") == 1 and '"Strem"' in result.stdout, result.stdout + result.stderr
