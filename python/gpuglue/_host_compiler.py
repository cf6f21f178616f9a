"""CUDA source for the host backend: the system's C++ compiler makes a shared object of it.

The source is preprocessed with gpuglue's header in front (cuda_dialect.h); in the result the kernels are
found by their mark, and the table that the backend wants is put behind it. Files are written in a folder of the
compiler's own alone: see _scratch."""

import os
import re
import shutil
import subprocess

from . import _nvcc_options, _scratch

OWN_HEADERS = ("cuda_dialect.h", "cuda_functions.h", "host_kernel.h")
HERE = os.path.dirname(os.path.abspath(__file__))
# Some linkers write beside the output and rename, which a descriptor does not bear.
RUN = 'made=$1; shift; "$@" -o "$TMPDIR/image" - && cat <"$TMPDIR/image" >"$made"'
MARK = re.compile(r'__attribute__\s*\(\(\s*__visibility__\("default"\),\s*__used__,\s*__hot__\s*\)\)')
# What stands between the mark and the name: types, attributes.
NAME = re.compile(r"(?:\s|__attribute__\s*\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)|[\w:<>,*&]+?(?=[\s*&]))*?\s*(\w+)\s*\(")
ATTRIBUTE = r"(?:__attribute__\s*\(\((?:[^();{}]|\([^();{}]*\))*\)\)|alignas\s*\([^;{}()]*\))"
# An array without a size; the words in front of its type stand in any order.
SHARED = re.compile(r"(?:\b(?:volatile|const)\s+)*\b(?:extern|thread_local)\b"
                    rf"([^;{{}}()\[\]]*?(?:{ATTRIBUTE}[^;{{}}()\[\]]*?)*)\b(\w+)\s*\[\s*\]\s*;")
# Numbers come first, for the quotes in them, and texts as they are written.
TOKEN = re.compile(r'\b\d(?:\'?\w)*|R"([^()\\\s]*)\(.*?\)\1"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|'
                   r'namespace\s+([\w:]*)\s*\{|extern\s*"C(?:\+\+)?"\s*\{|[{}]', re.S)


class NoCompiler(LookupError):
    """There is none on this machine."""


def find():
    """The C++ compiler: GPUGLUE_CXX and no other where it is set; else CXX, or the usual names. Links are kept: some
    programs do by their name what they do."""
    wanted = os.environ.get("GPUGLUE_CXX")
    for given in [wanted] if wanted else [os.environ.get("CXX"), "c++", "g++", "clang++"]:
        path = shutil.which(given) if given else None
        if path:
            return os.path.abspath(path)
    if wanted:
        raise NoCompiler(f"GPUGLUE_CXX is {wanted!r}, which is no program that can be run")
    raise NoCompiler("no C++ compiler was found for the host backend: install g++ or clang++, or set GPUGLUE_CXX")


_versions: dict[str, str] = {}


def _version(path):
    """The first line of what it says of itself: a wrapper's file does not tell which compiler it runs."""
    if path not in _versions:
        _versions[path] = _ask_version(path)
    return _versions[path]


def _ask_version(path):
    try:
        told = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False, env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""
    return told.decode(errors="replace").partition("\n")[0]


def _is_clang(path):
    return "clang" in _version(path) or "clang" in os.path.basename(os.path.realpath(path))


def identity():
    """What tells this compiler, and our headers, from others: its version, the files' sizes and times."""
    path = find()
    headers = (os.path.join(include_folders()[0], "gpuglue", name) for name in OWN_HEADERS)
    files = [os.path.realpath(path), __file__, *headers]
    return " ".join([path, _version(path), *(f"{name} {state.st_size} {state.st_mtime_ns}"
                                             for name in files for state in [os.stat(name)])])


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
    status, made, log = _scratch.run(lambda made: ["/bin/sh", "-c", RUN, "sh", f"/dev/fd/{made}", *arguments], source)
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
            stack.append(("namespace", token[2] or "") if token[0].startswith("namespace") else
                         ("extern", "") if token[0].startswith("extern") else ("body", ""))
    while place is not None:
        yield place, _scope(stack)
        place = next(at, None)


def _scope(stack):
    names = [name for kind, name in stack if kind == "namespace" and name]
    return "::".join(names), any(kind == "body" for kind, _ in stack)


