"""The doctor's rules: for each condition the likely cause, and the command that corrects it.

The first rule of a backend whose condition holds is the answer, so exact conditions stand before general ones. In cause and
advice {c.name} is an attribute of the Case. To add a rule, add a row, and a machine in tests/python/test_doctor.py."""

import re
from typing import Callable, NamedTuple

GIB = 1 << 30


class Rule(NamedTuple):
    condition: Callable
    cause: str
    advice: str


def among(*statuses):
    return lambda c: c.status in statuses


def chosen(condition):
    """A condition about the library that GPUGLUE_<NAME>_LIBRARY names."""
    failed = ("library-not-found", "library-load-failed", "symbol-missing", "driver-stub", "version-unsupported")
    return lambda c: c.status in failed and c.chosen != "" and condition(c)


def cuda(code):
    return lambda c: c.name == "cuda" and c.code == code


def lacks_device(c):
    """No vendor's library can work: there is no device node of the vendor."""
    missing = c.status in ("no-device", "library-not-found", "init-failed")
    return missing and c.name in ("cuda", "hip", "ze") and not c.has_node and not c.machine.exists("/dev/dxg")


PLUGINS = (
    Rule(lambda c: c.status == "disabled", "GPUGLUE_BACKEND={c.selection} excludes it", "unset GPUGLUE_BACKEND"),
    Rule(
        lambda c: c.name == "GPUGLUE_BACKEND" and re.fullmatch(r"\w+:\d+", c.selection),
        "GPUGLUE_BACKEND={c.selection} names a device: it takes names of backends",
        "export GPUGLUE_DEVICE={c.selection}; unset GPUGLUE_BACKEND",
    ),
    Rule(
        lambda c: c.name == "GPUGLUE_BACKEND" and re.fullmatch(r"\^?\w+(:\d+)?(,\w+(:\d+)?)*", c.selection),
        "GPUGLUE_BACKEND={c.selection} names devices: it takes names of backends",
        "export GPUGLUE_BACKEND={c.selected}",
    ),
    Rule(lambda c: c.name == "GPUGLUE_BACKEND", "GPUGLUE_BACKEND={c.selection} cannot be parsed", "export GPUGLUE_BACKEND=auto"),
    Rule(
        lambda c: c.sticky,
        "{c.writable} is writable by others, so gpuglue does not load it",
        "export GPUGLUE_PLUGIN_PATH=…, a directory that only you can write to",
    ),
    Rule(lambda c: c.writable, "{c.writable} is writable by others, so gpuglue does not load it", "{c.sudo}chmod o-w {c.writable}"),
    Rule(lambda c: c.name == "GPUGLUE_PLUGIN_PATH", "an entry of GPUGLUE_PLUGIN_PATH cannot be used", "unset GPUGLUE_PLUGIN_PATH"),
    Rule(
        lambda c: c.status == "plugin-not-found" and c.name == "gpu",
        "there is no backend gpu: without GPUGLUE_BACKEND the first GPU is used",
        "unset GPUGLUE_BACKEND",
    ),
    Rule(
        lambda c: c.status == "plugin-not-found" and c.suggestion,
        "there is no backend {c.name}: the nearest name is {c.suggestion}",
        "export GPUGLUE_BACKEND={c.corrected}",
    ),
    Rule(among("plugin-not-found"), "there is no backend {c.name}", "unset GPUGLUE_BACKEND, or add its plugin's directory to GPUGLUE_PLUGIN_PATH"),
    Rule(
        among("plugin-abi-mismatch"),
        "the plugin {c.plugin} was built for another gpuglue",
        "python -m pip install --upgrade the package of {c.plugin}",
    ),
    Rule(among("plugin-load-failed"), "the plugin {c.plugin} cannot be loaded", "python -m pip install --force-reinstall the package of {c.plugin}"),
)

