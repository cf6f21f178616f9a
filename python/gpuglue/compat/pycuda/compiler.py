"""pycuda.compiler: CUDA source to a module, by the run-time compilers and nvJitLink: nvcc is not needed."""

import os
import re

import gpuglue
from gpuglue import _nvcc_options, _rtc_headers

from .. import _pycuda_copy
from . import _debugging, _linking, driver
from ._missing import refusing, way_of_source
from ._errors import CompileError, LogicError, of

DEFAULT_NVCC_FLAGS: "list[str]" = os.environ.get("PYCUDA_DEFAULT_NVCC_FLAGS", "").split()

# What nvcc declares before the source, and NVRTC and HIPRTC do not. Not int64_t: programs that declare it have either of two types.
_OF_NVCC = """#include <math.h>
#include <limits.h>
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t;
"""
# pow() of two types, which HIPRTC has.
_POW = "template <class T> struct gpuglue_double;\n" + "".join(
    f"template <> struct gpuglue_double<{kind}> {{ typedef double type; }};\n" for kind in (
        "int", "unsigned", "long", "unsigned long", "long long", "unsigned long long", "float", "double")) + """
template <class X, class Y> inline __device__ typename gpuglue_double<X>::type pow(X x, Y y)
{
    return pow((double)x, (typename gpuglue_double<Y>::type)y);
}
"""


def _nvidia(arch):
    return arch.startswith(("sm_", "compute_"))


def _arch(device, arch, code, options, target):
    """The target architecture, or None for that of the device. NVIDIA's are ignored for devices of other vendors."""
    if target not in ("cubin", "ptx"):
        raise LogicError(f"compile: target={target!r} needs nvcc: expected 'cubin' or 'ptx'")
    named, machine = _nvcc_options.target(options)
    arch, code = arch or named, code or machine
    if arch in ("native", "all", "all-major"):
        arch = None
    if not _nvidia(device.arch):
        if target == "ptx":
            raise LogicError(f"compile: {device} cannot load PTX")
        return arch if arch and not _nvidia(arch) else None
    if code and _nvidia(code):
        arch = code
    if target == "ptx":
        arch = (arch or device.arch).replace("sm_", "compute_", 1)
    return arch or None


def compile(source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None, cache_dir=None,
            include_dirs=(), target="cubin"):
    """Compile CUDA C++ by the run-time compilers: nvcc is not needed.

    Parameters
    ----------
    source : str
        The source.
    nvcc : str, default 'nvcc'
        Not used.
    options : list of str, optional
        Options of nvcc; those without an equivalent are dropped. None is ``PYCUDA_DEFAULT_NVCC_FLAGS``.
    keep : bool, default False
        Not used.
    no_extern_c : bool, default False
        Whether to compile the source as it is. False puts it into ``extern "C"``.
    arch : str, optional
        Architecture, such as 'sm_90'. None is that of the current device.
    code : str, optional
        Architecture of the code, in place of `arch`.
    cache_dir : str, optional
        Not used: see ``GPUGLUE_CACHE_DIR``.
    include_dirs : sequence of str, default ()
        Directories of headers.
    target : {'cubin', 'ptx'}, default 'cubin'
        What to make.

    Returns
    -------
    gpuglue.Image
        The code, as bytes.

    Raises
    ------
    driver.CompileError
        If the compiler rejects the source; `stderr` has its output.
    driver.LogicError
        If the target or the architecture cannot be compiled for this device.
    TypeError
        If `options` is a str.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> image = compiler.compile("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
    >>> image.format
    'shared object'
    """
    device = gpuglue.current_device()
    options = DEFAULT_NVCC_FLAGS if options is None else options
    if isinstance(options, str):
        raise TypeError("options must be a list of str, not a str")
    source = source.decode() if isinstance(source, bytes) else str(source)
    own, searched = list(include_dirs), _pycuda_copy.include_directories()
    if not own and not any(option.startswith(("-I", "--include-path", "-isystem")) for option in options):
        source, searched = _pycuda_copy.with_headers(source)  # else the program may have headers of the same names
    source = '#line 1 "kernel.cu"\n' + source
    if not no_extern_c:
        source = 'extern "C" {\n%s\n}\n' % source
    if device.backend != "host":  # whose dialect includes the system's headers
        source = _OF_NVCC + (_POW if device.backend == "cuda" else "") + source
    arch = _arch(device, arch, code, options, target)
    given = _nvcc_options.for_nvrtc(options)
    if not _nvidia(device.arch):
        given = _nvcc_options.for_cxx(given)
    given += _debugging.options(_nvidia(device.arch))
    given += [f"-I{directory}" for directory in [*own, *searched]]
    return _made(source, device.backend, arch, "cuda", given)


