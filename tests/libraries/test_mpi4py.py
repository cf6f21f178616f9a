"""mpi4py: arrays of the host backend and pinned memory in its own calls, and gpuglue.mpi on every device."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

BUILT = pathlib.Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or pathlib.Path(__file__).resolve().parents[2] / "build/plain/tests")

# Open MPI refuses to start as root, and more ranks than processors; then waiting ranks must leave the processor to others.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "OMPI_MCA_mpi_yield_when_idle": "1"}

SIMULATED = {"host": {}, "cuda": {"GPUGLUE_CUDA_LIBRARY": str(BUILT / "sim/cuda/libcuda.so.1")}}


def launcher():
    beside = pathlib.Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def run(ranks, program, **environment):
    """The output of a program that every rank has finished."""
    pytest.importorskip("mpi4py")
    if not launcher():
        pytest.skip("there is no mpiexec: pip install mpich")
    program = pathlib.Path(__file__).with_name(program)
    # With -m mpi4py the exception of one rank ends all of them.
    done = subprocess.run([launcher(), "-n", str(ranks), sys.executable, "-m", "mpi4py", str(program)], capture_output=True, text=True,
                          env={**os.environ, **OPEN_MPI, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("done") == ranks


def test_two_ranks_exchange_arrays_and_pinned_memory():
    run(2, "mpi_program.py")


@pytest.mark.parametrize("backend", SIMULATED)
def test_four_ranks_exchange_arrays_in_device_memory(backend):
    library = SIMULATED[backend].get("GPUGLUE_CUDA_LIBRARY")
    if library and not pathlib.Path(library).exists():
        pytest.skip(f"the tests were not built: there is no {library}")
    run(4, "mpi_staged_program.py", GPUGLUE_BACKEND=backend, **SIMULATED[backend])


PROLOGUE = (
    "import copy, numpy as np, gpuglue as gg, gpuglue.mpi\n"
    "from mpi4py import MPI\n"
    "world, sent = gpuglue.mpi.Comm(MPI.COMM_SELF), np.arange(4.0)\n"
    "host = np.full(8, -1.0); array = gg.to_gpu(host)\n"
)


def run_alone(code):
    """The output of a program of one rank, with a device whose memory MPI cannot take."""
    pytest.importorskip("mpi4py")
    library = SIMULATED["cuda"]["GPUGLUE_CUDA_LIBRARY"]
    if not pathlib.Path(library).exists():
        pytest.skip(f"the tests were not built: there is no {library}")
    environment = {**os.environ, **OPEN_MPI, "GPUGLUE_BACKEND": "cuda", "GPUGLUE_CUDA_LIBRARY": library}
    done = subprocess.run([sys.executable, "-P", "-c", PROLOGUE + code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("layout", ["1, MPI.DOUBLE.Create_vector(4, 1, 2).Commit()", "4, 2, MPI.DOUBLE"], ids=["datatype", "displacement"])
def test_a_received_message_is_laid_out_as_its_description_says(layout):
    code = (
        f"MPI.COMM_SELF.Sendrecv(sent, 0, 0, [host, {layout}], 0, 0); world.Sendrecv(sent, 0, 0, [array, {layout}], 0, 0)\n"
        "print((array.get() == host).all(), host.tolist())"
    )
    assert run_alone(code).startswith("True")


def test_messages_are_staged_if_mpi_does_not_take_the_memory_that_it_claims_to_take():
    code = (
        "import logging, sys; logging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
        "gpuglue.mpi.is_gpu_aware = lambda backend: True\n"
        "for _ in range(2): world.Sendrecv(gg.to_gpu(sent), 0, 0, array, 0, 0)\n"
        "print(array.get().tolist())"
    )
    warning, elements = run_alone(code).splitlines()
    assert warning.startswith("MPI reports that it takes memory of cuda:0, but a test in a child process failed")
    assert elements == str([0.0, 1.0, 2.0, 3.0] + [-1.0] * 4)


def test_a_message_whose_size_exceeds_an_int_is_received_whole():
    code = (
        "class Status(MPI.Status):\n"
        "    def Get_count(self, datatype=None): return MPI.UNDEFINED  # of 2 GiB and more\n"
        "world.Sendrecv(np.ones(8), 0, 0, array, 0, 0, Status()); print(array.get().sum())"
    )
    assert run_alone(code) == "8.0"


@pytest.mark.parametrize("kind", ["DLPack", "SYCL"])
def test_arrays_that_others_describe_without_the_cuda_array_interface_are_staged(kind):
    code = (
        "class DLPack:\n"
        "    def __init__(self, given): self.__dlpack__, self.__dlpack_device__ = given.__dlpack__, given.__dlpack_device__\n"
        "class SYCL:\n"
        "    def __init__(self, given): self.__sycl_usm_array_interface__ = {'given': given}\n"
        "taken = gg._core.asarray\n"  # dpctl is not here: what asarray makes of its arrays
        "gg._core.asarray = lambda given, **options: taken(given.__sycl_usm_array_interface__['given'] if isinstance(given, SYCL) else given, **options)\n"
        f"world.Sendrecv({kind}(gg.to_gpu(sent)), 0, 0, {kind}(array), 0, 0)\n"
        "print(array.get().tolist())\n"
        f"try: world.Isend({kind}(array), 0)\n"
        "except gg.UnsupportedError as error: print(str(error))"
    )
    elements, error = run_alone(code).splitlines()
    assert elements == str([0.0, 1.0, 2.0, 3.0] + [-1.0] * 4)
    assert error.startswith("Isend: the MPI library does not take memory of <gpuglue.Device cuda:0")


def test_arrays_that_others_have_in_host_memory_are_passed_on():
    code = (
        "class Given:\n"
        "    def __init__(self, given): self.__dlpack__, self.__dlpack_device__ = given.__dlpack__, given.__dlpack_device__\n"
        "got = np.zeros(4); world.Sendrecv(Given(sent), 0, 0, Given(got), 0, 0); world.Isend(Given(got), MPI.PROC_NULL).Wait(); print(got.tolist())"
    )
    assert run_alone(code) == "[0.0, 1.0, 2.0, 3.0]"


@pytest.mark.parametrize("probe", ["Mprobe", "Improbe", "mprobe", "improbe"])
def test_a_message_that_was_probed_is_received_in_device_memory(probe):
    code = (
        "request = MPI.COMM_SELF.Isend(sent, 0); status = MPI.Status()\n"
        f"message = world.{probe}(0); message.Recv(array, status=status); request.Wait()\n"
        "print(array.get().tolist(), status.Get_count(MPI.DOUBLE))"
    )
    assert run_alone(code) == str([0.0, 1.0, 2.0, 3.0] + [-1.0] * 4) + " 4"


def test_a_message_that_was_probed_is_not_received_in_device_memory_at_once():
    code = (
        "request = MPI.COMM_SELF.Isend(sent, 0); message = world.Mprobe(0)\n"
        "try: message.Irecv(array)\n"
        "except gg.UnsupportedError as error: print('Irecv' in str(error))\n"
        "message.Irecv(host).Wait(); request.Wait(); print(host[3], world.Improbe(0))"
    )
    assert run_alone(code).split() == ["True", "3.0", "None"]


def test_no_communicator_is_that_of_mpi():
    assert run_alone("print(world.Split(MPI.UNDEFINED) == MPI.COMM_NULL)") == "True"


def test_from_mpi_names_what_is_no_communicator_or_has_no_ranks():
    code = (
        "for given, kind in ((3, TypeError), (MPI.COMM_NULL, gg.InvalidArgumentError)):\n"
        "    try: gg.Communicator.from_mpi(given)\n"
        "    except kind as error: print(error)"
    )
    assert run_alone(code).splitlines() == ["comm must be a communicator of mpi4py, not int", "comm is MPI.COMM_NULL, which has no ranks"]


def test_a_communicator_can_be_copied_and_passed_to_another():
    assert run_alone("same = copy.copy(world); print(same.Get_size(), world.Compare(world) == MPI.IDENT)") == "1 True"


def test_the_examples_of_the_docstrings_are_right():
    pytest.importorskip("mpi4py")
    code = (
        "import doctest, gpuglue as gg, gpuglue.mpi, sys\n"
        "failed, tried = doctest.testmod(gpuglue.mpi, extraglobs={'gg': gg, 'gpuglue': gpuglue}); assert tried; sys.exit(failed)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env={**os.environ, **OPEN_MPI})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_module_can_be_imported_without_starting_mpi():
    code = "import sys, gpuglue.mpi; print(gpuglue.mpi.is_gpu_aware('host'), 'mpi4py' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr
