"""compile(): from source to an image, with the compiler for that architecture."""

import itertools
import os
import platform
import re
from collections.abc import Iterable, Sequence

from . import _cache, _core, _rtc


class CompileError(_core.Error):
    """The compiler rejected the source.

    Attributes
    ----------
    log : str
        The compiler's output.

    Examples
    --------
    >>> # host only: elsewhere the vendor's compiler is needed
    >>> try:
    ...     gg.compile("no C++")
    ... except gg.CompileError as error:
    ...     "error" in error.log
    True
    """

    log = ""


class Image(bytes):
    """Compiled device code for Module, with its metadata.

    No device is needed.

    Parameters
    ----------
    image : bytes or path
        Compiled code of any format that Module loads, or the path of its file.

    Attributes
    ----------
    log : str
        The compiler's output; '' unless `compile` made the image.
    names : dict
        Name in the image of each expression in the ``names=`` of `compile`.
    options : tuple of str
        Options of `compile` for the driver's compiler, which Module passes on.

    Raises
    ------
    InvalidArgumentError
        If a str is a text instead of a path; when a property is read, if the format is unknown or the image is damaged.
    TypeError
        If it is neither bytes nor a path.
    OSError
        If the file cannot be read.

    See Also
    --------
    compile : An image from source.
    Module : Load an image.

    Examples
    --------
    >>> # host only: elsewhere the vendor's compiler is needed
    >>> source = 'extern "C" __global__ void add(float *x, float value) { x[blockIdx.x] += value; }'
    >>> image = gg.compile(source)
    >>> image.format, len(image) > 0
    ('shared object', True)
    """

    log = ""
    names: "dict[str, str]" = {}
    options: "tuple[str, ...]" = ()

    def __new__(cls, image: "bytes | bytearray | memoryview | str | os.PathLike[str]") -> "Image":
        return super().__new__(cls, _core._image_bytes(image))

    @property
    def format(self) -> str:
        """Format of the code, such as 'cubin', 'ptx' or 'code object'."""
        return _core._read_image(self)[0]

    @property
    def arch(self) -> str:
        """Architectures of the code, separated by spaces."""
        return _core._read_image(self)[1]

    @property
    def kernels(self) -> "dict[str, _core._Parameters | None]":
        """Parameters of each kernel by its name; None where the format does not declare them."""
        return _core._read_image(self)[2]

    @property
    def constants(self) -> "dict[int, int | float | bool]":
        """Specialisation constants of SPIR-V: the default of each by its number."""
        from . import _spirv

        return _spirv.defaults(self)

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
    constants: "dict[int, int | float | bool] | None" = None,
) -> Image:
    """Compile device code for a device that need not be present.

    Parameters
    ----------
    source : str or bytes
        CUDA C++ for cuda, hip and host, OpenCL C for ze.
    backend : str, optional
        Backend that loads the image. None is the one of `arch`, or of the current device.
    arch : str, optional
        Architecture: 'sm_90', 'compute_80' for PTX, 'gfx90a', 'x86_64', or with ``backend="ze"`` a device's name for
        ocloc, such as 'dg2'. None is that of the current device.
    lang : {'cuda', 'hip', 'opencl'}, optional
        Language of the source. None is the one that the backend compiles. On hip, 'cuda' adds CUDA's names to HIP's, and a
        warp of 32 lanes: see docs/kernels.md.
    options : sequence of str, optional
        Options for the compiler, such as '-O3' or '-DN=4'. For ze those that begin with '-ze-' are for the driver's compiler:
        the image keeps them for Module.
    names : sequence of str, optional
        C++ expressions, such as 'sum<float>', by which Module finds the kernels that they instantiate.
    constants : dict, optional
        New defaults of SPIR-V's specialisation constants, by number.

    Returns
    -------
    Image
        The code, with the compiler's log.

    Raises
    ------
    CompileError
        If the compiler rejects the source; `log` has its output.
    UnsupportedError
        If the compiler is not installed, none generates code for the architecture, or it makes no SPIR-V for `constants`.
    InvalidArgumentError
        If no backend has the architecture, the language is not the backend's, or the source has no such constant.
    TypeError
        If an argument is not a str, or `options` or `names` is not a sequence.

    See Also
    --------
    Module : Load an image.

    Notes
    -----
    NVRTC, HIPRTC, ocloc or the host's C++ compiler compiles the source. Results are cached on disk, if the source and the
    options determine them: see ``GPUGLUE_CACHE_DIR``.

    Examples
    --------
    >>> # host only: elsewhere the vendor's compiler is needed
    >>> image = gg.compile('''
    ... template <class T> __global__ void set(T *x, T value) { x[blockIdx.x] = value; }
    ... ''', names=["set<int>"])
    >>> x = gg.empty(2, np.int32)
    >>> gg.Module(image)["set<int>"](x, 5, grid=2, block=1)
    >>> x.tolist()
    [5, 5]
    """
    source = _text(source)
    for name, value in (("backend", backend), ("arch", arch), ("lang", lang)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"compile: {name} must be a str or None, got {value!r}")
    for name, texts in (("options", options), ("names", names)):
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            raise TypeError(f"compile: {name} must be a sequence of str, got {texts!r}")
    options, names = [str(option) for option in options], [str(name) for name in names]
    if any("\0" in text for text in (source, *options, *names)):
        raise _core.InvalidArgumentError("compile: the source, an option or a name contains a null character")
    backend, arch = _target(backend, arch)
    make = _maker(backend, arch, lang)
    if lang == "cuda" and make is _hiprtc_image:
        source = _cuda_on_hip(source)
    if constants and backend != "ze":
        raise _core.UnsupportedError(
            f"compile: constants= sets specialisation constants of SPIR-V, which {backend} does not use: "
            f"use options=['-DN=4']")
    return _specialised(make(source, arch, options, names), constants)