LIBRARIES = (
    Rule(chosen(lambda c: not c.chosen.startswith("/")), "{c.variable}={c.chosen} is not an absolute path", "unset {c.variable}"),
    Rule(chosen(lambda c: not c.library_exists), "{c.variable} names {c.chosen}, which does not exist", "unset {c.variable}"),
    Rule(chosen(lambda c: c.library_head is None), "{c.variable} names {c.chosen}, which this user may not read", "unset {c.variable}"),
    Rule(chosen(lambda c: c.library_head[:4] != b"\x7fELF"), "{c.variable} names {c.chosen}, which is not a library", "unset {c.variable}"),
    Rule(chosen(lambda c: c.library_head[4:] == b"\x01"), "{c.variable} names {c.chosen}, a 32-bit library", "unset {c.variable}"),
    Rule(chosen(lambda c: c.status == "driver-stub"), "{c.variable} names {c.chosen}, the toolkit's stub", "unset {c.variable}"),
    Rule(
        chosen(lambda c: c.status == "symbol-missing"),
        "{c.variable} names {c.chosen}, which lacks functions of the driver",
        "unset {c.variable}",
    ),
    Rule(chosen(lambda c: c.status == "library-load-failed"), "{c.variable} names {c.chosen}, which cannot be loaded", "unset {c.variable}"),
    Rule(
        lambda c: c.status == "driver-stub" and "stubs" in c.environ.get("LD_LIBRARY_PATH", ""),
        "LD_LIBRARY_PATH leads to the toolkit's stub of libcuda",
        "export LD_LIBRARY_PATH={stubless}",
    ),
    Rule(
        among("driver-stub"),
        "{c.info.library} is the toolkit's stub and not the driver",
        "{c.sudo}ldconfig -v | grep stubs; remove that directory from /etc/ld.so.conf.d",
    ),
)

DEVICES = (
    Rule(
        lambda c: c.status == "no-device" and c.mask and c.machine.scheduler == "slurm" and c.mask_value in ("", "NoDevFiles"),
        "this Slurm job was given no GPU ({c.mask}={c.mask_value!r})",
        "sbatch --gres=gpu:1 …",
    ),
    Rule(
        lambda c: c.status == "no-device" and c.mask and c.info.library and c.mask in c.reason,
        "{c.mask}={c.mask_value!r} hides the devices",
        "unset {c.mask}",
    ),
    Rule(
        lambda c: c.status in ("no-device", "init-failed", "timed-out", "crashed") and c.name == "ze" and "ZE_ENABLE_ALT_DRIVERS" in c.environ,
        "ZE_ENABLE_ALT_DRIVERS={c.environ[ZE_ENABLE_ALT_DRIVERS]} replaces the drivers of this machine",
        "unset ZE_ENABLE_ALT_DRIVERS",
    ),
    Rule(
        lambda c: c.refused and c.container == "apptainer",  # it has the host's users and nodes
        "this user may not use {c.refused} of the host",
        "on the host: sudo usermod -aG $(stat -c %G {c.refused}) {c.user}; then log in again",
    ),
    Rule(
        lambda c: c.refused and c.container,
        "this user of the container may not use {c.refused}",
        "{c.start}",
    ),
    Rule(
        lambda c: c.refused and c.group,
        "this user may not use {c.refused}, and is not in its group {c.group}",
        "sudo usermod -aG {c.group} {c.user}; then log in again",
    ),
    Rule(lambda c: c.refused, "this user may not use {c.refused}", "sudo chmod a+rw {c.refused}"),
    Rule(
        lambda c: lacks_device(c) and c.name == "cuda" and c.container and c.environ.get("NVIDIA_VISIBLE_DEVICES") in ("void", "none", ""),
        "NVIDIA_VISIBLE_DEVICES={c.environ[NVIDIA_VISIBLE_DEVICES]} keeps the GPUs out of this container",
        "{visible}",
    ),
    Rule(lambda c: lacks_device(c) and c.container and c.gpus != [], "this {c.container} container was started without the {c.vendor} GPU", "{c.start}"),
    Rule(
        lambda c: lacks_device(c) and c.machine.wsl,
        "WSL has no GPU: there is no /dev/dxg",
        "wsl --update (in Windows, after the GPU's driver for Windows was updated)",
    ),
    Rule(
        lambda c: lacks_device(c) and c.gpus and c.bound_to,
        "the kernel driver {c.bound_to} holds the {c.vendor} GPU, not {c.module}",
        "{c.install}; then reboot",
    ),
    Rule(
        lambda c: lacks_device(c) and c.gpus and not c.has_module,
        "there is an {c.vendor} GPU, but its kernel module {c.module} is not loaded",
        "{c.sudo}modprobe {c.module}",
    ),
    Rule(
        lambda c: lacks_device(c) and c.name == "cuda" and c.has_module,
        "the kernel module nvidia is loaded, but there is no /dev/nvidiactl",
        "{c.sudo}nvidia-modprobe -c 0 -u",
    ),
    Rule(
        lambda c: lacks_device(c) and c.name == "hip" and c.has_module,
        "the kernel module amdgpu is loaded, but there is no /dev/kfd: it may not support this GPU",
        "{c.sudo}dmesg | grep -i kfd",
    ),
    Rule(
        lambda c: lacks_device(c) and c.machine.scheduler == "slurm",
        "this node of the cluster has no {c.vendor} GPU for the job",
        "sbatch --gres=gpu:1 …",
    ),
    Rule(
        lambda c: lacks_device(c) and c.gpus == [],
        "this machine has no {c.vendor} GPU",
        "nothing to correct here: use another machine for {c.name}",
    ),
    Rule(lacks_device, "there is no device node of an {c.vendor} GPU", "{c.install}"),
)

