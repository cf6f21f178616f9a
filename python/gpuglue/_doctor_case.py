"""What the doctor's rules ask about one backend on one machine."""

import os
import re
from functools import cached_property

from gpuglue._variables import nearest

MODULES = {"cuda": ("nvidia",), "hip": ("amdgpu",), "ze": ("i915", "xe")}
NODES = {"cuda": ("/dev/nvidiactl",), "hip": ("/dev/kfd",), "ze": ("/dev/dri/renderD",)}
VENDORS = {"cuda": "NVIDIA", "hip": "AMD", "ze": "Intel"}
ALIASES = {"nvidia": "cuda", "amd": "hip", "rocm": "hip", "intel": "ze", "level_zero": "ze", "oneapi": "ze", "xpu": "ze", "cpu": "host"}
MASKS = {
    "cuda": ("CUDA_VISIBLE_DEVICES",),
    "hip": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "ze": ("ZE_AFFINITY_MASK",),
}
# How each kind of container gets the vendor's devices.
START = {
    "cuda": {
        "docker": "docker run --gpus all …",
        "podman": "podman run --device nvidia.com/gpu=all …",
        "apptainer": "apptainer exec --nv …",
        "kubernetes": "kubectl edit: resources: {limits: {nvidia.com/gpu: 1}}",
    },
    "hip": {
        "docker": "docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render …",
        "podman": "podman run --device /dev/kfd --device /dev/dri --group-add keep-groups …",
        "apptainer": "apptainer exec --rocm …",
        "kubernetes": "kubectl edit: resources: {limits: {amd.com/gpu: 1}}",
    },
    "ze": {
        "docker": "docker run --device /dev/dri --group-add render …",
        "podman": "podman run --device /dev/dri --group-add keep-groups …",
        "apptainer": "apptainer exec --bind /dev/dri …",
        "kubernetes": "kubectl edit: resources: {limits: {gpu.intel.com/i915: 1}}",
    },
}
INSTALL = {
    "cuda": {
        "ubuntu": "apt install ubuntu-drivers-common && ubuntu-drivers install",
        "debian": "apt install nvidia-driver",
        "fedora": "dnf install nvidia-driver-cuda",
        "": "install the driver of https://www.nvidia.com/drivers",
    },
    "hip": {
        "debian": "apt install rocm-hip-runtime",
        "fedora": "dnf install rocm-hip-runtime",
        "": "install ROCm as https://rocm.docs.amd.com describes",
    },
    "ze": {
        "debian": "apt install libze1 libze-intel-gpu1",
        "fedora": "dnf install oneapi-level-zero intel-level-zero",
        "": "install the packages of Level Zero's loader and of Intel's driver",
    },
}