def _specialised(image, constants):
    from . import _spirv

    if not constants:
        return image
    return _image(_spirv.specialise(image, constants), image.log, image.names, image.options)


def _text(source):
    """The source without the mark that some editors put in front of UTF-8."""
    if not isinstance(source, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"compile: source must be a str or UTF-8 bytes, got {source!r:.80}")
    if not isinstance(source, str):
        try:
            source = bytes(source).decode()
        except UnicodeDecodeError as error:
            raise _core.InvalidArgumentError(f"compile: the source is not UTF-8: {error}") from None
    return source.removeprefix("\ufeff")


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
            f"compile: no backend has the architecture {arch!r}: expected sm_…, compute_…, gfx…, "
            f"{platform.machine()}, or backend=")
    return backend, arch


def _plain(arch):
    return arch.split(":", 1)[0] if arch.startswith("gfx") else arch


def _maker(backend, arch, lang):
    """The compile function for an architecture, whatever backend the current device is of."""
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
            f"compile: no compiler generates code for {arch!r} on {backend}: expected sm_…, compute_…, gfx…, or "
            f"for host {platform.machine()}")
    if lang is not None and lang not in expected:
        raise _core.InvalidArgumentError(f"compile: lang={lang!r} for {backend} ({arch}): expected {expected[0]!r}" +
                                         "; or choose a device of cuda, hip or host" * (backend == "ze"))
    return makers


# ---- the four compilers


# The place of an error, as NVRTC or as g++, clang and ocloc write it.
PLACE = re.compile(r"(?:source\.cu|\S*\.cl)?(?:\((\d+)\)|:?(\d+)(?::\d+)?): .*\berror\b")
LINES_MOST = 8


def _with_lines(log, source):
    """The log with the source lines of its first errors, where the compiler does not show them."""
    lines, shown, whole = source.splitlines(), 0, []
    for entry, following in itertools.zip_longest(log.splitlines(), log.splitlines()[1:], fillvalue=""):
        whole.append(entry)
        place = PLACE.match(entry)
        number = int(place[1] or place[2]) if place else 0
        text = lines[number - 1].rstrip() if 0 < number <= len(lines) else ""
        if text and shown < LINES_MOST and text.strip() not in following:
            shown += 1
            whole.append(f"{number:5} | {text}")
    return "\n".join(whole)