def _made(source, backend, arch, lang, options):
    try:
        return gpuglue.compile(source, backend=backend, arch=arch, lang=lang, options=options)
    except gpuglue.CompileError as error:
        raise CompileError("the kernel was not compiled" + way_of_source(source, backend), " ".join(options), "", error.log) from error
    except gpuglue.Error as error:
        raise of(error) from error


# What generated kernels, and statements of programs in them, write as in CUDA, in OpenCL C.
_IN_OPENCL = """#define __device__
#define __shared__ __local
#define __syncthreads() barrier(CLK_LOCAL_MEM_FENCE)
#define GG_PLACE(of) ((uint3)(of(0), of(1), of(2)))
#define threadIdx GG_PLACE(get_local_id)
#define blockIdx GG_PLACE(get_group_id)
#define blockDim GG_PLACE(get_local_size)
#define gridDim GG_PLACE(get_num_groups)
""" + "".join([*(f"#define {name}f {name}\n" for name in _rtc_headers.MATH.split()),
               *(f"#define {word} gg_{word}\n" for word in ("kernel", "global", "local", "constant"))])  # names in C


def in_opencl(source, options):
    """The Image of a generated kernel for Level Zero, whose pointers are declared __global."""
    if "pycuda-complex.hpp" in source:
        raise LogicError("OpenCL C, which Level Zero compiles, has no complex numbers: copy with get() and use NumPy")
    source = source.replace('extern "C" __global__', "__kernel")
    source = _IN_OPENCL + re.sub(r"(?<=\d)(U?)LL\b|\blong (?=long\b)", r"\1", source)  # long has 64 bits, and long long 128
    options = [one for one in options or () if one.startswith(("-D", "-I"))]
    return _made(source, "ze", gpuglue.current_device().arch, "opencl", options)


class SourceModule(driver.Module):
    """A module from source.

    Parameters
    ----------
    source : str
        CUDA C++.
    nvcc : str, default 'nvcc'
        Not used.
    options : list of str, optional
        Options of nvcc; those without an equivalent are dropped.
    keep : bool, default False
        Not used.
    no_extern_c : bool, default False
        Whether to compile the source as it is. False puts it into ``extern "C"``.
    arch : str, optional
        Architecture, such as 'sm_90'. None is that of the current device.
    code : str, optional
        Architecture of the code, in place of `arch`.
    cache_dir : str, optional
        Not used: see ``GPUGLUE_CACHE_DIR``.
    include_dirs : sequence of str, default ()
        Directories of headers.

    See Also
    --------
    compile : Compile without loading.

    Examples
    --------
    >>> # host only: elsewhere the source is compiled by the vendor's compiler
    >>> module = compiler.SourceModule("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
    >>> module.get_function("add").max_threads_per_block
    1024
    """

    def __init__(self, source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None,
                 cache_dir=None, include_dirs=()):
        image = compile(source, nvcc, options, keep, no_extern_c, arch, code, cache_dir, list(include_dirs))
        super().__init__(image)
        self.module = self

    def get_function(self, name):
        """Return a kernel.

        Parameters
        ----------
        name : str
            Its name in the source, unless ``no_extern_c`` was given: then in the image.

        Returns
        -------
        Function
            The kernel.
        """
        return super().get_function(name)


