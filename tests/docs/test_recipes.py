"""Recipes of the documents that need a compiler or device which this machine may not have."""

import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest
from blocks import BUILT, ROOT, read

PAGES = ["README.md", "docs/tutorial.md"]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("macro", [None, "__CUDACC__", "__HIP__"])
def test_the_kernel_is_compiled_by_nvcc_and_hipcc_and_the_loop_by_other_compilers(name, macro, tmp_path):
    """nvcc defines __CUDACC__, hipcc only __HIP__."""
    (source,) = [block.text for block in read(ROOT / name).blocks if block.text.startswith("// scale.cu")]
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip/hip_runtime.h").write_text("hip_runtime_is_included")
    define = [f"-D{macro}"] if macro else []
    command = ["cc", "-E", "-P", "-x", "c++", "-I", str(tmp_path), *define, "-"]
    chosen = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    assert ("<<<" in chosen, "for (size_t" in chosen) == (bool(macro), not macro)
    assert ("hip_runtime_is_included" in chosen) == (macro == "__HIP__")


@pytest.mark.parametrize("name", PAGES)
def test_the_library_is_chosen_by_the_backend_of_the_device(name):
    """A device pointer of one backend is not valid in code for another."""
    text = (ROOT / name).read_text()
    assert re.search(r"libscale_\{device\.backend\}\.so", text) and not re.search(r"CDLL\(\"", text)


@pytest.mark.parametrize("name", PAGES)
def test_on_an_intel_gpu_the_program_ends_with_what_to_do(name, tmp_path):
    """scale.cu has no build for ze: the program ended with a traceback of an OSError or a KeyError."""
    python = [b.text for b in read(ROOT / name).blocks if b.language == "python" and "not run" not in b.directions]
    end = next(i for i, text in enumerate(python) if "libscale_" in text)
    begin = "import gpuglue as gg\ndevice = gg.current_device()\n"
    simulator = {"GPUGLUE_BACKEND": "ze", "GPUGLUE_ZE_LIBRARY": str(BUILT / "sim/ze_new/libze_sim_new.so.1")}
    done = subprocess.run([sys.executable, "-c", begin + python[end]], cwd=tmp_path, env=os.environ | simulator,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "") and "Traceback" not in done.stderr
    assert done.stderr.startswith("scale.cu has no build for") and "set GPUGLUE_BACKEND=host" in done.stderr


def test_options_of_the_stable_abi_are_not_used_for_cpp():
    """pybind11 and nanobind do not compile with Py_LIMITED_API as C does."""
    text = (ROOT / "examples/extensions/README.md").read_text() + (ROOT / "docs/howto/extensions.md").read_text()
    commands = re.findall(r"c\+\+ [^`]*", text)
    assert commands and not any("Py_LIMITED_API" in command for command in commands)


@pytest.mark.parametrize("name", ["batch-systems", "containers"])
def test_scripts_that_cannot_run_here_are_valid_shell(name):
    scripts = [block.text for block in read(ROOT / f"docs/howto/{name}.md").blocks if block.language == "sh"]
    assert scripts
    for script in scripts:
        assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


def test_job_scripts_begin_with_their_interpreter():
    """sbatch refuses a script whose first line is not `#!`."""
    scripts = [block.text for block in read(ROOT / "docs/howto/batch-systems.md").blocks if re.search("^#(SBATCH|PBS)", block.text, re.M)]
    assert len(scripts) == 3 and all(re.match(r"#!/bin/bash\n", script) for script in scripts)


def test_the_job_script_of_slurm_gives_each_process_its_processors_and_checks_each_node_once(tmp_path):
    """srun does not take --cpus-per-task from the job since Slurm 22.05; --ntasks-per-node alone may still start every task."""
    (script,) = [b.text for b in read(ROOT / "docs/howto/batch-systems.md").blocks if "#SBATCH --ntasks-per-node" in b.text]
    (tmp_path / "srun").write_text('#!/bin/sh\necho "$SRUN_CPUS_PER_TASK $GPUGLUE_CACHE_DIR: $*"\n')
    (tmp_path / "srun").chmod(0o755)
    slurm = {"SLURM_CPUS_PER_TASK": "8", "SLURM_NNODES": "2", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-eu", "-c", script], env=slurm, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "8 /tmp/gpuglue: --nodes=2 --ntasks=2 --ntasks-per-node=1 --label gpuglue doctor --require cuda",
        "8 /tmp/gpuglue: python work.py"]


@pytest.mark.skipif(not shutil.which("clang++"), reason="there is no clang++")
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("side", ["--cuda-host-only", "--cuda-device-only"])
def test_the_kernel_is_valid_hip(name, side, tmp_path):
    """clang is hipcc's compiler; hip/hip_runtime.h beside this file stands for that of ROCm."""
    (source,) = [block.text for block in read(ROOT / name).blocks if block.text.startswith("// scale.cu")]
    (tmp_path / "scale.cu").write_text(source)
    alone = ["-nogpuinc", "-nogpulib", "-fsyntax-only", f"-I{ROOT / 'tests/docs'}"]
    command = ["clang++", "-x", "hip", side, "--offload-arch=gfx90a", *alone, "-Wall", "-Werror", "scale.cu"]
    subprocess.run(command, check=True, cwd=tmp_path)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
def test_the_kernel_of_the_tutorial_is_compiled_by_nvcc(tmp_path):
    (source,) = [block.text for block in read(ROOT / "docs/tutorial.md").blocks if block.text.startswith("// scale.cu")]
    (tmp_path / "scale.cu").write_text(source)
    subprocess.run(["nvcc", "-shared", "-Xcompiler", "-fPIC", "-o", "scale.so", "scale.cu"], check=True, cwd=tmp_path)


def test_the_files_of_make_test_aarch64_may_follow_its_options():
    line = subprocess.run(["make", "-n", "test-aarch64", "FILES=one two"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (arguments,) = re.findall(r"tests/aarch64/run\.py (.*one two)$", line, re.M)
    parsed = runpy.run_path(str(ROOT / "tests/aarch64/run.py"))["parsed"]
    assert parsed(re.sub(r"\$\(.*\)", "include", arguments).split()).files == ["one", "two"]