def _failed(title, error, log, source):
    failure = CompileError(f"{title}: {error}\n{_with_lines(log, source)}".rstrip())
    failure.log = log
    return failure


def _missing(error):
    return _core.UnsupportedError(f"compile: {error}")


# Options that add no file. With unknown options nothing is cached.
PLAIN = re.compile(
    r"-[DU](?!.*\s-\S).*|--(?:un)?define-macro(?:=\S*)?|-O\w*|-[gGw]|-g\d|-v|-W(?![alp],)[\w=-]+|-m(?!.*native)[\w=.,+-]+|"
    r"--?std(?:=[\w+:]+)?|-f(?!plugin|pass|profile|auto|branch|modul)[\w-]+(?:=\w+)?|-cl-[\w.=-]+|-ze-[\w.=-]+|-pthread|"
    r"--?(?:gpu-architecture|offload-arch|arch|code|gencode|generate-code|maxrregcount|use_fast_math|ftz|prec-div|"
    r"prec-sqrt|fmad|rdc|relocatable-device-code|lineinfo|generate-line-info|device-debug|device-c|dlto|restrict|"
    r"extra-device-vectorization|default-device|disable-warnings|ptxas-options|Xptxas|expt?-[\w-]+|extended-lambda|"
    r"default-stream|res-usage|minimal)(?:=\S*)?|[\w+=,:][\w+=,:-]*")
DIRECTORIES = re.compile(r"-I|-isystem|-iquote|-idirafter|-include|-imacros|--include-path")
# Of the assembler, which reads files that preprocessed source does not include.
ASSEMBLED = re.compile(r"\.inc(?:bin|lude)\b", re.I)
# Nothing can be matched in several ways, as in all expressions over sources, or the time could double with each comment.
# Groups are atomic: Python before 3.11.5 misreads possessive ones. A comment that does not end counts as a directive, so
# that the rest is read once.
DIRECTIVE = re.compile(r"(?:#|%:|\?\?=)(?>(?:\s++|/\*(?>.*?\*/))*)(?:include|import|embed|/\*)|__has_(?:include|embed)|"
                       r"\b__(?:DATE|TIME|TIMESTAMP)__\b", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>\n]+)>|"([^"\n]+)")', re.M)


def _asks(text):
    """Whether it adds input that is in no source: a file, or the time."""
    return DIRECTIVE.search(text) or ASSEMBLED.search(text)


def _options_cacheable(options, directories=False):
    """Whether the options determine the result; with directories=True, except for what the preprocessor reads."""
    return all(PLAIN.fullmatch(option) and not _asks(option) or
               directories and (DIRECTORIES.match(option) or DIRECTORIES.fullmatch(before))
               for before, option in zip(["", *options], options))


def _source_cacheable(source, supplied):
    """Whether it includes only supplied headers: then no file of the user is read."""
    if os.environ.get("CPATH") or os.environ.get("CPLUS_INCLUDE_PATH"):
        return False
    text = re.sub(r"\\[ \t]*\r?\n", "", source)
    for angle, quoted in INCLUDE.findall(text):
        if (angle or quoted) not in supplied or quoted and os.path.exists(quoted):
            return False
    return not _asks(INCLUDE.sub("", text))


def _image(body, log, names, options=()):
    image = Image(body)
    image.log, image.names, image.options = log, dict(names), tuple(options)
    return image


def _kept(name, kind, arch, make):
    """The cache entry of that name, compiled and stored if it is absent; without a name nothing is cached."""
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
    """Cached where the source and the options determine the result."""
    cacheable = _options_cacheable(options) and _source_cacheable(source, supplied)
    return _kept(_key(kind, identity, arch, source, options, names) if cacheable else None, kind, arch, make)