def kernels(text):
    """{name: expression} of the kernels in preprocessed text that are no templates. Those in a namespace have their
    own name, too, unless there are two of it; a kernel in none keeps its name."""
    found = []
    marks = {mark.start(): mark for mark in MARK.finditer(text)}
    for place, (namespace, inside) in _scopes(text, marks):
        before = text[max(0, place - 400):place]
        name = NAME.match(text, marks[place].end())
        if inside or not name or re.search(r"template\s*<[^;{}]*>[\w\s]*$", before):
            continue
        found.append((f"{namespace}::{name[1]}" if namespace else name[1], name[1]))
    found = list(dict.fromkeys(found))
    short = [name for _, name in found]
    return {name if short.count(name) == 1 else whole: whole for whole, name in found}


def dynamic_shared(text):
    """`extern __shared__ T x[];` becomes a pointer to the block's memory: (text, pointers outside of functions)."""
    places = {match.start(): match for match in SHARED.finditer(text) if re.search(r"\bextern\b", match[0])
              and re.search(r"\bthread_local\b", match[0])}
    pieces, end, outside = [], 0, []
    for place, (namespace, inside) in _scopes(text, places):
        match = places[place]
        kind = match[0][:match.start(2) - place]
        kind = re.sub(rf"{ATTRIBUTE}|\b(?:extern|thread_local)\b", "", kind).strip()
        name = f"{namespace}::{match[2]}"
        line = f"static thread_local {kind} *{match[2]};" if name not in outside else ";"
        if inside:
            line = f"{kind} *{match[2]} = static_cast<{kind} *>(::gg_host::current->shared);"
        elif name not in outside:
            outside.append(name)
        pieces += [text[end:place], line]
        end = match.end()
    return "".join(pieces) + text[end:], [name if name[0] == ":" else f"::{name}" for name in outside]


def table(names, pointers):
    """The table of kernels, as source: {name in the table: expression}; and how a block finds its memory."""
    lines = ["namespace gg_host { namespace { void take_shared(const gg_host_thread *thread) { (void)thread;",
             *(f"{name} = static_cast<decltype({name})>(thread->shared);" for name in pointers), "} } }"]
    lines += [f'static constexpr ::gg_host_kernel gg_told_{i} = ::gg_host::describe<&{expression}>("{name}");'
              for i, (name, expression) in enumerate(names.items())]
    listed = ", ".join(f"&gg_told_{i}" for i in range(len(names))) or "nullptr"
    lines.append(f"static const ::gg_host_kernel *const gg_list[] = {{{listed}}};")
    lines.append('extern "C" __attribute__((visibility("default"))) const struct ::gg_host_kernels gg_host_kernels = '
                 f"{{0x4b484747u, 1u, {len(names)}, gg_list}};")
    return "\n".join(lines)


def _common(options):
    return [find(), "-std=c++17", "-O2", "-pipe", *_nvcc_options.for_cxx(options)]


def _macros(arguments):
    """(lines that define macros, the other arguments): a name of the user's may be one of our header's, too. Names
    that begin with an underscore may be meant for the system's headers."""
    lines, kept, words = [], [], iter(arguments)
    for word in words:
        given = word[2:] or next(words, "") if word[:2] in ("-D", "-U") else ""
        name, equals, value = given.partition("=")
        if not name or name[0] == "_" or "\n" in given:
            kept += [word] if word[2:] or not given else [word, given]
        else:
            lines.append(f"#define {name} {value if equals else 1}" if word[1] == "D" else f"#undef {name}")
    return lines, kept


def preprocess(source, options):
    """(the source with all that it includes, log)."""
    macros, arguments = _macros(_common(options))
    lines = ["#include <gpuglue/cuda_dialect.h>", *macros, '#line 1 "source.cu"', source]
    folders = [f"-I{folder}" for folder in include_folders()]
    return _run([*arguments, *folders, "-E", "-x", "c++"], "\n".join(lines).encode())


def build(text, log, options, names):
    """(shared object, log, {expression: name in the table}) of what preprocess() gave."""
    text = text.decode(errors="surrogateescape")
    common = _common(options)
    wanted = kernels(text)
    wanted.update({name: name for name in names})
    text, pointers = dynamic_shared(text)
    text += '\n# 1 "gpuglue"\n' + table(wanted, pointers) + "\n"
    # Symbols that are unique in the process would tie one image's kernels to another's.
    quiet = ["-Wno-attributes", "-Wno-unused", *([] if _is_clang(common[0]) else ["-fno-gnu-unique"])]
    image, more = _run([*common, *quiet, "-shared", "-fPIC", "-fno-lto", "-x", "c++-cpp-output"],
                       text.encode(errors="surrogateescape"))
    return image, log + more, {name: name for name in names}
