"""gpuglue doctor on broken machines: the cause, the command that corrects it, and the exit status. A machine is made of a
directory in the place of /, of simulated and broken libraries, device nodes and variables."""

import grp
import json
import os
import pathlib
import pwd
import re
import resource
import shutil
import sys
from typing import NamedTuple

import pytest
from conftest import BUILT, HANG, NO_GPU, SIMULATED, needed, nodes, run_python, succeeds

from gpuglue import _doctor, _variables
from gpuglue._doctor_case import Case
from gpuglue._machine import Machine

# Its C code, the probe in a child process, is also the subject of test_isolated_probe.py.
pytestmark = pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer ends children that crash in its own way")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUDO = "" if os.geteuid() == 0 else "sudo "
SLURM = {"SLURM_JOB_ID": "1"}
BOOKWORM, DEBIAN, FORKY = ({"etc/os-release": f"ID=debian\nVERSION_CODENAME={name}\n"} for name in ("bookworm", "trixie", "forky"))
UBUNTU = {"etc/os-release": 'VERSION_CODENAME=noble\nID=ubuntu\nID_LIKE="debian"\n'}
FEDORA, ROCKY = {"etc/os-release": "ID=fedora\n"}, {"etc/os-release": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'}
DOCKER, PODMAN = {".dockerenv": ""}, {"run/.containerenv": ""}
WSL = {"proc/sys/kernel/osrelease": "6.6.0-microsoft-standard-WSL2"}
NO_PCI = {"sys/bus/pci/devices/0000:00:00.0/class": "0x060000\n"}
NVIDIA_NODES = {"dev/nvidiactl": "", "dev/nvidia0": ""}
NVIDIA_MODULE = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n"}
NVIDIA = NVIDIA_NODES | NVIDIA_MODULE
KFD, RENDER = {"dev/kfd": "", "dev/dri/renderD128": ""}, {"dev/dri/renderD128": ""}


def gpu(vendor, driver=""):
    directory = "sys/bus/pci/devices/0000:01:00.0/"
    link = {directory + "driver": "-> ../../drivers/" + driver} if driver else {}
    return {directory + "class": "0x030200\n", directory + "vendor": vendor + "\n", **link}


def fails(function, code):
    return {"GPUGLUE_SIM_FAIL": f"{function}:1+={code}"}


class Row(NamedTuple):
    machine: str
    backend: str
    variables: dict
    files: dict
    cause: str
    command: str
    status: int = 1


# {cuda}, {hip} and {ze} are simulated drivers, {broken} holds libraries that are none, {tmp} is the machine's root. A
# backend whose driver is not given here is searched on this machine: where it is found, the row is skipped.
CUDA, HIP, ZE = {"GPUGLUE_CUDA_LIBRARY": "{cuda}"}, {"GPUGLUE_HIP_LIBRARY": "{hip}"}, {"GPUGLUE_ZE_LIBRARY": "{ze}"}
ROWS = [
    # variables of the vendor
    Row("every GPU is masked", "cuda", CUDA | {"CUDA_VISIBLE_DEVICES": ""}, NVIDIA, "CUDA_VISIBLE_DEVICES='' hides the devices", "unset CUDA_VISIBLE_DEVICES"),
    Row("the mask names no GPU", "cuda", CUDA | {"CUDA_VISIBLE_DEVICES": "-1"}, NVIDIA, "CUDA_VISIBLE_DEVICES='-1' hides the devices", "unset CUDA_VISIBLE_DEVICES"),
    Row("a Slurm job without a GPU", "cuda", CUDA | SLURM | {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, NVIDIA, "this Slurm job was given no GPU", "sbatch --gres=gpu:1 …"),
    Row("HIP's mask", "hip", HIP | {"HIP_VISIBLE_DEVICES": "-1"}, KFD, "HIP_VISIBLE_DEVICES='-1' hides the devices", "unset HIP_VISIBLE_DEVICES"),
    Row("CUDA's mask on HIP", "hip", HIP | {"CUDA_VISIBLE_DEVICES": "-1"}, KFD, "CUDA_VISIBLE_DEVICES='-1' hides the devices", "unset CUDA_VISIBLE_DEVICES"),
    Row("Level Zero's mask", "ze", ZE | {"ZE_AFFINITY_MASK": "9"}, RENDER, "ZE_AFFINITY_MASK='9' hides the devices", "unset ZE_AFFINITY_MASK"),
    Row("another Level Zero driver", "ze", ZE | fails("zeInitDrivers", 0x70020000) | {"ZE_ENABLE_ALT_DRIVERS": "/x"}, RENDER, "ZE_ENABLE_ALT_DRIVERS=/x replaces the drivers", "unset ZE_ENABLE_ALT_DRIVERS"),
    Row("MPS is set and does not run", "cuda", CUDA | fails("cuInit", 805) | {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}, NVIDIA, "CUDA_MPS_PIPE_DIRECTORY is /run/mps, where no MPS daemon runs", "unset CUDA_MPS_PIPE_DIRECTORY, or nvidia-cuda-mps-control -d"),
    Row("a GFX version that does not fit", "hip", HIP | {"GPUGLUE_SIM_CRASH": "hipInit", "HSA_OVERRIDE_GFX_VERSION": "9.0.0"}, KFD, "HSA_OVERRIDE_GFX_VERSION=9.0.0 may not fit this GPU", "unset HSA_OVERRIDE_GFX_VERSION"),
    # libraries
    Row("the path of the driver is relative", "cuda", {"GPUGLUE_CUDA_LIBRARY": "libcuda.so.1"}, NVIDIA, "is not an absolute path", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("the path of the driver does not exist", "cuda", {"GPUGLUE_CUDA_LIBRARY": "/none"}, NVIDIA, "names /none, which does not exist", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("a text file in the driver's place", "cuda", {"GPUGLUE_CUDA_LIBRARY": "{tmp}/text"}, NVIDIA | {"text": "no library"}, "text, which is not a library", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("a directory in the driver's place", "cuda", {"GPUGLUE_CUDA_LIBRARY": "{tmp}/dev"}, NVIDIA, "dev, which is not a library", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("a 32-bit driver", "cuda", {"GPUGLUE_CUDA_LIBRARY": "{broken}/elf32/libcuda.so.1"}, NVIDIA, "a 32-bit library", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("another library in the driver's place", "cuda", {"GPUGLUE_CUDA_LIBRARY": "{broken}/missing/libcuda.so.1"}, NVIDIA, "which lacks functions of the driver", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("the path leads to the stub", "cuda", {"GPUGLUE_CUDA_LIBRARY": "{broken}/stub/libcuda.so.1"}, NVIDIA, "the toolkit's stub", "unset GPUGLUE_CUDA_LIBRARY"),
    Row("stubs on LD_LIBRARY_PATH", "cuda", {"LD_LIBRARY_PATH": "/a:{tmp}/lib/stubs:/b"}, NVIDIA | {"lib/stubs/libcuda.so.1": "= stub/libcuda.so.1"}, "LD_LIBRARY_PATH leads to the toolkit's stub", "export LD_LIBRARY_PATH=/a:/b"),
    Row("HIP's path does not exist", "hip", {"GPUGLUE_HIP_LIBRARY": "/none"}, KFD, "GPUGLUE_HIP_LIBRARY names /none, which does not exist", "unset GPUGLUE_HIP_LIBRARY"),
    Row("no driver on Ubuntu", "cuda", {}, NVIDIA | gpu("0x10de", "nvidia") | UBUNTU, "the NVIDIA driver's library is not installed", f"{SUDO}apt install ubuntu-drivers-common && {SUDO}ubuntu-drivers install"),
    Row("no Level Zero driver on Debian", "ze", ZE | {"GPUGLUE_SIM_DEVICES": "0"}, RENDER | gpu("0x8086", "i915") | DEBIAN, "there is an Intel GPU, but no Level Zero driver for it", SUDO + "apt install libze1 libze-intel-gpu1"),
    Row("Intel's driver lacks a library", "ze", ZE | fails("zeInitDrivers", 0x70020000), RENDER | DEBIAN, "a library that Intel's driver needs is missing", SUDO + "apt install libze1 libze-intel-gpu1"),
    Row("no HIP on Debian 12", "hip", {}, KFD | BOOKWORM, "the AMD driver's library is not installed", SUDO + "apt install libamdhip64-5"),
    Row("no HIP on Debian 14", "hip", {}, KFD | FORKY, "the AMD driver's library is not installed", SUDO + "apt install libamdhip64-6"),
    Row("no HIP on Ubuntu", "hip", {}, KFD | UBUNTU, "the AMD driver's library is not installed", "install AMD's package rocm-hip-runtime as https://rocm.docs.amd.com describes"),
    Row("no HIP on Fedora", "hip", {}, KFD | FEDORA, "the AMD driver's library is not installed", SUDO + "dnf install rocm-hip"),
    Row("no HIP on Rocky Linux", "hip", {}, KFD | ROCKY, "the AMD driver's library is not installed", "install AMD's package rocm-hip-runtime as https://rocm.docs.amd.com describes"),
    Row("no CUDA driver on Rocky Linux", "cuda", {}, NVIDIA | gpu("0x10de", "nvidia") | ROCKY, "the NVIDIA driver's library is not installed", SUDO + "dnf install nvidia-driver-cuda"),
    Row("no Level Zero driver on Debian 12", "ze", ZE | {"GPUGLUE_SIM_DEVICES": "0"}, RENDER | gpu("0x8086", "i915") | BOOKWORM, "there is an Intel GPU, but no Level Zero driver for it", SUDO + "apt install libze1 intel-opencl-icd"),
    Row("no Level Zero driver on Ubuntu", "ze", ZE | {"GPUGLUE_SIM_DEVICES": "0"}, RENDER | gpu("0x8086", "xe") | UBUNTU, "there is an Intel GPU, but no Level Zero driver for it", "install Level Zero's loader and Intel's driver as https://dgpu-docs.intel.com describes"),
    Row("AMD's render node, and no Intel GPU", "ze", ZE | {"GPUGLUE_SIM_DEVICES": "0"}, KFD | gpu("0x1002", "amdgpu") | DEBIAN, "this machine has no Intel GPU", "nothing to correct here: use another machine for ze"),
    # no device node
    Row("docker without the GPU", "cuda", {}, DOCKER, "this docker container was started without the NVIDIA GPU", "docker run --gpus all …"),
    Row("podman without the GPU", "cuda", {}, PODMAN, "this podman container was started without the NVIDIA GPU", "podman run --device nvidia.com/gpu=all …"),
    Row("apptainer without the GPU", "cuda", {"APPTAINER_CONTAINER": "/a.sif"}, {}, "this apptainer container was started without the NVIDIA GPU", "apptainer exec --nv …"),
    Row("a pod without the GPU", "cuda", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {}, "this kubernetes container was started without the NVIDIA GPU", "kubectl edit: resources: {limits: {nvidia.com/gpu: 1}}"),
    Row("docker with NVIDIA_VISIBLE_DEVICES=void", "cuda", {"NVIDIA_VISIBLE_DEVICES": "void"}, DOCKER, "NVIDIA_VISIBLE_DEVICES=void keeps the GPUs out", "docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all …"),
    Row("apptainer with NVIDIA_VISIBLE_DEVICES=void", "cuda", {"NVIDIA_VISIBLE_DEVICES": "void", "APPTAINER_CONTAINER": "/a.sif"}, {}, "NVIDIA_VISIBLE_DEVICES=void keeps the GPUs out", "apptainer exec --nv …"),
    Row("NVIDIA_VISIBLE_DEVICES=void without a container", "cuda", {"NVIDIA_VISIBLE_DEVICES": "void"}, gpu("0x10de"), "its kernel module nvidia is not loaded", SUDO + "modprobe nvidia"),
    Row("podman without libcuda", "cuda", {}, PODMAN | NVIDIA, "the container lacks libcuda", "podman run --device nvidia.com/gpu=all …"),
    Row("a pod without libcuda", "cuda", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, NVIDIA, "the container lacks libcuda", "kubectl edit: env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: 'compute,utility'}]"),
    Row("docker without the capability compute", "cuda", {"NVIDIA_DRIVER_CAPABILITIES": "utility"}, DOCKER | NVIDIA, "the container lacks libcuda: its driver capabilities are utility", "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …"),
    Row("docker without AMD's nodes", "hip", {}, DOCKER, "this docker container was started without the AMD GPU", "docker run --device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/kfd) --group-add $(stat -c %g /dev/dri/renderD128) …"),
    Row("apptainer without AMD's nodes", "hip", {"APPTAINER_CONTAINER": "/a.sif"}, {}, "this apptainer container was started without the AMD GPU", "apptainer exec --rocm …"),
    Row("docker without Intel's node", "ze", ZE | {"GPUGLUE_SIM_DEVICES": "0"}, DOCKER, "this docker container was started without the Intel GPU", "docker run --device /dev/dri --group-add $(stat -c %g /dev/dri/renderD128) …"),
    Row("WSL without a GPU", "cuda", {}, WSL, "WSL has no GPU", "wsl --update (in Windows, after the GPU's driver for Windows was updated)"),
    Row("WSL without libcuda", "cuda", {}, WSL | {"dev/dxg": ""}, "WSL's libcuda is missing", "wsl --update (in Windows)"),
    Row("nouveau holds the GPU", "cuda", {}, gpu("0x10de", "nouveau") | DEBIAN, "the kernel driver nouveau holds the NVIDIA GPU", SUDO + "apt install nvidia-driver; then reboot"),
    Row("nvidia is not loaded", "cuda", {}, gpu("0x10de"), "its kernel module nvidia is not loaded", SUDO + "modprobe nvidia"),
    Row("amdgpu is not loaded", "hip", {}, gpu("0x1002"), "its kernel module amdgpu is not loaded", SUDO + "modprobe amdgpu"),
    Row("i915 is not loaded", "ze", ZE | {"GPUGLUE_SIM_DEVICES": "0"}, gpu("0x8086"), "its kernel module i915 is not loaded", SUDO + "modprobe i915"),
    Row("nvidia is loaded without its nodes", "cuda", {}, NVIDIA_MODULE | gpu("0x10de", "nvidia"), "there is no /dev/nvidiactl", SUDO + "nvidia-modprobe -c 0 -u"),
    Row("amdgpu is loaded without /dev/kfd", "hip", {}, {"sys/module/amdgpu/version": ""} | gpu("0x1002", "amdgpu"), "there is no /dev/kfd", SUDO + "dmesg | grep -i kfd"),
    Row("a machine without a GPU", "cuda", {}, NO_PCI, "this machine has no NVIDIA GPU", "nothing to correct here: use another machine for cuda"),
    Row("a node of a cluster without a GPU", "cuda", SLURM, NO_PCI, "this node of the cluster has no NVIDIA GPU for the job", "sbatch --gres=gpu:1 …"),
    # permissions: see also below
    Row("a node is not usable in docker", "cuda", CUDA | fails("cuInit", 100) | {"nodes": "/dev/nvidia0=refused:61234"}, NVIDIA | DOCKER, "this user of the container may not use /dev/nvidia0", "docker run --gpus all …"),
    Row("AMD's node is not usable in podman", "hip", HIP | fails("hipInit", 100) | {"nodes": "/dev/kfd=refused:61234,/dev/dri/renderD128=there"}, KFD | PODMAN, "this user of the container may not use /dev/kfd", "podman run --device /dev/kfd --device /dev/dri --group-add keep-groups …"),
    Row("AMD's node is not usable in a pod", "hip", HIP | fails("hipInit", 100) | {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "nodes": "/dev/kfd=refused:61234,/dev/dri/renderD128=there"}, KFD, "this user of the container may not use /dev/kfd", "kubectl edit: resources: {limits: {amd.com/gpu: 1}}"),
    Row("AMD's node is not usable in apptainer", "hip", HIP | fails("hipInit", 100) | {"APPTAINER_CONTAINER": "/a.sif", "USER": "ann", "nodes": "/dev/kfd=refused:61234,/dev/dri/renderD128=there"}, KFD, "this user may not use /dev/kfd of the host", "on the host: sudo usermod -aG $(stat -c %G /dev/kfd) ann; then log in again"),
    # errors of the driver
    Row("nvidia_uvm is not loaded", "cuda", CUDA | fails("cuInit", 999), NVIDIA, "the kernel module nvidia_uvm is not loaded", SUDO + "modprobe nvidia_uvm"),
    Row("libcuda is newer than the module", "cuda", CUDA | fails("cuInit", 803), NVIDIA, "libcuda and the loaded kernel module (580.65.06) have different versions", SUDO + "reboot"),
    Row("libcuda without a readable /proc", "cuda", CUDA | fails("cuInit", 803), NVIDIA_NODES, "libcuda and the loaded kernel module (of unknown version) have different versions", SUDO + "reboot"),
    Row("the image has its own libcuda", "cuda", CUDA | fails("cuInit", 803), NVIDIA | DOCKER, "libcuda comes from the image", "docker run --gpus all … without a libcuda in the image"),
    Row("the fabric manager does not run", "cuda", CUDA | fails("cuInit", 802), NVIDIA, "the fabric manager of this machine with NVSwitch does not run", SUDO + "systemctl start nvidia-fabricmanager"),
    Row("cuda-compat on a GeForce", "cuda", CUDA | fails("cuInit", 804) | {"LD_LIBRARY_PATH": "/a:/usr/local/cuda/compat"}, NVIDIA, "LD_LIBRARY_PATH leads to cuda-compat", "export LD_LIBRARY_PATH=/a"),
    Row("cuda-compat is installed on a GeForce", "cuda", CUDA | fails("cuInit", 804), NVIDIA, "libcuda.so.1 is cuda-compat, which this GPU does not support", "remove its package, or export GPUGLUE_CUDA_LIBRARY=…, the path of the driver's libcuda.so.1"),
    Row("MPS does not concern AMD", "hip", HIP | fails("hipInit", 100) | {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}, KFD, "HIP reports 2 devices and could not start", SUDO + "dmesg | tail"),
    Row("no memory is left on AMD", "hip", HIP | fails("hipInit", 2), KFD, "no memory was left when the driver started", "amd-smi process (older: rocm-smi --showpids), and free -h: end the processes that use the memory"),
    Row("no memory is left", "cuda", CUDA | fails("cuInit", 2), NVIDIA, "no memory was left when the driver started", "nvidia-smi, and free -h: end the processes that use the memory"),
    Row("a system call is refused", "cuda", CUDA | fails("cuInit", 304), NVIDIA, "the operating system refused a system call of the driver", SUDO + "dmesg | tail; check the container's seccomp profile"),
    Row("a driver without a device", "cuda", CUDA | fails("cuInit", 100), NVIDIA, "the driver sees no device", "nvidia-smi -L"),
    Row("a driver of CUDA 10", "cuda", CUDA | {"GPUGLUE_SIM_VERSION": "10020"}, NVIDIA | DEBIAN, "the driver is too old", SUDO + "apt install nvidia-driver; then reboot"),
    Row("a driver of CUDA 10 in docker", "cuda", CUDA | {"GPUGLUE_SIM_VERSION": "10020"}, NVIDIA | DEBIAN | DOCKER, "the driver is too old", "on the host: install the driver of https://www.nvidia.com/drivers; then reboot"),
    Row("amdgpu is too old in docker", "hip", HIP | fails("hipInit", 35), KFD | DEBIAN | DOCKER, "the kernel driver amdgpu is too old for this HIP", "on the host: install amdgpu-dkms as https://rocm.docs.amd.com describes; then reboot"),
    Row("amdgpu is too old", "hip", HIP | fails("hipInit", 35), KFD | DEBIAN, "the kernel driver amdgpu is too old for this HIP", "install amdgpu-dkms as https://rocm.docs.amd.com describes; then reboot"),
    Row("a driver that hangs", "cuda", CUDA | {"GPUGLUE_SIM_HANG": "cuInit"}, NVIDIA, "the driver hangs while it starts", SUDO + "dmesg | grep -i -E 'xid|hung|amdgpu|i915'; then reboot"),
    Row("a driver that crashes", "cuda", CUDA | {"GPUGLUE_SIM_CRASH": "cuInit"}, NVIDIA | DEBIAN, "the driver crashes while it starts", f"{SUDO}apt install nvidia-driver (again); {SUDO}dmesg | tail"),
    Row("the process is killed", "cuda", CUDA | {"PYTHONPATH": "{tmp}"}, NVIDIA | {"sitecustomize.py": "import os, sys\nif sys.orig_argv[-1] == 'cuda': os.kill(os.getpid(), 9)\n", "sys/fs/cgroup/memory.max": "2147483648"}, "most often because memory ran out (limit: 2.0 GiB (2147483648 bytes))", SUDO + "dmesg | grep -i -E 'oom|killed'"),
    # gpuglue's own variables and plugins
    Row("a device in GPUGLUE_BACKEND", "cuda:1", {}, {}, "GPUGLUE_BACKEND=cuda:1 names a device", "export GPUGLUE_DEVICE=cuda:1; unset GPUGLUE_BACKEND"),
    Row("devices in GPUGLUE_BACKEND", "cuda:1,hip", {}, {}, "GPUGLUE_BACKEND=cuda:1,hip names devices", "export GPUGLUE_BACKEND=cuda,hip"),
    Row("an excluded device in GPUGLUE_BACKEND", "^cuda:0", {}, {}, "GPUGLUE_BACKEND=^cuda:0 names devices", "export GPUGLUE_BACKEND=^cuda"),
    Row("a list that cannot be parsed", "host,^cuda", {}, {}, "GPUGLUE_BACKEND=host,^cuda cannot be parsed", "export GPUGLUE_BACKEND=auto"),
    Row("a misspelt backend", "cuad", {}, {}, "there is no backend cuad: the nearest name is cuda", "export GPUGLUE_BACKEND=cuda"),
    Row("a misspelt backend in a list", "none_such,cuad", {}, {}, "there is no backend cuad: the nearest name is cuda", "export GPUGLUE_BACKEND=none_such,cuda"),
    Row("the beginning of a backend", "cu", {}, {}, "there is no backend cu: the nearest name is cuda", "export GPUGLUE_BACKEND=cuda"),
    Row("gpu in GPUGLUE_BACKEND", "gpu", {}, {}, "there is no backend gpu: without GPUGLUE_BACKEND the first GPU is used", "unset GPUGLUE_BACKEND"),
    Row("an unknown backend", "metal", {}, {}, "there is no backend metal", "unset GPUGLUE_BACKEND, or add its plugin's directory to GPUGLUE_PLUGIN_PATH"),
    Row("an entry of the plugin path is missing", "host", {"GPUGLUE_PLUGIN_PATH": "/none"}, {}, "an entry of GPUGLUE_PLUGIN_PATH cannot be used", "unset GPUGLUE_PLUGIN_PATH", 0),
    Row("the plugin path is writable", "host", {"GPUGLUE_PLUGIN_PATH": "{tmp}/open"}, {"open/": "0777"}, "open is writable by others, so gpuglue does not load it", "chmod o-w", 0),
    Row("the plugin path is sticky", "host", {"GPUGLUE_PLUGIN_PATH": "{tmp}/open"}, {"open/": "1777"}, "open is writable by others, so gpuglue does not load it", "export GPUGLUE_PLUGIN_PATH=", 0),
    Row("a plugin of another version", "other_major", {"GPUGLUE_PLUGIN_PATH": "{plugins}/gpuglue_other_major.so"}, {}, "was built for another gpuglue", "python -m pip install --upgrade"),
    Row("a plugin that is a text file", "mine", {"GPUGLUE_PLUGIN_PATH": "{tmp}/gpuglue_mine.so"}, {"gpuglue_mine.so": "text"}, "gpuglue_mine.so cannot be loaded", "python -m pip install --force-reinstall"),
    Row("a misspelt variable", "host", {"GPUGLUE_BAKEND": "cuda"}, {}, "GPUGLUE_BAKEND is not a variable of gpuglue: did you mean GPUGLUE_BACKEND?", "export GPUGLUE_BACKEND=…; unset GPUGLUE_BAKEND", 0),
    Row("a device that does not exist", "host", {"GPUGLUE_DEVICE": "host:3"}, {}, "GPUGLUE_DEVICE=host:3 does not exist; devices of host: 1", "", 1),
    Row("a relative cache", "host", {"GPUGLUE_CACHE_DIR": "cache"}, {}, "GPUGLUE_CACHE_DIR=cache is not an absolute path", "unset GPUGLUE_CACHE_DIR", 0),
    # limits
    Row("few processes in the control group", "host", {}, {"sys/fs/cgroup/pids.max": "20\n"}, "the control group may have only 20 processes and threads", "docker run --pids-limit 4096 …", 0),
    Row("an old NumPy", "host", {"PYTHONPATH": "{tmp}"}, {"numpy-1.20.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: numpy\nVersion: 1.20.3\n"}, "NumPy 1.20.3 is older than 1.24", "python -m pip install --upgrade numpy", 0),
]  # fmt: skip


def build(root, files, places):
    """A directory in the place of /. `-> x` is a link, `= x` a copy of a broken library; a name that ends in / is a
    directory, and its text the mode."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
            path.chmod(int(text, 8))
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        elif text.startswith("= "):
            shutil.copy(f"{places['broken']}/{text[2:]}", path)
        else:
            path.write_text(text)


def places_of(tmp_path):
    simulated = {"cuda": "cuda-sim", "hip": "hip-sim", "ze": "ze-sim-direct"}
    found = {name: str(needed(*SIMULATED[run][1:])) for name, run in simulated.items()}
    return found | {"tmp": str(tmp_path), "broken": str(BUILT / "sim/broken"), "plugins": str(BUILT / "core/plugins")}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A function that makes a machine in this process's environment."""

    def make(backend, variables, files):
        places = places_of(tmp_path)
        build(tmp_path, files, places)
        for name in _variables.relevant(os.environ):
            if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH") and not name.startswith("GPUGLUE_TEST_"):
                monkeypatch.delenv(name)
        for name, value in variables.items():
            value = re.sub(r"\{(\w+)\}", lambda found: places[found[1]], value)
            for variable, text in nodes(value).items() if name == "nodes" else [(name, value)]:
                monkeypatch.setenv(variable, text)
        if "PYTHONPATH" in variables:
            monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("GPUGLUE_BACKEND", backend)
        return Machine(str(tmp_path))

    return make


def limit(row):
    """The time limit: only the driver that hangs reaches it, on any machine."""
    return 0.5 if "GPUGLUE_SIM_HANG" in row.variables else HANG


@pytest.fixture(scope="module")
def libraries():
    """The backends whose library this machine has, also if that reports no device. Found before a test sets the variables of another."""
    result = succeeds(run_python(None, arguments=("-m", "gpuglue", "--json"), GPUGLUE_BACKEND="cuda,hip,ze,host"))
    return [record["name"] for record in json.loads(result)["backends"] if record["library"]]


def check_search(row, output, libraries):
    """Skip where this machine has the library that the row's machine lacks."""
    given = row.backend not in ("cuda", "hip", "ze") or any(name.startswith(("GPUGLUE_", "nodes")) for name in row.variables)
    if given:
        return
    if re.search(rf"^{row.backend}: works|^    library: /", output, re.M) or row.backend in libraries:
        pytest.skip(f"this machine has a library for {row.backend}")


@pytest.mark.parametrize("row", ROWS, ids=[row.machine for row in ROWS])
def test_a_broken_machine_gets_its_cause_the_command_that_corrects_it_and_the_exit_status(row, libraries, place, capsys, record_property):
    status = _doctor.examine(place(row.backend, row.variables, row.files), timeout=limit(row))
    output = capsys.readouterr().out
    check_search(row, output, libraries)
    found = re.search(rf"^.*{re.escape(row.cause)}.*\n(.*)", output, re.M)
    assert found, output
    assert row.command in found[1] and status == row.status, output
    for name, value in ("machine", row.machine), ("cause", found[0].splitlines()[0]), ("status", status):
        record_property(name, value)  # for doctor_table.py


def test_the_catalogue_has_at_least_forty_machines():
    assert len({row.machine for row in ROWS}) >= 40


# ---- machines that take more than files and variables ----


def other_group():
    """A group with a name that is not root's, and which this user can give to a file."""
    for entry in grp.getgrall() if os.geteuid() == 0 else ():
        if entry.gr_name in ("video", "render", "users"):
            return entry
    pytest.skip("only root can give a file to a group, and there must be one called video, render or users")


@pytest.mark.parametrize("library, node, function", [("cuda", "/dev/nvidia0", "cuInit"), ("hip", "/dev/kfd", "hipInit")])
def test_a_node_of_another_group_is_reported_with_the_command_that_adds_the_user(place, capsys, tmp_path, library, node, function):
    group = other_group()
    variables = (CUDA if library == "cuda" else HIP) | fails(function, 100) | {"USER": "ann", "nodes": f"{node}=refused:{group.gr_gid}"}
    machine = place(library, variables, NVIDIA if library == "cuda" else KFD)
    os.chown(tmp_path / node[1:], -1, group.gr_gid)
    assert _doctor.examine(machine, timeout=HANG) == 1
    lines = capsys.readouterr().out
    assert f"{library}: this user may not use {node}, and is not in its group {group.gr_name}\n    sudo usermod -aG {group.gr_name} ann" in lines


def test_a_user_without_the_variable_is_named_as_in_the_list_of_users():
    assert Case(Machine("/", {})).user == pwd.getpwuid(os.geteuid()).pw_name
    assert Case(Machine("/", {"USER": "ann"})).user == "ann"


@pytest.mark.parametrize("name, value, cause", [
    (resource.RLIMIT_NOFILE, 200, "may open only 200 files"), (resource.RLIMIT_MEMLOCK, 4096, "may lock only 4096 bytes")])
def test_a_small_limit_of_the_process_is_a_warning(place, capsys, name, value, cause):
    machine = place("host", {}, {})
    before = resource.getrlimit(name)
    resource.setrlimit(name, (value, before[1]))
    try:
        assert _doctor.examine(machine, timeout=HANG) == 0
    finally:
        resource.setrlimit(name, before)
    assert cause in capsys.readouterr().out


def test_a_limit_of_addresses_is_the_cause_of_a_driver_that_cannot_start(place, capsys):
    machine = place("cuda", CUDA | fails("cuInit", 2), NVIDIA)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (32 << 30, before[1]))
    try:
        assert _doctor.examine(machine, timeout=HANG) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert "this process may use 32.0 GiB (34359738368 bytes) of addresses" in capsys.readouterr().out


def test_python_without_numpy_is_a_warning():
    site = str(pathlib.Path(_doctor.__file__).parents[1])
    code = f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{site!r}]\nfrom gpuglue._doctor import examine, Machine; sys.exit(examine(Machine(), timeout={HANG}))"
    result = run_python(code, arguments=("-S",), GPUGLUE_BACKEND="host", PYTHONPATH="", GPUGLUE_DEVICE=None)
    if "NumPy is not installed" not in result.stdout and "site-packages" in site:
        pytest.skip("gpuglue is installed beside NumPy")
    assert "NumPy is not installed: arrays need it\n    python -m pip install numpy" in result.stdout and result.returncode == 0


# ---- the command ----


def command(*arguments, **environment):
    if arguments[0] == "doctor":
        arguments += ("--timeout", str(HANG))
    return run_python(None, arguments=("-m", "gpuglue", *arguments), **{"GPUGLUE_BACKEND": "host", "GPUGLUE_DEVICE": None, **environment})


def test_what_is_required_decides_the_exit_status():
    assert command("doctor", "--require", "host").returncode == 0
    excluded = command("doctor", "--require", "host,nvidia")
    assert excluded.returncode == 1 and "required and not working: cuda" in excluded.stdout
    assert "cuda: GPUGLUE_BACKEND=host excludes it\n    unset GPUGLUE_BACKEND" in excluded.stdout


@pytest.mark.parametrize("device, exists", [("0", True), ("1", True), ("2", False), ("cuda", True), ("nvidia:1", True), ("hip:0", False),
                                            ("pci:0000:65:00.0", True), ("", True)])  # fmt: skip
def test_the_device_of_the_variable_must_exist(device, exists):
    assert _doctor.judge_selection({"cuda": 2, "host": 1}, "auto", device)[0] == exists


def test_the_json_holds_the_same_as_the_lines():
    found = json.loads(succeeds(command("doctor", "--json", "--require", "cpu", **NO_GPU)))
    (host,) = (each for each in found["backends"] if each["name"] == "host")
    assert (host["status"], host["cause"], found["ok"]) == ("available", "", True)
    assert {"nodes", "modules", "limits", "cgroup", "variables", "packages"} <= set(found["machine"])


def test_a_variable_that_is_not_utf8_is_printed_escaped():
    odd = os.fsdecode(b"/tmp/\xff")
    for encoding in ("utf-8", "ascii"):
        result = command("doctor", "--require", "host", CUDA_HOME=odd, PYTHONIOENCODING=encoding)
        assert result.returncode == 0 and "CUDA_HOME=/tmp/\\udcff" in result.stdout, result.stderr


def test_each_subcommand_has_help_and_the_command_has_a_version():
    for name in ("info", "doctor", "top", "bench", "config", "docs", "pycuda"):
        assert "--json" in succeeds(command(name, "--help"))
    assert re.fullmatch(r"gpuglue \d+\.\d+\.\d+", succeeds(command("--version")))


def test_config_gives_every_value_or_those_asked_for():
    everything = json.loads(succeeds(command("config", "--json")))
    assert succeeds(command("config", "--includedir")) == everything["includedir"]
    assert all(value in succeeds(command("config")) for value in everything.values())


def test_the_variables_that_the_doctor_knows_are_those_of_the_documentation():
    page = ROOT / "docs/environment.md"
    if not page.exists():
        pytest.skip(f"there is no {page}: the tests run without the source tree")
    table = page.read_text().partition("## GPUGLUE_BACKEND")[0]
    assert set(_variables.KNOWN) == set(re.findall(r"^\| \[?`(GPUGLUE_\w+)`", table, re.M))


def test_the_doctor_loads_no_library_of_a_vendor():
    code = "import sys\nfrom gpuglue import _command\n_command.main(['doctor', '--timeout', '{}'])\nprint('VENDORS', [n for n in ('libcuda.', 'libamdhip64', 'libze_loader') if n in open('/proc/self/maps').read()], 'numpy' in sys.modules)"
    assert "VENDORS [] False" in run_python(code.format(HANG), GPUGLUE_BACKEND="auto", GPUGLUE_DEVICE=None).stdout
