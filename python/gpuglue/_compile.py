"""compile(): source to an image, by whichever compiler makes code for that architecture."""

import os
import platform
import re
from collections.abc import Sequence

from . import _cache, _core, _rtc


class CompileError(_core.Error):
    """The source was not compiled; `log` is what the compiler wrote."""

    log = ""


class Image(bytes):
    """Device code, as gpuglue.Module takes it: bytes that know what they are.

    format and arch are read from the bytes; log is the compiler's; kernels are {name: parameters} where the
    format tells; names is {expression: name in the image} of what compile(names=) was given."""

    log = ""
    names: "dict[str, str]" = {}

    @property
    def format(self) -> str:
        return _core._read_image(self)[0]

    @property
    def arch(self) -> str:
        return _core._read_image(self)[1]

    @property
    def kernels(self) -> "dict[str, _core._Parameters | None]":
        return _core._read_image(self)[2]

    def __repr__(self) -> str:
        return f"<gpuglue.Image, {self.format} for {self.arch}, {len(self)} bytes>"

    __str__ = __repr__


def compile(
    source: "str | bytes",
    *,
    backend: "str | None" = None,
    arch: "str | None" = None,
    lang: "str | None" = None,
    options: "Sequence[str]" = (),
    names: "Sequence[str]" = (),
) -> Image:
    """Compile CUDA C++ (cuda, hip, host) or OpenCL C (ze) for a device that need not be here.

    arch is "sm_90", "compute_80" (PTX), "gfx90a", "x86_64", or with backend="ze" a device's name for ocloc,
    such as "dg2"; without it the current device's, of `backend` if one is named. `names` are C++ expressions,
    such as "sum<float>", by which Module finds the kernels that they instantiate. Results are kept on disk:
    see GPUGLUE_CACHE_DIR. CompileError carries the compiler's log."""
    if isinstance(source, bytes):
        source = source.decode()
    if isinstance(options, str) or isinstance(names, str):
        raise TypeError("options and names are sequences of str, not a str")
    if any("\0" in text for text in (source, *map(str, options), *map(str, names))):
        raise _core.InvalidArgumentError("compile: the source, an option or a name holds a NUL, where it would end")
    backend, arch = _target(backend, arch)
    make = _maker(backend, arch, lang)
    return make(source, arch, [str(option) for option in options], [str(name) for name in names])


# ---- the target


def _target(backend, arch):
    if arch is None:
        device = _core.Device(backend if backend else None) if backend else _core.current_device()
        return device.backend, _plain(device.arch)
    if backend is None:
        backend = ("cuda" if arch.startswith(("sm_", "compute_")) else "hip" if arch.startswith("gfx") else
                   "host" if arch == platform.machine() else None)
    if backend is None:
        raise _core.InvalidArgumentError(
            f"compile: the architecture {arch!r} says no backend: expected sm_…, compute_…, gfx…, "
            f"{platform.machine()}, or backend=")
    return backend, arch


def _plain(arch):
    return arch.split(":", 1)[0] if arch.startswith("gfx") else arch


def _maker(backend, arch, lang):
    """The function that compiles; a device with another vendor's architecture takes that vendor's code."""
    if backend == "ze":
        makers, expected = _opencl_image, ("opencl",)
    elif arch.startswith(("sm_", "compute_")):
        makers, expected = _nvrtc_image, ("cuda",)
    elif arch.startswith("gfx"):
        makers, expected = _hiprtc_image, ("cuda", "hip")
    elif backend == "host" and arch == platform.machine():
        makers, expected = _host_image, ("cuda",)
    else:
        raise _core.UnsupportedError(
            f"compile: no compiler here makes code for {arch!r} on {backend}: expected sm_…, compute_…, gfx…, or "
            f"for host {platform.machine()}")
    if lang is not None and lang not in expected:
        raise _core.InvalidArgumentError(f"compile: lang={lang!r} for {backend} ({arch}): expected {expected[0]!r}")
    return makers


# ---- the four compilers


