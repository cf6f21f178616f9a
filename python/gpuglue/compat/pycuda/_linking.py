"""Linking of device code by nvJitLink, a library of NVIDIA's toolkit and wheels, which is found at the first use."""

import ctypes
import functools
import glob
import os

from gpuglue import _discovery, _rtc

from ._errors import CompileError, LogicError

INPUTS = {"CUBIN": 1, "PTX": 2, "FATBINARY": 4, "OBJECT": 5, "LIBRARY": 6}  # nvJitLink's numbers, by PyCUDA's names
# The functions' names end with a version; each library has those of the first release of its major version.
_VERSIONS = ("_13_0", "_12_0", "_14_0")


def _candidates():
    found = _rtc.mapped(r"libnvJitLink(-[0-9a-f]+)?\.so[.0-9]*$")
    for directory in [*_discovery.library_directories(), *_rtc.places(_rtc.CUDA_DIRECTORIES)]:
        found += sorted(glob.glob(os.path.join(directory, "libnvJitLink.so*")), reverse=True)
    return [*found, "libnvJitLink.so.13", "libnvJitLink.so.12"]


@functools.lru_cache(maxsize=None)
def _library():
    """(library, end of its functions' names)."""
    for path in dict.fromkeys(_candidates()):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for version in _VERSIONS:
            if hasattr(library, f"__nvJitLinkCreate{version}"):
                return library, version
    raise LogicError("device code is linked by nvJitLink, which was not found: install the package nvidia-nvjitlink, or compile all "
                     "sources in one SourceModule")


def static_library(name, given=None):
    """The path of a library of the toolkit, such as cudadevrt."""
    directories = [given] if given else [*_discovery.library_directories(), *_rtc.places([*_rtc.CUDA_DIRECTORIES, "$CUDA_ROOT/lib64"]),
                                         f"/usr/lib/{os.uname().machine}-linux-gnu"]
    for directory in directories:
        path = os.path.join(directory, f"lib{name}.a")
        if os.path.isfile(path):
            return path
    raise LogicError(f"lib{name}.a was not found: expected it in cuda_libdir=, in a toolkit, or in the package nvidia-cuda-runtime")


class Linker:
    """One call of nvJitLink."""

    def __init__(self, arch, options=()):
        self._functions, self._version = _library()
        self._handle = ctypes.c_void_p()
        texts = [f"-arch={arch}".encode(), *(str(one).encode() for one in options)]
        given = (ctypes.c_char_p * len(texts))(*texts)
        self._kept = [given]  # nvJitLink reads the names of inputs again when it links, so all that it gets lives as long
        self._check(self._call("Create", ctypes.byref(self._handle), len(texts), given), "Create")

    def _call(self, name, *args):
        return getattr(self._functions, f"__nvJitLink{name}{self._version}")(*args)

    def _check(self, status, name):
        if status:
            raise CompileError(f"the device code was not linked: nvJitLink{name} returned {status}", "", "", self._log())

    def _text(self, name, size_name):
        size = ctypes.c_size_t()
        self._call(size_name, self._handle, ctypes.byref(size))
        text = ctypes.create_string_buffer(max(size.value, 1))
        if size.value:
            self._call(name, self._handle, text)
        return text.raw[:size.value]

    def _log(self):
        return self._text("GetErrorLog", "GetErrorLogSize").rstrip(b"\0").decode(errors="replace") if self._handle else ""

    def add(self, data, kind, name):
        """Add an input in memory."""
        data, name = bytes(data), name.encode()
        if kind == "PTX" and not data.endswith(b"\0"):
            data += b"\0"
        self._kept += [data, name]
        self._check(self._call("AddData", self._handle, INPUTS[kind], data, ctypes.c_size_t(len(data)), name), "AddData")

    def link(self):
        """The cubin."""
        self._check(self._call("Complete", self._handle), "Complete")
        return self._text("GetLinkedCubin", "GetLinkedCubinSize")

    def close(self):
        """Release what nvJitLink holds."""
        self._call("Destroy", ctypes.byref(self._handle))