class DynamicModule(driver.Module):
    """A module that is linked from several sources, and from code and libraries.

    Call `add_source`, `add_data`, `add_file` and `add_stdlib`, and then `link`.

    Parameters
    ----------
    nvcc : str, default 'nvcc'
        Not used.
    link_options : list of str, optional
        Options of nvJitLink.
    keep : bool, default False
        Not used.
    no_extern_c : bool, default False
        Whether to compile the sources as they are. False puts them into ``extern "C"``.
    arch : str, optional
        Architecture, such as 'sm_90'. None is that of the current device.
    code : str, optional
        Architecture of the code, in place of `arch`.
    cache_dir : str, optional
        Not used: see ``GPUGLUE_CACHE_DIR``.
    include_dirs : sequence of str, optional
        Directories of headers.
    message_handler : function, optional
        Not used.
    log_verbose : bool, default False
        Not used.
    cuda_libdir : str, optional
        Directory of the toolkit's libraries. None searches for it.

    Notes
    -----
    On NVIDIA's devices it needs the library nvJitLink. On other devices the sources are compiled together, and there are no
    launches from device code.

    Examples
    --------
    >>> # host only: elsewhere the vendor's compiler and linker are needed
    >>> module = compiler.DynamicModule()
    >>> added = module.add_source("__device__ int answer() { return 42; }")
    >>> added = module.add_source("__device__ int answer(); __global__ void ask(int *x) { *x = answer(); }")
    >>> x = gpuarray.zeros(1, np.int32)
    >>> module.link().get_function("ask")(x, block=(1, 1, 1))
    >>> x.get()
    array([42], dtype=int32)
    """

    def __init__(self, nvcc="nvcc", link_options=None, keep=False, no_extern_c=False, arch=None, code=None, cache_dir=None,
                 include_dirs=None, message_handler=None, log_verbose=False, cuda_libdir=None):
        self._link_options, self._libdir = list(link_options or ()), cuda_libdir
        self._given = {"no_extern_c": no_extern_c, "arch": arch, "code": code, "include_dirs": list(include_dirs or ())}
        self._sources, self._inputs, self.module = [], [], None

    def add_source(self, source, nvcc_options=None, name="kernel.ptx"):
        """Add CUDA C++.

        Parameters
        ----------
        source : str
            The source.
        nvcc_options : list of str, optional
            Options of nvcc; those without an equivalent are dropped.
        name : str, default 'kernel.ptx'
            Name of the source in messages of the linker.

        Returns
        -------
        DynamicModule
            The module itself.
        """
        self._sources.append((source, list(DEFAULT_NVCC_FLAGS if nvcc_options is None else nvcc_options), name))
        return self

    def add_data(self, data, input_type, name="unknown"):
        """Add compiled code.

        Parameters
        ----------
        data : bytes or buffer
            The code.
        input_type : driver.jit_input_type
            What it is.
        name : str, default 'unknown'
            Its name in messages of the linker.

        Returns
        -------
        DynamicModule
            The module itself.
        """
        self._inputs.append((bytes(data), driver.jit_input_type(input_type).name, name))
        return self

    def add_file(self, filename, input_type):
        """Add compiled code of a file.

        Parameters
        ----------
        filename : path
            The file.
        input_type : driver.jit_input_type
            What it is.

        Returns
        -------
        DynamicModule
            The module itself.

        Raises
        ------
        OSError
            If the file cannot be read.
        """
        with open(filename, "rb") as file:
            return self.add_data(file.read(), input_type, os.path.basename(os.fspath(filename)))

    def add_stdlib(self, libname):
        """Add a library of NVIDIA's toolkit; on devices of other vendors do nothing.

        Parameters
        ----------
        libname : str
            Its name, such as 'cudadevrt', which launches from device code need.

        Returns
        -------
        DynamicModule
            The module itself.

        Raises
        ------
        driver.LogicError
            If the library is not found.
        """
        if not _nvidia(gpuglue.current_device().arch):
            return self
        return self.add_file(_linking.static_library(libname, self._libdir), driver.jit_input_type.LIBRARY)

    def link(self):
        """Compile the sources, link them with the rest, and load the result.

        Returns
        -------
        DynamicModule
            The module itself.

        Raises
        ------
        driver.CompileError
            If the compiler or the linker rejects what was added; `stderr` has its output.
        driver.LogicError
            If the linker is not installed, or the device loads no linked code.
        """
        image = self._linked() if _nvidia(gpuglue.current_device().arch) else self._together()
        super().__init__(image)
        self.module = self
        return self

    def _linked(self):
        device, given = gpuglue.current_device(), self._given
        images = [(compile(source, options=[*options, "-rdc=true"], **given), name) for source, options, name in self._sources]
        arch = images[0][0].arch if images else _arch(device, given["arch"], given["code"], [], "cubin")
        linker = _linking.Linker(arch or device.arch, self._link_options)
        try:
            for image, name in images:
                linker.add(image, "CUBIN" if image.format == "cubin" else "PTX", name)
            for data, kind, name in self._inputs:
                linker.add(data, kind, name)
            return gpuglue.Image(linker.link())
        finally:
            linker.close()

    def _together(self):
        if self._inputs:
            raise LogicError(f"{gpuglue.current_device()} loads no linked code: load each image by module_from_buffer(), or add "
                             "sources")
        if not self._sources:
            raise LogicError("nothing to link: call add_source() first")
        begin, end = ("", "\n") if self._given["no_extern_c"] else ('extern "C" {\n#line 1 "kernel.cu"\n', "\n}\n")
        options = [option for _, given, _ in self._sources for option in given]
        return compile("".join(begin + source + end for source, _, _ in self._sources), options=options,
                       **{**self._given, "no_extern_c": True})

    def get_function(self, name):
        """Return a kernel.

        Parameters
        ----------
        name : str
            Its name in the source, unless ``no_extern_c`` was given: then in the image.

        Returns
        -------
        Function
            The kernel.

        Raises
        ------
        driver.LogicError
            If the module is not linked, or has no such kernel.
        """
        if self.module is None:
            raise LogicError("the module is not linked: call link() first")
        return super().get_function(name)