def _failed(title, error, log):
    failure = CompileError(f"{title}: {error}\n{log}".rstrip())
    failure.log = log
    return failure


def _missing(error):
    return _core.UnsupportedError(f"compile: {error}")


# Options that bring no file along. Of others it is not known, and so nothing is kept.
PLAIN = re.compile(
    r"-[DU](?!.*\s-\S).*|--(?:un)?define-macro(?:=\S*)?|-O\w*|-[gGw]|-g\d|-v|-W(?![alp],)[\w=-]+|-m(?!.*native)[\w=.,+-]+|"
    r"--?std(?:=[\w+:]+)?|-f(?!plugin|pass|profile|auto|branch|modul)[\w-]+(?:=\w+)?|-cl-[\w.=-]+|-ze-[\w.=-]+|-pthread|"
    r"--?(?:gpu-architecture|offload-arch|arch|code|gencode|generate-code|maxrregcount|use_fast_math|ftz|prec-div|"
    r"prec-sqrt|fmad|rdc|relocatable-device-code|lineinfo|generate-line-info|device-debug|device-c|dlto|restrict|"
    r"extra-device-vectorization|default-device|disable-warnings|ptxas-options|Xptxas|expt?-[\w-]+|extended-lambda|"
    r"default-stream|res-usage|minimal)(?:=\S*)?|[\w+=,:][\w+=,:-]*")
FOLDERS = re.compile(r"-I|-isystem|-iquote|-idirafter|-include|-imacros|--include-path")
# Of the assembler, which reads files that no preprocessed text shows.
ASSEMBLED = re.compile(r"\.inc(?:bin|lude)\b", re.I)
DIRECTIVE = re.compile(r"(?:#|%:|\?\?=)(?:\s|/\*.*?\*/)*(?:include|import|embed)|__has_(?:include|embed)|"
                       r"\b__(?:DATE|TIME|TIMESTAMP)__\b", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.M)


def _asks(text):
    """Whether it brings in what stands in no source: a file, or the time."""
    return DIRECTIVE.search(text) or ASSEMBLED.search(text)


def _options_tell(options, folders=False):
    """Whether the options say all that they do; with folders=True, but for what the preprocessor reads."""
    return all(PLAIN.fullmatch(option) and not _asks(option) or
               folders and (FOLDERS.match(option) or FOLDERS.fullmatch(before))
               for before, option in zip(["", *options], options))


def _source_tells(source, supplied):
    """Whether it includes only what is supplied: then no file of the user's goes in."""
    if os.environ.get("CPATH") or os.environ.get("CPLUS_INCLUDE_PATH"):
        return False
    text = re.sub(r"\\[ \t]*\r?\n", "", source)
    for angle, quoted in INCLUDE.findall(text):
        if (angle or quoted) not in supplied or quoted and os.path.exists(quoted):
            return False
    return not _asks(INCLUDE.sub("", text))


def _image(body, log, names):
    image = Image(body)
    image.log, image.names = log, dict(names)
    return image


def _kept(name, kind, arch, make):
    """What lies in the cache by that name, or what is made and then laid there; without a name it is only made."""
    found = _cache.load(name) if name else None
    if found:
        return _image(found[1], found[0].get("log", ""), found[0].get("names", {}))
    body, log, lowered = make()
    if name:
        _cache.store(name, {"log": log, "names": lowered, "kind": kind, "arch": arch}, body)
    return _image(body, log, lowered)


def _key(kind, identity, arch, source, options, names):
    return _cache.key(kind, identity, arch, source, len(options), *options, len(names), *names)


def _cached(kind, identity, source, arch, options, names, make, supplied=_rtc.HEADERS):
    """Kept where the source and the options tell all that goes in."""
    tells = _options_tell(options) and _source_tells(source, supplied)
    return _kept(_key(kind, identity, arch, source, options, names) if tells else None, kind, arch, make)


