"""Names of PyCUDA that are not here, and what to use instead. The errors say it; the table of names in docs too."""

import opcode
import re
import sys

TEXTURES = "CUDA 12 has no texture and surface references: pass the array to the kernel as an argument"
_OPENGL = "map the buffer in an extension of your own, and pass its address to gpuglue.Buffer.from_ptr()"
_COMPUTING = "use CuPy on the same memory, cupy.asarray(array), or NumPy, array.get()"
_STRUCTS = "declare the struct in the source, and name it by register_dtype(dtype, name)"
_OWN_FILES = "use PyCUDA's own files (gpuglue pycuda add)"
_INTERNAL = "use the class of kernels of this module, or PyCUDA's own files (gpuglue pycuda add)"

MODULES = {
    "pycuda.sparse": _COMPUTING, "pycuda._cluda": _OWN_FILES, "pycuda._mymako": _OWN_FILES,
    "pycuda.gl": f"PyCUDA itself has it only where it was built with CUDA_ENABLE_GL: {_OPENGL}"}
OPTIONAL = ("pycuda.gl",)  # there, but an ImportError, in a PyCUDA that was built as it is by default
# Regular expressions, separated by spaces.
_NAMES = {
    "pycuda.driver": {
        TEXTURES: """TextureReference SurfaceReference bind_array_to_texref matrix_to_texref TRSA_OVERRIDE_FORMAT
            TRSF_READ_AS_INTEGER TRSF_NORMALIZED_COORDINATES TR_DEFAULT""",
        "from CUDA 12.0 on the driver refuses it: use gpuglue.trace(), or a profiler's own range of time": "initialize_profiler",
        "use pycuda.compiler.DynamicModule": "Linker",
        _OPENGL: "RegisteredBuffer RegisteredImage"},
    "pycuda.compiler": {"use gpuglue.compile(), which needs no nvcc": "get_nvcc_version preprocess_source compile_plain",
                        "use pycuda.compiler.SourceModule": "CudaModule"},
    "pycuda.elementwise": {_INTERNAL: r"get_\w+"}, "pycuda.reduction": {_INTERNAL: r"get_\w+"},
    "pycuda.tools": {
        _STRUCTS: "match_dtype_to_c_struct", _OWN_FILES: "Argument get_arg_type",
        "use gpuglue.trace(), which records allocations": "DebugMemoryPool"},
    "pycuda.gpuarray": {_COMPUTING: "multi_take multi_take_put multi_put", "use the method of the array": "reshape", _OWN_FILES: "splay"},
    "pycuda.cumath": {}, "pycuda.curandom": {}}
# Members of classes: their own errors name an alternative.
MEMBERS = {
    "Event": {"gpuglue has no events of other processes: send memory with mem_get_ipc_handle(), and wait for the event before": "ipc_handle from_ipc_handle"}}
# What a source may have that no compiler of gpuglue accepts: (pattern, an alternative).
_IN_SOURCES = [
    (r"\b(texture|surface)\s*<|\b(tex|surf)[123]D\w*\s*\(", TEXTURES),
    (r"<<<", "kernels launch kernels on cuda only, in a pycuda.compiler.DynamicSourceModule: else launch them from Python"),
    (r"#\s*include\s*[<\"]curand", "CURAND is on cuda only, with its headers (nvidia-curand and nvidia-cuda-cccl): else pass an array "
     "that pycuda.curandom has filled"),
    (r"#\s*include\s*[<\"](cub|thrust)/", "CUB and Thrust are on cuda only, with their headers (nvidia-cuda-cccl): else use pycuda.reduction and "
     "pycuda.scan")]
_IN_SOURCES_ELSEWHERE = [  # but what cuda takes
    (r"\basm\s*(volatile\s*)?\(", "instructions in PTX are on cuda only: else write them in C++"),
    (r"#\s*include\s*[<\"]cuda_bf16", "cuda_bf16.h is on cuda only: else compute with float or half")]


def way_of_source(source, backend):
    """The alternative for a source that was not compiled, after a colon, or nothing."""
    rows = _IN_SOURCES if backend == "cuda" else _IN_SOURCES + _IN_SOURCES_ELSEWHERE
    return next((f": {way}" for pattern, way in rows if re.search(pattern, source)), "")


def _way(table, name):
    return next((way for way, listed in table.items() if any(re.fullmatch(one, name) for one in listed.split())), None)


def refusing(module):
    """The __getattr__ of a module, whose error names an alternative."""
    public = "pycuda" + module.rpartition("pycuda")[2]

    def __getattr__(name):
        way, caller = _way(_NAMES[public], name), sys._getframe(1)
        # `from module import name` would replace an AttributeError by one that names no alternative
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
    """A base class: the error for a missing member of the class or of an object names an alternative."""

    def __getattr__(self, name):
        raise _member_error(type(self).__name__, name)
