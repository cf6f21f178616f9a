"""Options of nvcc, translated for other compilers: NVRTC, HIPRTC and the system's C++ compiler."""


def _both(*names):
    """With one dash and with two, as nvcc takes its long options."""
    return {dashes + name for name in names for dashes in ("-", "--")}


# Not for a compiler of one source to one image: nvcc's own steps, files and targets.
DROPPED = _both(
    "expt-relaxed-constexpr", "expt-extended-lambda", "extended-lambda", "default-stream", "res-usage", "resource-usage",
    "cubin", "ptx", "fatbin", "keep", "keep-dir", "verbose", "arch", "gpu-architecture", "code", "gpu-code", "gencode",
    "generate-code", "ptxas-options", "compiler-options", "compiler-bindir", "machine", "threads", "source-in-ptx",
    "src-in-ptx") | {"-v", "-m64", "-m32", "-Xptxas", "-Xcompiler", "-Xcudafe", "-Xlinker", "-ccbin", "-t", "-lcudadevrt"}
# Options for g++ and clang++, or for nvcc's other programs, that NVRTC lacks.
_NOT_NVRTC_TAKES_NEXT = _both("optimize", "nvlink-options", "Werror") | {"-Xnvlink"}
_NOT_NVRTC = _NOT_NVRTC_TAKES_NEXT | _both("debug", "profile", "objdir-as-tempdir", "use-local-env") | {
    "-g", "-pg", "-objtemp"}
# Options that the compilers of other devices lack. They change speed, messages, or the last bit.
DEVICE_ONLY = _both(
    "maxrregcount", "use_fast_math", "lineinfo", "generate-line-info", "fmad", "ftz", "prec-div", "prec-sqrt", "rdc",
    "relocatable-device-code", "device-c", "device-debug", "dopt", "disable-warnings", "extra-device-vectorization",
    "restrict", "dlto", "dlink-time-opt", "diag-suppress") | {"-G", "-dc", "-w"}
# The same, but other compilers have options of that name: dropped only where the options are nvcc's.
_NVCC = ("-O", "-W", "-l", "-L")
_JOINED = {"-I": "-I", "--include-path": "-I", "-D": "-D", "--define-macro": "-D", "-U": "-U", "--undefine-macro": "-U"}
_INCLUDED = {"-include": "-include", "--pre-include": "-include", "-isystem": "-isystem", "--system-include": "-isystem"}
_TAKES_NEXT = _both(
    "default-stream", "keep-dir", "arch", "gpu-architecture", "code", "gpu-code", "gencode", "generate-code",
    "ptxas-options", "compiler-options", "compiler-bindir", "machine", "threads", "maxrregcount", "fmad", "ftz", "prec-div",
    "prec-sqrt", "rdc", "relocatable-device-code", "std", "diag-suppress") | {
        "-Xptxas", "-Xcompiler", "-Xcudafe", "-Xlinker", "-ccbin", "-t", *_JOINED, *_INCLUDED}
# Our header for the host wants C++17.
_OLD = ("98", "03", "0x", "11", "1y", "14")


def split(options, takes_next=frozenset()):
    """(name, value or None, as it was written) of each."""
    pending = list(options)
    while pending:
        option = pending.pop(0)
        name, equals, value = option.partition("=")
        if not equals and pending and (name in _TAKES_NEXT or name in takes_next):
            yield name, pending.pop(0), option
        else:
            yield name, value if equals else None, option


def for_nvrtc(options):
    """nvcc's options as NVRTC takes them."""
    result = []
    for name, value, option in split(options, _NOT_NVRTC_TAKES_NEXT):
        if name in DROPPED or name in _NOT_NVRTC or name.startswith(_NVCC) and name not in DEVICE_ONLY:
            continue
        if value is None or name not in _TAKES_NEXT:
            result.append(option)
        elif name in _JOINED:
            result.append(_JOINED[name] + value)
        elif name in _INCLUDED:
            result.append(f"--pre-include={value}" if _INCLUDED[name] == "-include" else f"-I{value}")
        else:
            result.append(f"{name}={value.replace('gnu++', 'c++') if name in ('-std', '--std') else value}")
    return result


def for_cxx(options):
    """nvcc's options, or NVRTC's, as g++ and clang++ take them; those of their own stay."""
    result = []
    for name, value, option in split(options):
        if name in DROPPED or name in DEVICE_ONLY:
            continue
        if value is None or name not in _TAKES_NEXT:
            result.append(option)
        elif name in ("-std", "--std"):
            result += [] if value.endswith(_OLD) else [f"-std={value}"]
        elif name in _JOINED:
            result.append(_JOINED[name] + value)
        elif name in _INCLUDED:
            result += [_INCLUDED[name], value]
    return result


def target(options):
    """(arch, code) that the options name; None for what they do not."""
    arch = code = None
    for name, value, _ in split(options):
        if name in ("-arch", "--gpu-architecture"):
            arch = value
        elif name in ("-code", "--gpu-code"):
            code = value
    return arch, code
