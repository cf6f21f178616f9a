"""What the doctor's rules ask about one backend on one machine."""

import os
import re
from functools import cached_property

from gpuglue._machine import user_name
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
        "docker": "docker run --device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/kfd) --group-add $(stat -c %g /dev/dri/renderD128) …",
        "podman": "podman run --device /dev/kfd --device /dev/dri --group-add keep-groups …",
        "apptainer": "apptainer exec --rocm …",
        "kubernetes": "kubectl edit: resources: {limits: {amd.com/gpu: 1}}",
    },
    "ze": {
        "docker": "docker run --device /dev/dri --group-add $(stat -c %g /dev/dri/renderD128) …",
        "podman": "podman run --device /dev/dri --group-add keep-groups …",
        "apptainer": "apptainer exec --bind /dev/dri …",
        "kubernetes": "kubectl edit: resources: {limits: {gpu.intel.com/i915: 1}}",
    },
}
# By the ID of /etc/os-release, or the name of the release where the names of packages differ.
INSTALL = {
    "cuda": {
        "ubuntu": "{sudo}apt install ubuntu-drivers-common && {sudo}ubuntu-drivers install",
        "debian": "{sudo}apt install nvidia-driver",
        "fedora": "{sudo}dnf install nvidia-driver-cuda",
        "": "install the driver of https://www.nvidia.com/drivers",
    },
    "hip": {
        "bookworm": "{sudo}apt install libamdhip64-5",
        "trixie": "{sudo}apt install libamdhip64-5",
        "forky": "{sudo}apt install libamdhip64-6",
        "fedora": "{sudo}dnf install rocm-hip",
        "": "install AMD's package rocm-hip-runtime as https://rocm.docs.amd.com describes",
    },
    "ze": {
        "bookworm": "{sudo}apt install libze1 intel-opencl-icd",
        "trixie": "{sudo}apt install libze1 libze-intel-gpu1",
        "forky": "{sudo}apt install libze1 libze-intel-gpu1",
        "fedora": "{sudo}dnf install oneapi-level-zero intel-level-zero",
        "": "install Level Zero's loader and Intel's driver as https://dgpu-docs.intel.com describes",
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
        names = [*self.known, *ALIASES]
        begun = [full for full in names if len(name) > 1 and full.startswith(name)]
        return ALIASES.get(name) or next(iter(begun), None) or nearest(name, names) or ""

    @property
    def corrected(self):
        """GPUGLUE_BACKEND with that name."""
        return ",".join(self.suggestion if name.strip().lower() == self.name else name for name in self.selection.split(","))

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

    @property
    def selected(self):
        """The devices of GPUGLUE_BACKEND without their numbers: backends."""
        return re.sub(r":\d+", "", self.selection)

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
        if self.container and self.name == "cuda":
            return "on the host: " + commands[""]
        system = self.machine.system
        words = [system.get("ID"), system.get("VERSION_CODENAME")]
        if self.name == "cuda":  # the others' packages have the same names only in the distribution itself
            words += system.get("ID_LIKE", "").split()
        return next((commands[word] for word in words if word in commands), commands[""]).format(sudo=self.sudo)

    @property
    def has_node(self):
        nodes = NODES.get(self.name, ())
        if self.name == "ze" and self.gpus == []:  # /dev/dri is of another vendor's GPU
            return False
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
        return self.environ.get("USER") or user_name(os.geteuid())

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
