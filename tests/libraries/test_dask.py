"""Dask with plain `distributed`: sizes of arrays by the entry point, arrays that move between workers, and gpuglue.dask."""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or ROOT / "build/plain/tests")

LIBRARIES = {"cuda": BUILT / "sim/cuda/libcuda.so.1", "hip": BUILT / "sim/hip7/libamdhip64.so.7", "ze": BUILT / "sim/ze_new/libze_sim_new.so.1"}
VISIBILITY = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPUGLUE_DEVICE")


def metadata(directory):
    """What pip would install: the entry points of pyproject.toml, which a build that is only copied lacks."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    installed = directory / "gpuglue-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: gpuglue\nVersion: 0\n")
    lines = [f"[dask.sizeof]\n{name} = {target}\n" for name, target in groups["dask.sizeof"].items()]
    (installed / "entry_points.txt").write_text("".join(lines))


def run(directory, program, *args, backend="host", **environment):
    """What a program prints before its last line, 'done'; GPUs are simulated."""
    pytest.importorskip("distributed")
    library = LIBRARIES.get(backend)
    if library and not library.exists():
        pytest.skip(f"the tests were not built: there is no {library}")
    metadata(directory)
    path = os.pathsep.join([str(directory), *filter(None, [os.environ.get("PYTHONPATH")])])
    simulated = {f"GPUGLUE_{backend.upper()}_LIBRARY": str(library)} if library else {}
    inherited = {name: value for name, value in os.environ.items() if name not in VISIBILITY}
    program = pathlib.Path(__file__).with_name(program)
    done = subprocess.run([sys.executable, str(program), *args], capture_output=True, text=True, cwd=directory,
                          env={**inherited, "PYTHONPATH": path, "GPUGLUE_BACKEND": backend, **simulated, **environment})
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    return done.stdout.removesuffix("done\n").splitlines()


def test_dask_counts_the_bytes_of_arrays_and_moves_them_between_workers(tmp_path):
    run(tmp_path, "dask_program.py")


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_arrays_of_every_dtype_and_layout_are_sent_as_their_elements_alone(tmp_path, backend):
    run(tmp_path, "dask_frames_program.py", backend=backend)


def test_two_workers_share_the_host_device(tmp_path):
    assert run(tmp_path, "dask_cluster_program.py", "host:0", "host:0") == ["GPUGLUE_DEVICE=host:0"] * 2


@pytest.mark.parametrize("backend, name, masks", [("cuda", "CUDA_VISIBLE_DEVICES", ["0,1", "1,0"]),
                                                  ("hip", "HIP_VISIBLE_DEVICES", ["0,1", "1,0"])], ids=["cuda", "hip"])
def test_each_worker_has_its_own_device_first(tmp_path, backend, name, masks):
    printed = run(tmp_path, "dask_cluster_program.py", f"{backend}:0", f"{backend}:1", backend=backend)
    assert printed == [f"{name}={mask} GPUGLUE_DEVICE={backend}:0" for mask in masks]


@pytest.mark.parametrize("backend", ["host", "cuda", "ze"])
def test_workers_take_arrays_by_handles_and_what_a_lost_worker_did_not_take_is_released(tmp_path, backend):
    run(tmp_path, "dask_handles_program.py", f"{backend}:0", backend=backend)


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_arrays_that_come_through_a_connection_arrive_in_pinned_memory_up_to_a_size(tmp_path, backend):
    run(tmp_path, "dask_pinned_program.py", f"{backend}:0", backend=backend)


def test_devices_that_are_hidden_from_the_client_stay_hidden_from_the_workers(tmp_path):
    printed = run(tmp_path, "dask_cluster_program.py", "cuda:0", "cuda:1", backend="cuda", CUDA_VISIBLE_DEVICES="3,1", GPUGLUE_SIM_DEVICES="4")
    assert printed == [f"CUDA_VISIBLE_DEVICES={mask} GPUGLUE_DEVICE=cuda:0" for mask in ("3,1", "1,3")]


def test_workers_of_a_cluster_are_ranks_and_a_lost_one_is_named(tmp_path):
    run(tmp_path, "dask_ranks_program.py")


@pytest.mark.parametrize("backend, library, file", [("cuda", "nccl", "libnccl.so.2"), ("hip", "rccl", "librccl.so.1")], ids=["cuda", "hip"])
def test_workers_with_devices_use_the_vendors_library_also_between_machines(tmp_path, backend, library, file):
    path = BUILT / "sim/nccl" / file
    if not path.exists():
        pytest.skip(f"{path} was not built: the vendor's header is missing")
    printed = run(tmp_path, "dask_devices_program.py", backend, library, backend=backend, **{f"GPUGLUE_{library.upper()}_LIBRARY": str(path)})
    if printed:
        pytest.skip(f"this user cannot create mount namespaces: {printed[0]}")


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_results_above_the_limits_move_to_host_memory_and_disk_and_come_back_to_their_device(tmp_path, backend):
    run(tmp_path, "dask_store_program.py", backend=backend)


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_a_worker_holds_more_results_than_device_and_host_memory_may(tmp_path, backend):
    run(tmp_path, "dask_spill_program.py", f"{backend}:0", backend=backend)


def test_arguments_and_configuration_of_dask_reach_the_workers(tmp_path):
    run(tmp_path, "dask_options_program.py")


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_chunks_of_a_dask_array_are_joined_and_a_library_of_c_works_on_them(tmp_path, backend):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("there is neither gcc nor clang")
    source, library = tmp_path / "scale.c", tmp_path / "libscale.so"
    source.write_text("#include <stddef.h>\nvoid scale(double *x, size_t n, double factor)\n{\n    for (size_t i = 0; i < n; i++)\n        x[i] *= factor;\n}\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    run(tmp_path, "dask_array_program.py", str(library), backend=backend)


def need(module):
    """Skip where a package cannot be imported, with the reason. Its import may change this process, so another one tries."""
    found = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"{module} cannot be imported: {found.stderr.strip().splitlines()[-1]}")


@pytest.mark.parametrize("order", ["dask_cuda,gpuglue.dask", "gpuglue.dask,dask_cuda"], ids=["imported before", "imported after"])
def test_workers_with_the_store_of_dask_cuda_spill_and_send_arrays(tmp_path, order):
    need("dask_cuda")
    run(tmp_path, "dask_cuda_program.py", order, backend="cuda")


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_workers_that_are_connected_by_ucxx_send_arrays_of_any_size(tmp_path, backend):
    need("distributed_ucxx")
    run(tmp_path, "dask_ucxx_program.py", f"{backend}:0", backend=backend)
