"""CUDA source for the host backend: the system's C++ compiler makes a shared object of it.

The source is preprocessed with gpuglue's header in front (cuda_dialect.h); in the result the kernels are
found by their mark, and the table that the backend wants is put behind it. No file is written but by the
compiler itself, in a folder of its own: see _scratch."""

import os
import re
import shutil

from . import _nvcc_options, _scratch

OWN_HEADERS = ("cuda_dialect.h", "host_kernel.h")
HERE = os.path.dirname(os.path.abspath(__file__))
MARK = re.compile(r'__attribute__\s*\(\(\s*__visibility__\("default"\),\s*__used__,\s*__hot__\s*\)\)')
# What stands between the mark and the name: types, attributes.
NAME = re.compile(r"(?:\s|__attribute__\s*\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)|[\w:<>,*&]+?(?=[\s*&]))*?\s*(\w+)\s*\(")
SHARED = re.compile(r"\b(?:extern\s+thread_local|thread_local\s+extern)\s+([^;()\[\]]*?(?:__attribute__\s*\(\(.*?\)\)[^;\[\]]*?)?)"
                    r"\b(\w+)\s*\[\s*\]\s*;", re.S)
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|namespace\s+([\w:]*)\s*\{|extern\s*"C(?:\+\+)?"\s*\{|[{}]')


class NoCompiler(LookupError):
    """There is none on this machine."""


def find():
    """The C++ compiler: GPUGLUE_CXX, CXX, or the usual names."""
    for given in (os.environ.get("GPUGLUE_CXX"), os.environ.get("CXX"), "c++", "g++", "clang++"):
        path = shutil.which(given) if given else None
        if path:
            return os.path.realpath(path)
    raise NoCompiler("no C++ compiler was found for the host backend: install g++ or clang++, or set GPUGLUE_CXX")


def identity():
    """What tells this compiler, and our headers, from others: the files' sizes and times."""
    paths = [find(), *(os.path.join(include_folders()[0], "gpuglue", name) for name in OWN_HEADERS)]
    return " ".join(f"{path} {state.st_size} {state.st_mtime_ns}" for path in paths for state in [os.stat(path)])


def include_folders():
    """Ours, and the one with stand-ins for NVIDIA's own headers."""
    folder = os.path.join(HERE, "include")
    if not os.path.isdir(folder):  # an editable install
        folder = os.path.join(HERE, "..", "..", "core", "include")
    return [os.path.normpath(folder), os.path.join(HERE, "_cuda_headers")]


class Failed(Exception):
    """The compiler said no; its words are the argument."""


def _run(arguments, source):
    """What the compiler makes of the source, and its words."""
    status, made, log = _scratch.run(lambda made: [*arguments, "-o", f"/dev/fd/{made}", "-"], source)
    if status:
        raise Failed(log or f"{arguments[0]} ended with {status}")
    return made, log


def _scopes(text, places):
    """For each place in the text, in order: the namespaces around it and whether it is in a function."""
    stack, at = [], iter(sorted(places))
    place = next(at, None)
    for token in TOKEN.finditer(text):
        while place is not None and place < token.start():
            yield place, _scope(stack)
            place = next(at, None)
        if token[0] == "}":
            if stack:
                stack.pop()
        elif token[0].endswith("{"):
            stack.append(("namespace", token[1] or "") if token[0].startswith("namespace") else
                         ("extern", "") if token[0].startswith("extern") else ("body", ""))
    while place is not None:
        yield place, _scope(stack)
        place = next(at, None)


def _scope(stack):
    names = [name for kind, name in stack if kind == "namespace" and name]
    return "::".join(names), any(kind == "body" for kind, _ in stack)


def kernels(text):
    """Names, qualified, of the kernels in preprocessed text that are no templates."""
    found = {}
    marks = {mark.start(): mark for mark in MARK.finditer(text)}
    for place, (namespace, inside) in _scopes(text, marks):
        before = text[max(0, place - 400):place]
        name = NAME.match(text, marks[place].end())
        if inside or not name or re.search(r"template\s*<[^;{}]*>\s*(?:\w+\s*)*$", before):
            continue
        found[f"{namespace}::{name[1]}" if namespace else name[1]] = name[1]
    return found


def dynamic_shared(text):
    """`extern __shared__ T x[];` becomes what reaches the block's memory."""
    places = {match.start(): match for match in SHARED.finditer(text)}
    pieces, end = [], 0
    for place, (_, inside) in _scopes(text, places):
        match = places[place]
        kind = re.sub(r"__attribute__\s*\(\(.*?\)\)\)?|alignas\s*\([^)]*\)", "", match[1]).strip()
        line = f"{kind} *{match[2]} = static_cast<{kind} *>(::gg_host::current->shared);" if inside else \
            f"static ::gg_host::dynamic_shared<{kind}> {match[2]};"
        pieces += [text[end:place], line]
        end = match.end()
    return "".join(pieces) + text[end:]


def table(names):
    """The table of kernels, as source: {name in the table: expression}."""
    lines = [f'static constexpr ::gg_host_kernel gg_told_{i} = ::gg_host::describe<&{expression}>("{name}");'
             for i, (name, expression) in enumerate(names.items())]
    listed = ", ".join(f"&gg_told_{i}" for i in range(len(names))) or "nullptr"
    lines.append(f"static const ::gg_host_kernel *const gg_list[] = {{{listed}}};")
    lines.append('extern "C" __attribute__((visibility("default"))) const struct ::gg_host_kernels gg_host_kernels = '
                 f"{{0x4b484747u, 1u, {len(names)}, gg_list}};")
    return "\n".join(lines)


def _common(options):
    return [find(), "-std=c++17", "-O2", "-pipe", *_nvcc_options.for_cxx(options)]


def preprocess(source, options):
    """(the source with all that it includes, log)."""
    prefix = "#include <gpuglue/cuda_dialect.h>\n#line 1 \"source.cu\"\n"
    folders = [f"-I{folder}" for folder in include_folders()]
    return _run([*_common(options), *folders, "-E", "-x", "c++"], (prefix + source).encode())


def build(text, log, options, names):
    """(shared object, log, {expression: name in the table}) of what preprocess() gave."""
    text = text.decode(errors="surrogateescape")
    common = _common(options)
    wanted = {name: expression for expression, name in kernels(text).items()}
    wanted.update({name: name for name in names})
    text = dynamic_shared(text) + '\n# 1 "gpuglue"\n' + table(wanted) + "\n"
    # Symbols that are unique in the process would tie one image's kernels to another's.
    quiet = ["-Wno-attributes", "-Wno-unused", *(["-fno-gnu-unique"] if "clang" not in common[0] else [])]
    image, more = _run([*common, *quiet, "-shared", "-fPIC", "-fno-lto", "-x", "c++-cpp-output"],
                       text.encode(errors="surrogateescape"))
    return image, log + more, {name: name for name in names}
