"""The run-time compilers of NVIDIA and AMD: two libraries with similar functions, found on first use.

The search order is: GPUGLUE_NVRTC_LIBRARY or GPUGLUE_HIPRTC_LIBRARY (an absolute path; no other location is
searched then), the process itself, the wheels of this Python environment, the loader by name, the toolkits'
directories.

AMD's writes temporary files, which would stay if the process is killed meanwhile; so it runs in a child process
(`python -m gpuglue._rtc`) with a temporary directory that is removed with it."""

import ctypes
import glob
import json
import os
import re
import sys
import threading

from . import _tempdir, _discovery
from ._rtc_headers import HEADERS, HIP_HEADERS


def mapped(pattern):
    """Paths of libraries in the process, by the beginning of the file's name."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
    except OSError:
        return []
    return sorted(path for path in paths if re.match(pattern, os.path.basename(path)))


def places(patterns):
    """The directories that match. A pattern whose variable is not set matches none, also not in the current directory."""
    expanded = map(os.path.expandvars, patterns)
    return [place for one in expanded if os.path.isabs(one) for place in sorted(glob.glob(one), reverse=True)]


def named(variable):
    """The library that a variable names, which must be an absolute path; None where it is not set."""
    path = os.environ.get(variable)
    if path and not os.path.isabs(path):
        raise LookupError(f"{variable} is {path!r}: expected the absolute path of a library")
    return path or None


class Rtc:
    """One of the two: the names of its library and of its functions."""

    def __init__(self, prefix, title, variable, stem, names, directories, spills, headers):
        self.headers = headers
        self.prefix, self.title, self.variable, self.stem = prefix, title, variable, stem
        self.names, self.directories, self.spills = names, directories, spills
        self._library, self._lock = None, threading.Lock()

    # ---- search

    def _mapped(self):
        """Paths of copies that the process already has."""
        return mapped(rf"{self.stem}(-[0-9a-f]+)?\.so[.0-9]*$")

    def _candidates(self):
        given = named(self.variable)
        if given:
            return [given]
        found = self._mapped()
        for directory in _discovery.library_directories():
            found += sorted(glob.glob(os.path.join(directory, self.stem + ".so*")), reverse=True)
        found += self.names
        for place in places(self.directories):
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
                tried.append(f"{path}: {str(error).removeprefix(path + ': ')}")
                continue
            library.gg_path = self.true_path(library)
            return library
        listed = "\n  ".join(tried) or "no file of that name"
        raise LookupError(f"{self.title}, was not found: install it, or set {self.variable} to its path; "
                          f"tried:\n  {listed}")

    def _builtins(self, path):
        """A library that it opens by name only, which the loader does not find in wheels."""
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

    # ---- compiling

    def version(self):
        library = self.library()
        major, minor = ctypes.c_int(), ctypes.c_int()
        getattr(library, self.prefix + "Version")(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def identity(self):
        """What identifies this compiler: its version, its file's size and time, and the supplied headers."""
        library = self.library()
        try:
            state = os.stat(library.gg_path)
        except OSError:
            return f"{library.gg_path} {self.version()} {self.headers}"
        return f"{self.headers} {self.version()} {library.gg_path} {state.st_size} {state.st_mtime_ns}"

    def include_directories(self):
        """Directories of the toolkit's headers, for those not in `headers`: beside the library, in the wheels that
        belong to it, in CUDA_HOME and CUDA_PATH."""
        beside = os.path.dirname(self.library().gg_path)
        found = []
        nearby = [f"{beside}/../include", f"{beside}/../../include", f"{beside}/../../cuda_runtime/include"]
        for place in [*nearby, *places(["$CUDA_HOME/include", "$CUDA_PATH/include"])]:
            directory = os.path.realpath(place)
            if os.path.exists(os.path.join(directory, "cuda_fp16.h")):
                found += [directory, os.path.join(directory, "cccl"), *(
                    os.path.join(directory, "..", "..", other, "include") for other in ("cuda_cccl", "curand"))]
                break
        return [os.path.normpath(directory) for directory in found if os.path.isdir(directory)]

    def supported(self):
        """Numbers of the architectures that it compiles for; empty where it does not report them."""
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
        texts = [text.encode() for text in self.headers.values()]
        headers = (ctypes.c_char_p * len(texts))(*texts)
        included = (ctypes.c_char_p * len(texts))(*(name.encode() for name in self.headers))
        self._call("CreateProgram", ctypes.byref(program), source.encode(), b"source.cu", len(texts), headers, included)
        try:
            for name in names:
                self._call("AddNameExpression", program, name.encode())
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            try:
                self._call("CompileProgram", program, len(options), given)
            except RuntimeError as error:
                log = self._text(program, "GetProgramLog").rstrip(b"\0").decode(errors="replace")
                shown = f", given {' '.join(options)}" if "INVALID_OPTION" in str(error) else ""
                raise RuntimeError(f"{error}{shown}", log) from None
            log = self._text(program, "GetProgramLog").rstrip(b"\0").decode(errors="replace")
            return self._text(program, code), log, {name: self._lowered(program, name) for name in names}
        finally:
            getattr(self.library(), self.prefix + "DestroyProgram")(ctypes.byref(program))

    def _lowered(self, program, name):
        lowered = ctypes.c_char_p()
        self._call("GetLoweredName", program, name.encode(), ctypes.byref(lowered))
        return lowered.value.decode()


CUDA_DIRECTORIES = [
    "$CONDA_PREFIX/lib", "$CUDA_HOME/lib64", "$CUDA_PATH/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda/lib",
    "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/lib", "/usr/local/cuda*/targets/*/lib"]
ROCM_DIRECTORIES = [
    "$CONDA_PREFIX/lib", "$ROCM_PATH/lib", "$ROCM_HOME/lib", "/opt/rocm/lib", "/opt/rocm-*/lib", "/opt/rocm/core-*/lib"]

nvrtc = Rtc("nvrtc", "NVRTC (libnvrtc), NVIDIA's run-time compiler", "GPUGLUE_NVRTC_LIBRARY", "libnvrtc",
            ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"], CUDA_DIRECTORIES, False, HEADERS)
# Before HIP 7 it is also inside the runtime.
hiprtc = Rtc("hiprtc", "HIPRTC (libhiprtc), AMD's run-time compiler", "GPUGLUE_HIPRTC_LIBRARY", "libhiprtc",
             ["libhiprtc.so.8", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
              "libamdhip64.so.6", "libamdhip64.so.5"], ROCM_DIRECTORIES, True, HEADERS | HIP_HEADERS)


# ---- in a child process


def elsewhere(rtc, source, options, names, code):
    """The result of rtc.compile_here in the child."""
    request = json.dumps({"source": source, "options": options, "names": names, "code": code})
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {"PYTHONPATH": path, "PYTHONFAULTHANDLER": "", rtc.variable: rtc.library().gg_path}
    command = [sys.executable, "-P", "-m", "gpuglue._rtc", rtc.prefix]
    status, answer, words = _tempdir.run(lambda output: [*command, str(output)], request.encode(), environment)
    head, _, body = answer.partition(b"\n")
    if status or not head:
        raise RuntimeError(f"the compiler's process ended with {status}, given {' '.join(options)}; the compiler may be older than the "
                           f"architecture: install a newer one, or set {rtc.variable} to its path (used: {rtc.library().gg_path})", words)
    reply = json.loads(head)
    if reply["error"]:
        raise RuntimeError(*reply["error"])
    return body, reply["log"], reply["names"]


def answer_one(rtc, request):
    try:
        body, log, names = rtc.compile_here(**request)
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