class DynamicSourceModule(DynamicModule):
    """A module from a source whose kernels may launch kernels.

    Parameters
    ----------
    source : str
        CUDA C++.
    nvcc : str, default 'nvcc'
        Not used.
    options : list of str, optional
        Options of nvcc; those without an equivalent are dropped.
    keep : bool, default False
        Not used.
    no_extern_c : bool, default False
        Whether to compile the source as it is. False puts it into ``extern "C"``.
    arch : str, optional
        Architecture, such as 'sm_90'. None is that of the current device.
    code : str, optional
        Architecture of the code, in place of `arch`.
    cache_dir : str, optional
        Not used: see ``GPUGLUE_CACHE_DIR``.
    include_dirs : sequence of str, optional
        Directories of headers.
    cuda_libdir : str, optional
        Directory of the toolkit's libraries. None searches for it.

    Notes
    -----
    On NVIDIA's devices it needs the library nvJitLink, and cudadevrt of the toolkit. On other devices it is as SourceModule,
    without launches from device code.

    Examples
    --------
    >>> # host only: elsewhere the vendor's compiler and linker are needed
    >>> module = compiler.DynamicSourceModule("__global__ void add(float *x, float *y) { x[blockIdx.x] += y[blockIdx.x]; }")
    >>> module.get_function("add").max_threads_per_block
    1024
    """

    def __init__(self, source, nvcc="nvcc", options=None, keep=False, no_extern_c=False, arch=None, code=None, cache_dir=None,
                 include_dirs=None, cuda_libdir=None):
        super().__init__(nvcc, None, keep, no_extern_c, arch, code, cache_dir, include_dirs, cuda_libdir=cuda_libdir)
        self.add_source(source, options).add_stdlib("cudadevrt").link()


__getattr__ = refusing(__name__)