def _toolkit(source, directories):
    """(names that the source includes from the toolkit, what identifies the toolkit)."""
    names = {angle or quoted for angle, quoted in INCLUDE.findall(source)}
    states = [os.stat(path) for directory in directories for path in (directory, os.path.join(directory, "cuda_fp16.h"))
              if os.path.exists(path)]
    return ([name for name in names if not os.path.exists(name) and not os.path.isabs(name)
             and any(os.path.exists(os.path.join(directory, name)) for directory in directories)],
            f"{directories} {[(state.st_size, state.st_mtime_ns) for state in states]}")


def _rtc_image(rtc, kind, source, arch, options, names, code, directories=()):
    def make():
        try:
            return rtc.compile(source, [*options, *(f"--include-path={path}" for path in directories)], names, code)
        except RuntimeError as error:
            if len(error.args) < 2:
                raise CompileError(f"{kind}: {error}") from None
            raise _failed(kind, error.args[0], error.args[1], source) from None

    found, state = _toolkit(source, directories)
    return _cached(kind, rtc.identity() + code + state, source, arch, options, names, make, {*rtc.headers, *found})


def _nvrtc_image(source, arch, options, names):
    try:
        numbers = _rtc.nvrtc.supported()
    except LookupError as error:
        raise _missing(error) from None
    number = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if not number:
        raise _core.InvalidArgumentError(f"compile: {arch!r} is not an architecture: expected sm_90, compute_80, …")
    if arch.startswith("sm_") and numbers and int(number[1]) > max(numbers):
        arch = f"compute_{max(numbers)}"  # newer than the compiler: the driver compiles the PTX
    code = "GetCUBIN" if arch.startswith("sm_") else "GetPTX"
    full = [f"--gpu-architecture={arch}", *_without_arch(options)]
    # The toolkit's own headers come after the user's directories.
    directories = () if _source_cacheable(source, _rtc.HEADERS) else _rtc.nvrtc.include_directories()
    return _rtc_image(_rtc.nvrtc, "nvrtc", source, arch, full, names, code, directories)


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


def _cuda_on_hip(source):
    """The source behind CUDA's spellings of what HIP writes in another way."""
    with open(os.path.join(os.path.dirname(__file__), "_cuda_headers", "cuda_on_hip.h"), encoding="utf-8") as file:
        return f'{file.read()}#line 1 "source.cu"\n{source}'


def _host_image(source, arch, options, names):
    from . import _host_compiler

    def attempt(step, *arguments):
        try:
            return step(*arguments)
        except _host_compiler.Failed as error:
            reason = _host_compiler.why(source, options) or "the source was not compiled"
            raise _failed("the host's C++ compiler", reason, str(error), source) from None

    def make():
        """Cached by the preprocessed source, where the source alone does not determine the result."""
        text, log = attempt(_host_compiler.preprocess, source, options)
        whole = _options_cacheable(options, directories=True) and not ASSEMBLED.search(text.decode(errors="replace"))
        name = _key("host text", identity, arch, text, options, names) if whole and not cacheable else None
        image = _kept(name, "host", arch, lambda: attempt(_host_compiler.build, text, log, options, names))
        return image, image.log, image.names

    try:
        identity = _host_compiler.identity() + _core.__version__
    except LookupError as error:
        raise _missing(error) from None
    cacheable = _options_cacheable(options) and _source_cacheable(source, _rtc.HEADERS)
    return _kept(_key("host", identity, arch, source, options, names) if cacheable else None, "host", arch, make)


def _opencl_image(source, arch, options, names):
    from . import _opencl

    if names:
        raise _core.InvalidArgumentError("compile: names= takes C++ expressions, which OpenCL C does not have")

    later = [option for option in options if option.startswith("-ze-")]
    options = [option for option in options if not option.startswith("-ze-")]

    def make():
        try:
            body, log = _opencl.compile_source(source, options, arch)
        except _opencl.Failed as error:
            raise _failed("ocloc", "the source was not compiled", str(error), source) from None
        return body, log, {}

    try:
        image = _cached("ocloc", _opencl.identity(), source, arch, options, names, make, supplied=())
    except LookupError as error:
        raise _missing(error) from None
    image.options = tuple(later)
    return image
