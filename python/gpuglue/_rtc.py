"""The run-time compilers of NVIDIA and AMD: two libraries of one shape, found when they are first needed.

A library is taken from, in order: GPUGLUE_NVRTC_LIBRARY or GPUGLUE_HIPRTC_LIBRARY (an absolute path, then
nothing else is tried), the process itself, the wheels of this Python environment, the loader by name, the
toolkits' folders.

AMD's writes temporary files, which stay if the process is killed meanwhile; so it runs in one of its own
(`python -m gpuglue._rtc`) with a folder that goes with it."""

import ctypes
import glob
import json
import os
import re
import sys
import threading

from . import _scratch, _search
from ._rtc_headers import HEADERS


def mapped(pattern):
    """Paths of libraries in the process, by the beginning of the file's name."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
    except OSError:
        return []
    return sorted(path for path in paths if re.match(pattern, os.path.basename(path)))


def named(variable):
    """The library that a variable names, which must be an absolute path; None where it is not set."""
    path = os.environ.get(variable)
    if path and not os.path.isabs(path):
        raise LookupError(f"{variable} is {path!r}: expected the absolute path of a library")
    return path or None


class Rtc:
    """One of the two: how its library is called and found, and how its functions are called."""

    def __init__(self, prefix, title, variable, stem, names, folders, spills):
        self.prefix, self.title, self.variable, self.stem = prefix, title, variable, stem
        self.names, self.folders, self.spills = names, folders, spills
        self._library, self._lock = None, threading.Lock()

    # ---- finding it

    def _mapped(self):
        """Paths of copies that the process already has."""
        return mapped(rf"{self.stem}(-[0-9a-f]+)?\.so[.0-9]*$")

    def _candidates(self):
        given = named(self.variable)
        if given:
            return [given]
        found = self._mapped()
        for folder in _search.library_directories():
            found += sorted(glob.glob(os.path.join(folder, self.stem + ".so*")), reverse=True)
        found += self.names
        for folder in self.folders:
            for place in sorted(glob.glob(os.path.expandvars(folder)), reverse=True):
                found += [path for name in self.names if os.path.exists(path := os.path.join(place, name))]
        return [path for path in found if ".alt." not in path and "/stubs/" not in path]

    def library(self):
        """The library with its facts; raises LookupError with what was tried."""
        with self._lock:
            if self._library is None:
                self._library = self._open()
            return self._library

    def _open(self):
        tried = []
        for path in dict.fromkeys(self._candidates()):
            self._builtins(path)
            try:
                library = ctypes.CDLL(path)
                getattr(library, self.prefix + "CreateProgram")
            except (OSError, AttributeError) as error:
                tried.append(f"{path}: {error}")
                continue
            library.gg_path = self.true_path(library)
            return library
        listed = "\n  ".join(tried) or "nothing of that name"
        raise LookupError(f"{self.title} was not found. Install it, or set {self.variable} to its path. "
                          f"Tried:\n  {listed}")

    def _builtins(self, path):
        """A library that it opens by name only: wheels do not lead to it."""
        for other in sorted(glob.glob(os.path.join(os.path.dirname(path), self.stem + "-builtins.so.*"))):
            try:
                if os.path.isabs(path) and ".alt." not in other:
                    ctypes.CDLL(other)
            except OSError:
                pass

    @staticmethod
    def true_path(library):
        if os.path.isabs(library._name):
            return os.path.realpath(library._name)
        found = mapped(re.escape(library._name))
        return os.path.realpath(found[0]) if found else library._name

    # ---- using it

    def version(self):
        library = self.library()
        major, minor = ctypes.c_int(), ctypes.c_int()
        getattr(library, self.prefix + "Version")(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def identity(self):
        """What tells this compiler from another: its version, its file's size and time; and what we supply to it."""
        library = self.library()
        try:
            state = os.stat(library.gg_path)
        except OSError:
            return f"{library.gg_path} {self.version()} {HEADERS}"
        return f"{HEADERS} {self.version()} {library.gg_path} {state.st_size} {state.st_mtime_ns}"

    def include_folders(self):
        """Folders of the toolkit's own headers, for what is not in HEADERS: beside the library, in the wheels that
        belong to it, where CUDA_HOME and CUDA_PATH say."""
        beside = os.path.dirname(self.library().gg_path)
        found = []
        for pattern in (f"{beside}/../include", f"{beside}/../../include", f"{beside}/../../cuda_runtime/include",
                        "$CUDA_HOME/include", "$CUDA_PATH/include"):
            folder = os.path.realpath(os.path.expandvars(pattern))
            if os.path.exists(os.path.join(folder, "cuda_fp16.h")):
                found += [folder, os.path.join(folder, "cccl"), *(
                    os.path.join(folder, "..", "..", other, "include") for other in ("cuda_cccl", "curand"))]
                break
        return [os.path.normpath(folder) for folder in found if os.path.isdir(folder)]

    def supported(self):
        """Numbers of the architectures that it compiles for; empty where it does not say."""
        library, count = self.library(), ctypes.c_int()
        try:
            if library.nvrtcGetNumSupportedArchs(ctypes.byref(count)):
                return []
        except AttributeError:
            return []
        numbers = (ctypes.c_int * count.value)()
        library.nvrtcGetSupportedArchs(numbers)
        return list(numbers)

    def _call(self, name, *arguments):
        library = self.library()
        code = getattr(library, self.prefix + name)(*arguments)
        if code:
            describe = getattr(library, self.prefix + "GetErrorString")
            describe.restype = ctypes.c_char_p
            raise RuntimeError(f"{self.prefix}{name}: {describe(code).decode(errors='replace')} ({code})")

    def _text(self, program, name):
        size = ctypes.c_size_t()
        self._call(name + "Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value or 1)
        self._call(name, program, text)
        return text.raw[:size.value]

    def compile(self, source, options, names, code):
        """(code, log, {expression: name in the image}); RuntimeError with the log as second argument."""
        here = not self.spills or not sys.executable
        return self.compile_here(source, options, names, code) if here else elsewhere(self, source, options, names, code)

    def compile_here(self, source, options, names, code):
        program = ctypes.c_void_p()
        texts = [text.encode() for text in HEADERS.values()]
        headers = (ctypes.c_char_p * len(texts))(*texts)
        included = (ctypes.c_char_p * len(texts))(*(name.encode() for name in HEADERS))
        self._call("CreateProgram", ctypes.byref(program), source.encode(), b"source.cu", len(texts), headers, included)
        try:
            for name in names:
                self._call("AddNameExpression", program, name.encode())
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            try:
                self._call("CompileProgram", program, len(options), given)
            except RuntimeError as error:
                log = self._text(program, "GetProgramLog").rstrip(b"\0").decode(errors="replace")
                raise RuntimeError(str(error), log) from None
            log = self._text(program, "GetProgramLog").rstrip(b"\0").decode(errors="replace")
            return self._text(program, code), log, {name: self._lowered(program, name) for name in names}
        finally:
            getattr(self.library(), self.prefix + "DestroyProgram")(ctypes.byref(program))

    def _lowered(self, program, name):
        lowered = ctypes.c_char_p()
        self._call("GetLoweredName", program, name.encode(), ctypes.byref(lowered))
        return lowered.value.decode()


CUDA_FOLDERS = [
    "$CONDA_PREFIX/lib", "$CUDA_HOME/lib64", "$CUDA_PATH/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda/lib",
    "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/lib", "/usr/local/cuda*/targets/*/lib"]
ROCM_FOLDERS = [
    "$CONDA_PREFIX/lib", "$ROCM_PATH/lib", "$ROCM_HOME/lib", "/opt/rocm/lib", "/opt/rocm-*/lib", "/opt/rocm/core-*/lib"]

nvrtc = Rtc("nvrtc", "NVRTC (libnvrtc), NVIDIA's run-time compiler", "GPUGLUE_NVRTC_LIBRARY", "libnvrtc",
            ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"], CUDA_FOLDERS, False)
# Before HIP 7 it is also inside the runtime.
hiprtc = Rtc("hiprtc", "HIPRTC (libhiprtc), AMD's run-time compiler", "GPUGLUE_HIPRTC_LIBRARY", "libhiprtc",
             ["libhiprtc.so.8", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
              "libamdhip64.so.6", "libamdhip64.so.5"], ROCM_FOLDERS, True)


# ---- in a process of its own


def elsewhere(rtc, source, options, names, code):
    """What rtc.compile_here gives there."""
    asked = json.dumps({"source": source, "options": options, "names": names, "code": code})
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {"PYTHONPATH": path, "PYTHONFAULTHANDLER": "", rtc.variable: rtc.library().gg_path}
    command = [sys.executable, "-P", "-m", "gpuglue._rtc", rtc.prefix]
    status, answer, words = _scratch.run(lambda made: [*command, str(made)], asked.encode(), environment)
    head, _, body = answer.partition(b"\n")
    if status or not head:
        raise RuntimeError(f"the compiler's process ended with {status}", words)
    told = json.loads(head)
    if told["error"]:
        raise RuntimeError(*told["error"])
    return body, told["log"], told["names"]


def answer_one(rtc, asked):
    try:
        body, log, names = rtc.compile_here(**asked)
    except RuntimeError as error:
        return {"error": error.args}, b""
    return {"error": None, "log": log, "names": names}, body


def main(prefix, descriptor):
    rtc = {"nvrtc": nvrtc, "hiprtc": hiprtc}[prefix]
    head, body = answer_one(rtc, json.loads(sys.stdin.buffer.read()))
    with open(int(descriptor), "wb") as file:
        file.write(json.dumps(head).encode() + b"\n" + body)


if __name__ == "__main__":
    main(*sys.argv[1:])
