"""pycuda.compiler: CUDA source to a module, by the run-time compilers: nvcc is not needed."""

import gpuglue

from . import driver
from ._errors import CompileError, of

# Options of nvcc that the run-time compilers know by another name, or that mean nothing to them.
_RENAMED = {"-use_fast_math": "--use_fast_math", "-maxrregcount": "--maxrregcount", "-lineinfo": "--generate-line-info",
            "--generate-line-info": "--generate-line-info", "-G": "--device-debug", "-std": "--std"}
_DROPPED = ("--ptxas-options", "-Xptxas", "-Xcompiler", "--compiler-options", "-O", "-m64", "-m32", "--machine", "--cubin",
            "-cubin", "--keep", "-v", "--verbose", "-ccbin", "-lcudadevrt", "-D_FORCE_INLINES")
_TAKE_NEXT = ("-Xptxas", "--ptxas-options", "-Xcompiler", "--compiler-options", "-ccbin", "-maxrregcount", "-std",
              "--std", "-arch", "-code", "-gencode", "--gpu-architecture")

DEFAULT_NVCC_FLAGS: "list[str]" = []


def _options(options):
    """nvcc's options as the run-time compilers take them."""
    made, pending = [], list(options)
    while pending:
        option = pending.pop(0)
        name, equals, value = option.partition("=")
        if name in _TAKE_NEXT and not equals and pending:
            value = pending.pop(0)
        if name.startswith(_DROPPED) or name in ("-arch", "-code", "-gencode", "--gpu-architecture"):
            continue
        name = _RENAMED.get(name, name)
        made.append(f"{name}={value}" if value else name)
    return made


def compile(source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None, cache_dir=None,
            include_dirs=(), target="cubin"):
    """Device code for the current device, or for arch."""
    if not no_extern_c:
        source = 'extern "C" {\n#line 1 "kernel.cu"\n%s\n}\n' % source
    given = _options(DEFAULT_NVCC_FLAGS if options is None else options)
    given += [f"-I{folder}" for folder in include_dirs]
    device = gpuglue.current_device()
    try:
        return gpuglue.compile(source, backend=device.backend, arch=arch or None, options=given)
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