DRIVERS = (
    Rule(
        lambda c: c.name == "cuda" and c.code == "999" and "nvidia_uvm" not in c.machine.modules and not c.has("/dev/nvidia-uvm"),
        "the kernel module nvidia_uvm is not loaded",
        "{c.sudo}modprobe nvidia_uvm",
    ),
    Rule(
        lambda c: c.name == "cuda" and c.code == "803" and c.container,
        "libcuda comes from the image, and its version differs from that of the host's kernel module ({c.module_version})",
        "{c.start} without a libcuda in the image",
    ),
    Rule(
        cuda("803"),
        "libcuda and the loaded kernel module ({c.module_version}) have different versions",
        "{c.sudo}reboot",
    ),
    Rule(cuda("802"), "the fabric manager of this machine with NVSwitch does not run", "{c.sudo}systemctl start nvidia-fabricmanager"),
    Rule(
        lambda c: cuda("804")(c) and "compat" in c.environ.get("LD_LIBRARY_PATH", ""),
        "LD_LIBRARY_PATH leads to cuda-compat, which this GPU does not support",
        "export LD_LIBRARY_PATH={compatless}",
    ),
    Rule(
        cuda("804"),
        "{c.info.library} is cuda-compat, which this GPU does not support",
        "remove its package, or export GPUGLUE_CUDA_LIBRARY=…, the path of the driver's libcuda.so.1",
    ),
    Rule(
        lambda c: c.name == "cuda" and c.machine.mps and not c.machine.mps["running"] and c.status in ("init-failed", "timed-out", "no-device"),
        "CUDA_MPS_PIPE_DIRECTORY is {c.machine.mps[directory]}, where no MPS daemon runs",
        "unset CUDA_MPS_PIPE_DIRECTORY, or nvidia-cuda-mps-control -d",
    ),
    Rule(
        lambda c: c.name == "hip" and c.status in ("init-failed", "crashed") and c.environ.get("HSA_OVERRIDE_GFX_VERSION"),
        "HSA_OVERRIDE_GFX_VERSION={c.environ[HSA_OVERRIDE_GFX_VERSION]} may not fit this GPU",
        "unset HSA_OVERRIDE_GFX_VERSION",
    ),
    Rule(lambda c: c.name == "hip" and c.code == "35", "the kernel driver amdgpu is too old for this HIP", "{host}install amdgpu-dkms as https://rocm.docs.amd.com describes; then reboot"),
    Rule(
        lambda c: c.status in ("init-failed", "crashed") and c.address_limit and c.address_limit < 64 * GIB,
        "this process may use {address_limit} of addresses: drivers reserve far more",
        "ulimit -v unlimited",
    ),
    Rule(lambda c: c.code == "2", "no memory was left when the driver started", "{memory}, and free -h: end the processes that use the memory"),
    Rule(lambda c: c.code == "304", "the operating system refused a system call of the driver", "{c.sudo}dmesg | tail; check the container's seccomp profile"),
    Rule(lambda c: c.name == "ze" and c.code == "0x70020000", "a library that Intel's driver needs is missing", "{c.install}"),
    Rule(lambda c: c.status == "version-unsupported" and c.name == "cuda", "the driver is too old", "{c.install}; then reboot"),
    Rule(among("version-unsupported"), "the driver's library is too old", "{c.install}"),
    Rule(
        lambda c: c.status == "library-not-found" and c.name == "cuda" and c.has_node and c.container,
        "the container lacks libcuda: its driver capabilities are {capabilities}",
        "{capable}",
    ),
    Rule(lambda c: c.status == "library-not-found" and c.machine.wsl and c.name == "cuda", "WSL's libcuda is missing", "wsl --update (in Windows)"),
    Rule(among("library-not-found"), "the {c.vendor} driver's library is not installed", "{c.install}"),
    Rule(among("library-load-failed", "symbol-missing"), "{c.info.library} cannot be used", "{c.install}"),
    Rule(
        lambda c: c.status == "no-device" and c.name == "ze" and c.has_node and c.gpus,
        "there is an Intel GPU, but no Level Zero driver for it",
        "{c.install}",
    ),
    Rule(lambda c: c.signal == "SIGKILL", "the probe was killed, most often because memory ran out (limit: {memory_limit})", "{c.sudo}dmesg | grep -i -E 'oom|killed'"),
    Rule(
        lambda c: c.status == "crashed" and c.environ.get("LD_PRELOAD"),
        "the driver crashes; LD_PRELOAD={c.environ[LD_PRELOAD]} may be the cause",
        "unset LD_PRELOAD",
    ),
    Rule(among("crashed"), "the driver crashes while it starts", "{c.install} (again); {c.sudo}dmesg | tail"),
    Rule(among("timed-out"), "the driver hangs while it starts", "{c.sudo}dmesg | grep -i -E 'xid|hung|amdgpu|i915'; then reboot"),
    Rule(among("no-device"), "the driver sees no device", "{list}"),
    Rule(lambda c: True, "{c.reason}", "{c.sudo}dmesg | tail"),
)

