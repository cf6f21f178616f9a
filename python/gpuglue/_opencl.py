"""OpenCL C for Level Zero: compiled to SPIR-V by ocloc, the program or the library."""

import ctypes
import os
import shutil

from . import _rtc, _tempdir

# The program needs files: it works in a temporary directory, and its output is passed through a descriptor.
RUN = 'output=$1; shift; cd "$TMPDIR" && cat >source.cl && "$@" && cat ./*.spv >"$output"'


class Failed(Exception):
    """The compiler failed; its output is the argument."""


def _library():
    """If a variable is set, no other location is searched; one that names the program selects it."""
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
        raise LookupError(f"GPUGLUE_OCLOC is {given!r}, which cannot be executed: expected a program")
    raise LookupError("ocloc, which compiles OpenCL C to SPIR-V, was not found: install intel-ocloc, or load SPIR-V "
                      "that was built elsewhere with gpuglue.Module")


def identity():
    """What identifies this compiler: its file's size and time."""
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
    status, output, log = _tempdir.run(lambda output: ["/bin/sh", "-c", RUN, "sh", f"/dev/fd/{output}", *program],
                                     source.encode())
    return _result(status, {"source.spv": output} if output else {}, log)


def _result(code, files, log):
    output = [data for name, data in files.items() if name.endswith(".spv")]
    log = log.replace("\0", "").rstrip()
    if code or not output:
        raise Failed(log or f"ocloc ended with {code}")
    return output[0], log
