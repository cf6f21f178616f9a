"""Communicator.from_mpi: ranks of one machine, and ranks that share no memory; with MPICH or Open MPI, whose mpiexec is beside Python."""

import os
import pathlib
import subprocess
import sys

import pytest
from test_mpi4py import BUILT, OPEN_MPI, launcher

HERE = pathlib.Path(__file__).parent
HANG = 600  # seconds: only a safety net
LIBRARIES = {"GPUGLUE_CUDA_LIBRARY": BUILT / "sim/cuda/libcuda.so.1", "GPUGLUE_HIP_LIBRARY": BUILT / "sim/hip7/libamdhip64.so.7"}
# Messages go through sockets even on one machine; UCX is MPICH's library for networks.
SOCKETS = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}


def run(ranks, transport, backends="host,host,host", before=(), **environment):
    run_program(ranks, before, ["mpi_communicator_program.py", transport, str(HERE.parent / "python"), backends], environment)


def run_program(ranks, before, program, environment):
    pytest.importorskip("mpi4py")
    if not launcher():
        pytest.skip("there is no mpiexec: pip install mpich")
    command = [launcher(), "-n", str(ranks), *before, sys.executable, "-m", "mpi4py", str(HERE / program[0]), *program[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG,
                          env={**os.environ, **OPEN_MPI, "UCX_LOG_LEVEL": "error", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("done") == ranks


@pytest.mark.parametrize("transport", ["auto", "mpi"])
def test_three_ranks_of_one_machine(transport):
    run(3, transport)


def test_ranks_that_exchange_all_data_through_sockets():
    run(3, "mpi", **SOCKETS)


def test_a_split_needs_no_communicator_of_mpi():
    run_program(2, (), ["mpi_split_program.py"], {})


def test_ranks_with_devices_of_different_backends():
    missing = [str(path) for path in LIBRARIES.values() if not path.exists()]
    if missing:
        pytest.skip(f"the tests were not built: there is no {missing[0]}")
    run(3, "mpi", "cuda,host,hip", **{name: str(path) for name, path in LIBRARIES.items()})


def test_ranks_in_network_namespaces_of_their_own_are_as_on_several_machines():
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("this user cannot create network namespaces")
    if launcher() and "HYDRA" not in subprocess.run([launcher(), "--version"], capture_output=True, text=True).stdout:
        pytest.skip("only MPICH's ranks start without a network")
    run(3, "auto", before=("unshare", "--net"))


# In a mount namespace the kernel has an identifier of its own.
MACHINE = ("unshare", "--mount", "sh", "-c", 'file=$(mktemp) && echo $$ > $file && mount --bind $file /proc/sys/kernel/random/boot_id && exec "$@"', "sh")


@pytest.mark.parametrize("machines", [1, 3])
@pytest.mark.parametrize("backend, library, file", [("cuda", "nccl", "libnccl.so.2"), ("hip", "rccl", "librccl.so.1")], ids=["cuda", "hip"])
def test_ranks_with_devices_use_the_vendors_library_and_between_machines_mpi_beside_it(backend, library, file, machines):
    before = MACHINE if machines > 1 else ()
    done = subprocess.run([*before, "true"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this user cannot create mount namespaces: {done.stderr}")
    paths = {f"GPUGLUE_{backend.upper()}_LIBRARY": LIBRARIES[f"GPUGLUE_{backend.upper()}_LIBRARY"],
             f"GPUGLUE_{library.upper()}_LIBRARY": BUILT / "sim/nccl" / file}
    missing = [str(path) for path in paths.values() if not path.exists()]
    if missing:
        pytest.skip(f"the tests or the vendor's header are missing: there is no {missing[0]}")
    environment = {"GPUGLUE_BACKEND": backend, "GPUGLUE_SIM_DEVICES": "4", **{name: str(path) for name, path in paths.items()}}
    run_program(3, before, ["mpi_machines_program.py", backend, library, str(machines)], environment)
