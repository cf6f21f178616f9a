"""pycuda.compiler: CUDA source to a module, by the run-time compilers: nvcc is not needed."""

import os

import gpuglue
from gpuglue import _nvcc_options

from . import driver
from ._errors import CompileError, LogicError, of

DEFAULT_NVCC_FLAGS: "list[str]" = os.environ.get("PYCUDA_DEFAULT_NVCC_FLAGS", "").split()


def _nvidia(arch):
    return arch.startswith(("sm_", "compute_"))


def _arch(device, arch, code, options, target):
    """What to compile for, or None for the device's own. A device of another vendor takes none of NVIDIA's."""
    if target not in ("cubin", "ptx"):
        raise LogicError(f"compile: target={target!r} takes nvcc: expected 'cubin' or 'ptx'")
    named, machine = _nvcc_options.target(options)
    arch, code = arch or named, code or machine
    if arch in ("native", "all", "all-major"):
        arch = None
    if not _nvidia(device.arch):
        if target == "ptx":
            raise LogicError(f"compile: {device} takes no PTX")
        return arch if arch and not _nvidia(arch) else None
    if code and _nvidia(code):
        arch = code
    if target == "ptx":
        arch = (arch or device.arch).replace("sm_", "compute_", 1)
    return arch or None


def compile(source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None, cache_dir=None,
            include_dirs=(), target="cubin"):
    """Device code for the current device, or for arch. Options are nvcc's, and those that mean nothing here go."""
    if not no_extern_c:
        source = 'extern "C" {\n#line 1 "kernel.cu"\n%s\n}\n' % source
    device = gpuglue.current_device()
    options = DEFAULT_NVCC_FLAGS if options is None else options
    if isinstance(options, str):
        raise TypeError("options is a list of str, not a str")
    arch = _arch(device, arch, code, options, target)
    given = _nvcc_options.for_nvrtc(options)
    if not _nvidia(device.arch):
        given = _nvcc_options.for_cxx(given)
    given += [f"-I{folder}" for folder in include_dirs]
    try:
        return gpuglue.compile(source, backend=device.backend, arch=arch, options=given)
    except gpuglue.CompileError as error:
        raise CompileError("the kernel was not compiled", " ".join(given), "", error.log) from error
    except gpuglue.Error as error:
        raise of(error) from error


class SourceModule(driver.Module):
    """A module from source."""

    def __init__(self, source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None,
                 cache_dir=None, include_dirs=()):
        image = compile(source, nvcc, options, keep, no_extern_c, arch, code, cache_dir, list(include_dirs))
        super().__init__(image)
        self.module = self

    def get_function(self, name):
        return super().get_function(name)
