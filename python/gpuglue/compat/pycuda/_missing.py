"""Names of PyCUDA that are not here, and what to use instead. The errors say it; the table of names in docs too."""

import opcode
import re
import sys

TEXTURES = "CUDA 12 has no texture and surface references: pass the array to the kernel as an argument"
_OPENGL = "map the buffer in an extension of your own, and pass its address to gpuglue.Buffer.from_ptr()"
_COMPUTING = "use CuPy on the same memory, cupy.asarray(array), or NumPy, array.get()"
_STRUCTS = "declare the struct in the source, and name it by register_dtype(dtype, name)"
_INTERNAL = "use the class of kernels of this module, or PyCUDA's own files (gpuglue pycuda add)"

MODULES = {
    "pycuda.sparse": _COMPUTING,
    "pycuda.gl": f"PyCUDA itself has it only where it was built with CUDA_ENABLE_GL: {_OPENGL}"}
OPTIONAL = ("pycuda.gl",)  # there, but an ImportError, in a PyCUDA that was built as it is by default
_NAMES = {
    "pycuda.driver": {
        TEXTURES: """TextureReference SurfaceReference bind_array_to_texref matrix_to_texref TRSA_OVERRIDE_FORMAT
            TRSF_READ_AS_INTEGER TRSF_NORMALIZED_COORDINATES TR_DEFAULT""",
        "from CUDA 12.0 on the driver refuses it: use gpuglue.trace(), or a profiler's own range of time": "initialize_profiler",
        "use pycuda.compiler.DynamicModule": "Linker",
        _OPENGL: "RegisteredBuffer RegisteredImage"},
    "pycuda.compiler": {"use gpuglue.compile(), which needs no nvcc": "get_nvcc_version preprocess_source compile_plain"},
    "pycuda.elementwise": {_INTERNAL: "get_elwise_kernel get_elwise_kernel_and_types get_elwise_module get_elwise_range_module "
                                      "get_linear_combination_kernel"},
    "pycuda.reduction": {_INTERNAL: "get_reduction_module get_reduction_kernel_and_types get_sum_kernel get_dot_kernel "
                                    "get_minmax_kernel get_subset_sum_kernel get_subset_dot_kernel get_subset_minmax_kernel"},
    "pycuda.tools": {
        _STRUCTS: "match_dtype_to_c_struct",
        "use gpuglue.trace(), which records allocations": "DebugMemoryPool"},
    "pycuda.gpuarray": {_COMPUTING: "multi_take multi_take_put multi_put", "use the method of the array": "reshape"}, "pycuda.cumath": {},
    "pycuda.curandom": {}}
# Members of classes: their own errors name the way out.
MEMBERS = {
    "Event": {"gpuglue has no events of other processes: send memory with mem_get_ipc_handle(), and wait for the event before": "ipc_handle from_ipc_handle"}}
# What in a source no compiler of gpuglue's takes: (pattern, the way out).
_IN_SOURCES = [
    (r"\b(texture|surface)\s*<|\b(tex|surf)[123]D\w*\s*\(", TEXTURES),
    (r"<<<", "kernels launch kernels on cuda only, in a pycuda.compiler.DynamicSourceModule: else launch them from Python"),
    (r"#\s*include\s*[<\"]curand", "CURAND is on cuda only, with its headers (nvidia-curand and nvidia-cuda-cccl): else pass an array "
     "that pycuda.curandom has filled"),
    (r"#\s*include\s*[<\"]cuda_bf16", "cuda_bf16.h is on cuda only: else compute with float or half")]


def way_of_source(source):
    """The way out for a source that was not compiled, after a colon, or nothing."""
    return next((f": {way}" for pattern, way in _IN_SOURCES if re.search(pattern, source)), "")


def _way(table, name):
    return next((way for way, listed in table.items() if name in listed.split()), None)


def refusing(module):
    """The __getattr__ of a module, whose error names the way out."""
    public = "pycuda" + module.rpartition("pycuda")[2]

    def __getattr__(name):
        way, caller = _way(_NAMES[public], name), sys._getframe(1)
        # `from module import name` would replace an AttributeError by one without the way out
        kind = ImportError if way and caller.f_code.co_code[caller.f_lasti] == opcode.opmap["IMPORT_FROM"] else AttributeError
        raise kind(f"{public} has no {name!r} on gpuglue: {way}" if way else f"module {module!r} has no attribute {name!r}")
    return __getattr__


def _member_error(owner, name):
    way = _way(MEMBERS.get(owner, {}), name)
    return AttributeError(f"{owner} has no {name!r} on gpuglue: {way}" if way else
                          f"{owner!r} object has no attribute {name!r}")


class _RefusingType(type):
    def __getattr__(cls, name):
        raise _member_error(cls.__name__, name)


class Refusing(metaclass=_RefusingType):
    """A base class: the error for a missing member of the class or of an object names the way out."""

    def __getattr__(self, name):
        raise _member_error(type(self).__name__, name)