class Case:
    """`info` is the backend's record, or None in the rules of the machine as a whole."""

    def __init__(self, machine, info=None, known=()):
        self.machine, self.info, self.known = machine, info, known
        self.environ = machine.environ

    # ---- the record ----

    @property
    def name(self):
        return self.info.name

    @property
    def status(self):
        return self.info.status

    @property
    def reason(self):
        return self.info.reason

    @property
    def vendor(self):
        return VENDORS.get(self.name, self.name)

    @property
    def code(self):
        """The number that the vendor's library returned, as text."""
        found = re.search(r"returned (0x[0-9a-f]+|\d+)", self.reason)
        return found[1] if found else ""

    @property
    def signal(self):
        found = re.search(r"killed by (SIG\w+)", self.reason)
        return found[1] if found else ""

    @property
    def plugin(self):
        """The plugin's file, or what the reason names in its place."""
        found = re.search(r"(/\S+?)(?: is writable| cannot be used|[\s:,;\"]|$)", self.reason)
        return self.info.plugin or (found[1] if found else self.name)

    @property
    def writable(self):
        """The file or directory that others may write to, or ''."""
        found = re.search(r"(/\S+) is writable by others", self.reason)
        return found[1] if found else ""

    @property
    def sticky(self):
        """Whether that is a directory such as /tmp, whose mode must not be changed."""
        return bool(self.writable) and "chmod" not in self.reason

    @property
    def suggestion(self):
        """The backend that the user may have meant, or ''."""
        name = self.name.partition(":")[0].replace("-", "_")
        return ALIASES.get(name) or nearest(name, [*self.known, *ALIASES]) or ""

    # ---- variables ----

    @property
    def variable(self):
        return f"GPUGLUE_{self.name.upper()}_LIBRARY"

    @property
    def chosen(self):
        """The library that the variable names."""
        return self.environ.get(self.variable, "")

    @property
    def selection(self):
        return self.environ.get("GPUGLUE_BACKEND", "")

    @cached_property
    def mask(self):
        """The variable that hides devices, or ''."""
        named = [name for name in MASKS.get(self.name, ()) if name in self.environ]
        return next((name for name in named if name in self.reason), next(iter(named), ""))

    @property
    def mask_value(self):
        return self.environ.get(self.mask, "")

    def path_without(self, part):
        """LD_LIBRARY_PATH without the entries that contain `part`."""
        return ":".join(entry for entry in self.environ.get("LD_LIBRARY_PATH", "").split(":") if part not in entry)

    # ---- files ----

    @cached_property
    def library_head(self):
        """Its first bytes; None if it may not be read."""
        try:
            with open(self.chosen, "rb") as file:
                return file.read(5)
        except PermissionError:
            return None
        except OSError:  # a directory
            return b""

    @property
    def library_exists(self):
        return os.path.exists(self.chosen)

    # ---- the machine ----

    @property
    def sudo(self):
        return "" if os.geteuid() == 0 else "sudo "

    @property
    def container(self):
        return self.machine.container

    @property
    def start(self):
        return START.get(self.name, {}).get(self.container, "start the container with the device nodes of the GPU")

    @property
    def install(self):
        """The command that installs the driver on this system."""
        commands = INSTALL.get(self.name, {"": "install the driver"})
        words = " ".join(self.machine.system).split()
        found = next((commands[word] for word in (*words, "fedora" if "rhel" in words else "") if word and word in commands), "")
        return self.sudo + found if found else commands[""]

    @property
    def has_node(self):
        nodes = NODES.get(self.name, ())
        return any(node["path"].startswith(nodes) for node in self.machine.nodes)

    def has(self, path):
        return any(node["path"] == path for node in self.machine.nodes)

    @property
    def refused(self):
        """The first device node that this user may not use, or ''."""
        found = re.search(r"(/dev/\S+) exists and may not", self.reason)
        return found[1] if found else ""

    @property
    def group(self):
        """The group of that node; '' where the group alone does not help."""
        node = next((node for node in self.machine.nodes if node["path"] == self.refused), None)
        if not node or node["group"] in ("root", "0", "nogroup"):
            return ""
        return node["group"]

    @property
    def user(self):
        return self.environ.get("USER") or str(os.geteuid())

    @property
    def module(self):
        return MODULES[self.name][0]

    @property
    def module_version(self):
        return self.machine.modules.get(self.module) or "of unknown version"

    @property
    def has_module(self):
        return any(module in self.machine.modules for module in MODULES.get(self.name, ()))

    @property
    def gpus(self):
        """The vendor's GPUs on the PCI bus; None if the bus cannot be read."""
        if self.machine.gpus is None:
            return None
        return [gpu for gpu in self.machine.gpus if gpu["vendor"] == self.vendor]

    @property
    def bound_to(self):
        """A kernel driver that holds the GPU and is not the vendor's."""
        drivers = [gpu["driver"] for gpu in self.gpus or ()]
        return next((driver for driver in drivers if driver and driver not in MODULES[self.name]), "")

    @property
    def address_limit(self):
        """Bytes of addresses that this process may use, or None."""
        return self.machine.limits.get("address space")