def _toolkit(source, folders):
    """(names that the source includes from the toolkit, what tells the toolkit from another)."""
    names = {angle or quoted for angle, quoted in INCLUDE.findall(source)}
    states = [os.stat(path) for folder in folders for path in (folder, os.path.join(folder, "cuda_fp16.h"))
              if os.path.exists(path)]
    return ([name for name in names if not os.path.exists(name) and not os.path.isabs(name)
             and any(os.path.exists(os.path.join(folder, name)) for folder in folders)],
            f"{folders} {[(state.st_size, state.st_mtime_ns) for state in states]}")


def _rtc_image(rtc, kind, source, arch, options, names, code, folders=()):
    def make():
        try:
            return rtc.compile(source, [*options, *(f"--include-path={folder}" for folder in folders)], names, code)
        except RuntimeError as error:
            if len(error.args) < 2:
                raise CompileError(f"{kind}: {error}") from None
            raise _failed(kind, error.args[0], error.args[1]) from None

    found, state = _toolkit(source, folders)
    return _cached(kind, rtc.identity() + code + state, source, arch, options, names, make, {*_rtc.HEADERS, *found})


def _nvrtc_image(source, arch, options, names):
    try:
        numbers = _rtc.nvrtc.supported()
    except LookupError as error:
        raise _missing(error) from None
    number = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if not number:
        raise _core.InvalidArgumentError(f"compile: {arch!r} is no architecture: expected sm_90, compute_80, …")
    if arch.startswith("sm_") and numbers and int(number[1]) > max(numbers):
        arch = f"compute_{max(numbers)}"  # newer than the compiler: the driver goes on from PTX
    code = "GetCUBIN" if arch.startswith("sm_") else "GetPTX"
    full = [f"--gpu-architecture={arch}", *_without_arch(options)]
    # The toolkit's own headers come behind the folders of the user's.
    folders = () if _source_tells(source, _rtc.HEADERS) else _rtc.nvrtc.include_folders()
    return _rtc_image(_rtc.nvrtc, "nvrtc", source, arch, full, names, code, folders)


def _without_arch(options):
    kept, skip = [], False
    for option in options:
        if skip or option.startswith(("--gpu-architecture", "-arch=")):
            skip = False
        elif option == "-arch":
            skip = True
        else:
            kept.append(option)
    return kept


def _hiprtc_image(source, arch, options, names):
    try:
        _rtc.hiprtc.library()
    except LookupError as error:
        raise _missing(error) from None
    full = [f"--offload-arch={arch}", *_without_arch(options)]
    return _rtc_image(_rtc.hiprtc, "hiprtc", source, arch, full, names, "GetCode")


def _host_image(source, arch, options, names):
    from . import _host_compiler

    def attempt(step, *arguments):
        try:
            return step(*arguments)
        except _host_compiler.Failed as error:
            raise _failed("the host's C++ compiler", "the source was not compiled", str(error)) from None

    def make():
        """Kept by the text with all that it includes, where the source alone does not tell."""
        text, log = attempt(_host_compiler.preprocess, source, options)
        whole = _options_tell(options, folders=True) and not ASSEMBLED.search(text.decode(errors="replace"))
        name = _key("host text", identity, arch, text, options, names) if whole and not tells else None
        image = _kept(name, "host", arch, lambda: attempt(_host_compiler.build, text, log, options, names))
        return image, image.log, image.names

    try:
        identity = _host_compiler.identity() + _core.__version__
    except LookupError as error:
        raise _missing(error) from None
    tells = _options_tell(options) and _source_tells(source, _rtc.HEADERS)
    return _kept(_key("host", identity, arch, source, options, names) if tells else None, "host", arch, make)


def _opencl_image(source, arch, options, names):
    from . import _opencl

    if names:
        raise _core.InvalidArgumentError("compile: names= are C++ expressions, which OpenCL C does not have")

    def make():
        try:
            body, log = _opencl.compile_source(source, options, arch)
        except _opencl.Failed as error:
            raise _failed("ocloc", "the source was not compiled", str(error)) from None
        return body, log, {}

    try:
        return _cached("ocloc", _opencl.identity(), source, arch, options, names, make, supplied=())
    except LookupError as error:
        raise _missing(error) from None
