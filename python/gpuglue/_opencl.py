"""OpenCL C for Level Zero: ocloc, or the library that it is made of, makes SPIR-V of it."""

import ctypes
import os
import shutil

from . import _rtc, _scratch

# The program wants files: it works in its own folder of temporary ones, and what it made goes out by a descriptor.
RUN = 'made=$1; shift; cd "$TMPDIR" && cat >source.cl && "$@" && cat ./*.spv >"$made"'


class Failed(Exception):
    """The compiler said no; its words are the argument."""


def _library():
    """A variable is final; and who names the program wants that one."""
    given = _rtc.named("GPUGLUE_OCLOC_LIBRARY")
    if not given and os.environ.get("GPUGLUE_OCLOC"):
        return None
    try:
        return ctypes.CDLL(given or "libocloc.so")
    except OSError as error:
        if given:
            raise LookupError(f"GPUGLUE_OCLOC_LIBRARY is {given}, which cannot be opened: {error}") from None
        return None


def find():
    """("library", CDLL) or ("program", path); LookupError where there is neither."""
    library = _library()
    if library is not None:
        return "library", library
    given = os.environ.get("GPUGLUE_OCLOC")
    path = shutil.which(given or "ocloc")
    if path:
        return "program", path
    if given:
        raise LookupError(f"GPUGLUE_OCLOC is {given!r}, which is no program that can be run")
    raise LookupError("ocloc was not found, which makes SPIR-V of OpenCL C: install intel-ocloc, or load SPIR-V "
                      "that was built elsewhere with gpuglue.Module")


def identity():
    """What tells this compiler from another: its file's size and time."""
    kind, what = find()
    path = os.path.abspath(what) if kind == "program" else _rtc.Rtc.true_path(what)
    state = os.stat(path) if os.path.isabs(path) else None
    return f"{kind} {path} {(state.st_size, state.st_mtime_ns) if state else ''}"


def compile_source(source, options, device):
    """(SPIR-V, log)."""
    kind, what = find()
    arguments = ["ocloc", "compile", "-file", "source.cl", "-device", device, "-spv_only", "-q", "-out_dir", "."]
    if options:
        arguments += ["-options", " ".join(options)]
    return _by_library(what, arguments, source) if kind == "library" else _by_program(what, arguments, source)


def _by_library(library, arguments, source):
    """All in memory: sources go in, files come out as bytes."""
    data = source.encode()
    count = ctypes.c_uint32()
    outputs, sizes = ctypes.POINTER(ctypes.POINTER(ctypes.c_uint8))(), ctypes.POINTER(ctypes.c_uint64)()
    names = ctypes.POINTER(ctypes.c_char_p)()
    argv = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
    code = library.oclocInvoke(
        len(arguments), argv, 1, (ctypes.c_char_p * 1)(data), (ctypes.c_uint64 * 1)(len(data) + 1),
        (ctypes.c_char_p * 1)(b"source.cl"), 0, None, None, None, ctypes.byref(count), ctypes.byref(outputs),
        ctypes.byref(sizes), ctypes.byref(names))
    files = {names[i].decode(): ctypes.string_at(outputs[i], sizes[i]) for i in range(count.value)}
    library.oclocFreeOutput(ctypes.byref(count), ctypes.byref(outputs), ctypes.byref(sizes), ctypes.byref(names))
    return _result(code, files, files.get("stdout.log", b"").decode(errors="replace"))


def _by_program(path, arguments, source):
    program = [os.path.abspath(path), *(word for word in arguments[1:] if word != "-q")]  # it hides errors too
    status, made, log = _scratch.run(lambda made: ["/bin/sh", "-c", RUN, "sh", f"/dev/fd/{made}", *program],
                                     source.encode())
    return _result(status, {"source.spv": made} if made else {}, log)


def _result(code, files, log):
    made = [data for name, data in files.items() if name.endswith(".spv")]
    log = log.replace("\0", "").rstrip()
    if code or not made:
        raise Failed(log or f"ocloc ended with {code}")
    return made[0], log
