"""What this machine has: device nodes, kernel modules, PCI devices, container, limits. Everything is read from files and the
environment; no library of a vendor is opened. A fact that cannot be read is absent, never an error."""

import glob
import os
import platform
import re
import stat
from functools import cached_property

from gpuglue import _variables

NODES = ("/dev/nvidiactl", "/dev/nvidia[0-9]*", "/dev/nvidia-uvm", "/dev/kfd", "/dev/dri/renderD*", "/dev/dxg")
MODULES = ("nvidia", "nvidia_uvm", "nouveau", "amdgpu", "i915", "xe")
VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
GPU_CLASSES = ("0x03", "0x12")  # display controllers, processing accelerators
LIMITS = {"address space": "AS", "locked memory": "MEMLOCK", "open files": "NOFILE", "processes": "NPROC", "data": "DATA"}
PEERS = ("torch", "cupy", "cupy-cuda12x", "cupy-cuda13x", "numba", "jax", "tensorflow", "pycuda", "cuda-python", "cuda-core",
         "hip-python", "dpctl", "mpi4py")  # fmt: skip


def unlimited(text):
    """The number in a file of a cgroup; None for no limit. Version 1 writes no limit as a huge number."""
    number = int(text) if text and text.isdigit() else None
    return number if number is not None and number < 1 << 60 else None


class Machine:
    """`root` is / except in tests, which make their machines of directories."""

    def __init__(self, root="/", environ=None):
        self.root = root
        self.environ = dict(os.environ if environ is None else environ)

    # ---- files ----

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def read(self, name):
        try:
            with open(self.path(name), errors="replace") as file:
                return file.read().strip()
        except OSError:
            return ""

    def exists(self, name):
        return os.path.exists(self.path(name))

    def matching(self, pattern):
        """Paths as in the machine, without the root."""
        found = glob.glob(self.path(pattern))
        return sorted("/" + os.path.relpath(path, self.root) for path in found)

    # ---- devices ----

    @cached_property
    def nodes(self):
        """Of each device node its permissions, owner and group, and whether this user may read and write it."""
        return [self.node(path) for pattern in NODES for path in self.matching(pattern)]

    def node(self, path):
        real = self.path(path)
        try:
            facts = os.stat(real)
        except OSError as error:
            return {"path": path, "usable": False, "mode": "", "group": "", "error": os.strerror(error.errno)}
        return {
            "path": path,
            "usable": os.access(real, os.R_OK | os.W_OK),
            "mode": stat.filemode(facts.st_mode),
            "group": group_name(facts.st_gid),
            "error": "",
        }

    @cached_property
    def modules(self):
        """The kernel modules of GPUs that are loaded, and their versions, which may be ''."""
        loaded = {name: self.read(f"/sys/module/{name}/version") for name in MODULES if self.exists(f"/sys/module/{name}")}
        if self.exists("/proc/driver/nvidia/version"):
            found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", self.read("/proc/driver/nvidia/version"))
            loaded["nvidia"] = found[1] if found else loaded.get("nvidia", "")
        return loaded

    @cached_property
    def gpus(self):
        """GPUs on the PCI bus; None where the bus cannot be read."""
        if not self.exists("/sys/bus/pci/devices"):
            return None
        directories = self.matching("/sys/bus/pci/devices/*")
        return [self.gpu(directory) for directory in directories if self.read(directory + "/class").startswith(GPU_CLASSES)]

    def gpu(self, directory):
        vendor = self.read(directory + "/vendor")
        driver = self.path(directory + "/driver")
        bound = os.path.basename(os.readlink(driver)) if os.path.islink(driver) else ""
        return {"address": os.path.basename(directory), "vendor": VENDORS.get(vendor, vendor), "driver": bound}

    # ---- surroundings ----

    @cached_property
    def container(self):
        """The kind of container, or ''."""
        if self.environ.get("APPTAINER_CONTAINER") or self.environ.get("SINGULARITY_CONTAINER"):
            return "apptainer"
        if self.environ.get("KUBERNETES_SERVICE_HOST"):
            return "kubernetes"
        if self.exists("/run/.containerenv"):
            return "podman"
        if self.exists("/.dockerenv"):
            return "docker"
        return self.environ.get("container", "")

    @cached_property
    def wsl(self):
        return "microsoft" in self.read("/proc/sys/kernel/osrelease").lower()

    @cached_property
    def scheduler(self):
        """The batch system of this job, or ''."""
        variables = {"SLURM_JOB_ID": "slurm", "PBS_JOBID": "pbs"}
        return next((name for variable, name in variables.items() if self.environ.get(variable)), "")

    @cached_property
    def system(self):
        """The fields of /etc/os-release."""
        return dict(re.findall(r"""^(\w+)=["']?([^"'\n]*)""", self.read("/etc/os-release"), re.M))

    @cached_property
    def cgroup(self):
        """The limits of this process's control groups; the smallest of the hierarchy."""
        own = re.search(r"^0::(/.*)$", self.read("/proc/self/cgroup"), re.M)
        parts = own[1].strip("/").split("/") if own else []
        directories = ["/sys/fs/cgroup/" + "/".join(parts[:end]) for end in range(len(parts) + 1)]
        found = {
            "memory": [self.read(f"{directory}/memory.max") for directory in directories] + [self.read("/sys/fs/cgroup/memory/memory.limit_in_bytes")],
            "processes": [self.read(f"{directory}/pids.max") for directory in directories] + [self.read("/sys/fs/cgroup/pids/pids.max")],
        }
        limits = {name: [unlimited(text) for text in texts] for name, texts in found.items()}
        return {name: min(filter(None, numbers)) for name, numbers in limits.items() if any(numbers)}

    @cached_property
    def limits(self):
        """The soft resource limits of this process that are not infinite."""
        import resource

        found = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + limit))[0] for name, limit in LIMITS.items()}
        return {name: value for name, value in found.items() if value != resource.RLIM_INFINITY}

    @cached_property
    def mps(self):
        """The directory of NVIDIA's multi-process service if one is set, and whether its daemon's pipe is there."""
        directory = self.environ.get("CUDA_MPS_PIPE_DIRECTORY", "")
        return {"directory": directory, "running": self.exists(directory + "/control")} if directory else None

    @cached_property
    def mig(self):
        """Whether a GPU is divided into MIG instances."""
        return bool(self.matching("/proc/driver/nvidia/capabilities/gpu*/mig/gi*"))

    # ---- Python ----

    @cached_property
    def packages(self):
        """Versions of NumPy and of other packages that use GPUs, without importing them."""
        from importlib.metadata import version

        found = {}
        for name in ("numpy", *PEERS):
            try:
                found[name] = version(name) or "of unknown version"
            except Exception:  # not installed, or another package's broken metadata
                continue
        return found

    @cached_property
    def variables(self):
        return _variables.relevant(self.environ)

    @cached_property
    def misspelt(self):
        return _variables.misspelt(self.environ)

    def as_dict(self):
        facts = ("nodes", "modules", "gpus", "container", "wsl", "scheduler", "cgroup", "limits", "mps", "mig", "packages", "variables")
        return {"kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "user": os.geteuid()} | {
            name: getattr(self, name) for name in facts
        }


def group_name(number):
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)


def user_name(number):
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)