BACKEND = PLUGINS + LIBRARIES + DEVICES + DRIVERS

MACHINE = (
    Rule(lambda c: "numpy" not in c.machine.packages, "NumPy is not installed: arrays need it", "python -m pip install numpy"),
    Rule(
        lambda c: major(c.machine.packages.get("numpy", "")) < (1, 24),
        "NumPy {c.machine.packages[numpy]} is older than 1.24",
        "python -m pip install --upgrade numpy",
    ),
    Rule(
        lambda c: 0 <= c.machine.limits.get("open files", 4096) < 256,
        "this process may open only {c.machine.limits[open files]} files",
        "ulimit -n 4096",
    ),
    Rule(
        lambda c: 0 <= c.machine.limits.get("processes", 4096) < 64,
        "this user may start only {c.machine.limits[processes]} processes and threads",
        "ulimit -u 4096",
    ),
    Rule(
        lambda c: c.machine.cgroup.get("processes", 4096) < 64,
        "the control group may have only {c.machine.cgroup[processes]} processes and threads",
        "docker run --pids-limit 4096 …",
    ),
    Rule(
        lambda c: c.machine.limits.get("locked memory", GIB) < 1 << 16,
        "this process may lock only {c.machine.limits[locked memory]} bytes: pinned memory may fail",
        "ulimit -l unlimited",
    ),
    Rule(
        lambda c: c.environ.get("GPUGLUE_CACHE_DIR") and not c.environ["GPUGLUE_CACHE_DIR"].startswith("/"),
        "GPUGLUE_CACHE_DIR={c.environ[GPUGLUE_CACHE_DIR]} is not an absolute path",
        "unset GPUGLUE_CACHE_DIR",
    ),
)

VISIBLE = {"docker": "docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all …"}
CAPABLE = {
    "docker": "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",
    "kubernetes": "kubectl edit: env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: 'compute,utility'}]",
}
MEMORY = {"cuda": "nvidia-smi", "hip": "amd-smi process (older: rocm-smi --showpids)"}
LISTS = {"cuda": "nvidia-smi -L", "hip": "rocminfo", "ze": "clinfo -l, and ls -l /dev/dri"}


def major(version):
    """(1, 24) of '1.24.3'; a version of another form counts as new."""
    words = version.split(".")[:2]
    return tuple(map(int, words)) if len(words) == 2 and all(map(str.isdigit, words)) else (99, 0)


def size(number):
    return f"{number / GIB:.1f} GiB ({number} bytes)" if number is not None else "unlimited"


def filled(text, case):
    return text.format(
        c=case,
        stubless=case.path_without("stubs"),
        compatless=case.path_without("compat"),
        address_limit=size(case.address_limit),
        memory_limit=size(case.machine.cgroup.get("memory")),
        capabilities=case.environ.get("NVIDIA_DRIVER_CAPABILITIES") or "not set",
        visible=VISIBLE.get(case.container, case.start) if case.info else "",
        capable=CAPABLE.get(case.container, case.start) if case.info else "",
        memory=MEMORY.get(case.name, "top") if case.info else "",
        host="on the host: " if case.container else "",
        list=LISTS.get(case.name, "gpuglue info") if case.info else "",
    )


def first(rules, case):
    """(cause, command) of the first rule that applies, or None."""
    return next(((filled(rule.cause, case), filled(rule.advice, case)) for rule in rules if rule.condition(case)), None)


def all_of(rules, case):
    return [(filled(rule.cause, case), filled(rule.advice, case)) for rule in rules if rule.condition(case)]
