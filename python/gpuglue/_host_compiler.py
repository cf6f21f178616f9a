"""CUDA source for the host backend: the system's C++ compiler builds a shared object.

The source is preprocessed with gpuglue's header in front (cuda_dialect.h); in the result the kernels are
found by their mark, and the table that the backend needs is appended. The user's functions are in a namespace of their own,
with C++ linkage, so that one named like a function of libc or of the compiler is another function; a macro with the name of
one is undefined before the source. Files are written only in a temporary directory of the compiler: see _tempdir."""

import collections
import functools
import os
import re
import shutil
import subprocess

from . import _nvcc_options, _tempdir

OWN_HEADERS = ("cuda_dialect.h", "cuda_functions.h", "cuda_warps.h", "host_kernel.h")
HERE = os.path.dirname(os.path.abspath(__file__))
# Some linkers write a file beside the output and rename it, which is not possible with a descriptor.
RUN = 'output=$1; shift; "$@" -o "$TMPDIR/image" - && cat <"$TMPDIR/image" >"$output"'
MARK = re.compile(r'__attribute__\s*\(\(\s*__visibility__\("default"\),\s*__used__,\s*__hot__\s*\)\)')
GAP = r"(?:\s|# \d[^\n]*+)"  # markers of lines: a name may be one of the system's macros, such as stdin
# Between the mark and the name: types, attributes. Groups are atomic: Python before 3.11.5 misreads possessive ones.
NAME = re.compile(rf"(?>(?:{GAP}|__attribute__\s*+\(\([^()]*+(?>(?:\([^()]*+\)[^()]*+)*)\)\)|[:<>,*&]|\w++(?!{GAP}*\())*)(\w++){GAP}*\(")
ATTRIBUTE = r"(?:__attribute__\s*\(\((?:[^();{}]|\([^();{}]*\))*\)\)|alignas\s*\([^;{}()]*\))"
# An array without a size; the words before its type may be in any order.
SHARED = re.compile(r"(?:\b(?:volatile|const)\s+)*\b(?:extern|thread_local)\b"
                    rf"([^;{{}}()\[\]]*?(?:{ATTRIBUTE}[^;{{}}()\[\]]*?)*)\b(\w+)\s*\[\s*\]\s*;")
# Numbers come first, as they may contain quotes; strings as they are written.
TOKEN = re.compile(r'\b\d(?:\'?\w)*|R"([^()\\\s]*)\(.*?\)\1"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|'
                   r'namespace\s+([\w:]*)\s*\{|extern\s*"C(?:\+\+)?"\s*\{|[{}]', re.S)
# Which file the next lines come from. Flag 1: it begins; 3: it is the system's, or what one of its macros stands for.
MARKER = re.compile(r'^(# \d+ "((?:[^"\\]|\\.)*)")((?: \d)*)[ \t]*$', re.M)
LINKAGE = re.compile(r'R"([^()\\\s]*)\(.*?\)\1"|extern\s*"C"|"(?:\\.|[^"\\])*"', re.S)
SPACE = "gg_user"  # backends/host/module.c finds variables in it
PREFIX = "gg_kernel_"
# What a source marks for the device, in its own words: (mark, the text to the end of the name or behind it).
DEVICE = re.compile(r"\b__(global|device|constant|managed)__\b([^;{}=]{0,400})")
ASIDE = re.compile(r"//[^\n]*|/\*.*?\*/|\b__\w+__\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", re.S)  # comments, __launch_bounds__(…)
DECLARED = re.compile(r"\b([A-Za-z]\w*)\s*(?:[(\[]|$)")
DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.M)
OPERATORS = set("and and_eq bitand bitor compl defined not not_eq or or_eq xor xor_eq".split())  # never macros
KEYWORDS = OPERATORS | set("""alignas alignof asm auto bool break case catch char char16_t char32_t class const const_cast constexpr
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept nullptr operator private protected public register reinterpret_cast return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
    using virtual volatile wchar_t while""".split())


class NoCompiler(LookupError):
    """This machine has no C++ compiler."""


def find():
    """The C++ compiler: GPUGLUE_CXX and no other where it is set; else CXX, or the usual names. Links are not resolved:
    some programs act by their name."""
    wanted = os.environ.get("GPUGLUE_CXX")
    for given in [wanted] if wanted else [os.environ.get("CXX"), "c++", "g++", "clang++"]:
        path = shutil.which(given) if given else None
        if path:
            return os.path.abspath(path)
    if wanted:
        raise NoCompiler(f"GPUGLUE_CXX is {wanted!r}, which cannot be executed: expected a program")
    raise NoCompiler("no C++ compiler was found for the host backend: install g++ or clang++, or set GPUGLUE_CXX")


_versions: dict[str, str] = {}


def _version(path):
    """The first line of its --version: a wrapper's file does not identify the compiler it runs."""
    if path not in _versions:
        _versions[path] = _ask_version(path)
    return _versions[path]


def _ask_version(path):
    try:
        output = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=False, env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""
    return output.decode(errors="replace").partition("\n")[0]


def _is_clang(path):
    return "clang" in _version(path) or "clang" in os.path.basename(os.path.realpath(path))


def identity():
    """What identifies this compiler and gpuglue's headers: its version, the files' sizes and times."""
    path = find()
    headers = (os.path.join(include_directories()[0], "gpuglue", name) for name in OWN_HEADERS)
    files = [os.path.realpath(path), __file__, *headers]
    return " ".join([path, _version(path), *(f"{name} {state.st_size} {state.st_mtime_ns}"
                                             for name in files for state in [os.stat(name)])])


def include_directories():
    """gpuglue's include directory, and the one with replacements of NVIDIA's headers."""
    directory = os.path.join(HERE, "include")
    if not os.path.isdir(directory):  # an editable install
        directory = os.path.join(HERE, "..", "..", "core", "include")
    return [os.path.normpath(directory), os.path.join(HERE, "_cuda_headers")]


class Failed(Exception):
    """The compiler failed; its output is the argument."""


def _run(arguments, source):
    """The compiler's result for the source, and its output."""
    status, output, log = _tempdir.run(lambda output: ["/bin/sh", "-c", RUN, "sh", f"/dev/fd/{output}", *arguments], source)
    if status:
        raise Failed(log or f"{arguments[0]} ended with {status}")
    return output, log


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


def _kernels(text):
    """(namespace, match of NAME) of the kernels in preprocessed text that are not templates."""
    marks = {mark.start(): mark for mark in MARK.finditer(text)}
    for place, (namespace, inside) in _scopes(text, marks):
        before = text[max(0, place - 400):place]
        name = NAME.match(text, marks[place].end())
        if inside or not name or re.search(r"template\s*<[^;{}]*>[\w\s]*$", before):
            continue
        yield namespace, name


def kernels(text):
    """{name: expression} of the kernels in preprocessed text that are not templates. Those in a namespace are also
    listed by their unqualified name, unless it is ambiguous."""
    found = [(f"{namespace}::{name[1]}" if namespace else name[1], name[1]) for namespace, name in _kernels(text)]
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


def _given(name):
    """The name in the source of a kernel with the name in preprocessed text: some functions of CUDA are macros for gpuglue's."""
    return re.sub(r"\bgg_host_(\w+)$", lambda found: found[1] if _own_macros().get(found[1], "").strip() == found[0] else found[0], name)


def table(names, pointers):
    """(entries, table) of the kernels, as source: {name in the table: expression}; and how a block finds its memory. The
    entries are in the scope of the expressions."""
    entries = [f'static constexpr ::gg_host_kernel gg_entry_{i} = ::gg_host::describe<&{expression}>("{_given(name)}");'
               for i, (name, expression) in enumerate(names.items())]
    listed = ", ".join(f"&gg_entry_{i}" for i in range(len(names))) or "nullptr"
    entries.append(f"static const ::gg_host_kernel *const gg_list[] = {{{listed}}};")
    head = ["namespace gg_host { namespace { void take_shared(const gg_host_thread *thread) { (void)thread;",
            *(f"{name} = static_cast<decltype({name})>(thread->shared);" for name in pointers), "} } }",
            'extern "C" __attribute__((visibility("default"))) const struct ::gg_host_kernels gg_host_kernels = '
            f"{{0x4b484747u, 1u, {len(names)}, gg_list}};"]
    return "\n".join(entries), "\n".join(head)


def _common(options):
    return [find(), "-std=c++17", "-O2", "-pipe", *_nvcc_options.for_cxx(options)]


def _macros(arguments):
    """(lines that define macros, the other arguments): a name of the user's may also be one of gpuglue's header.
    Names that begin with an underscore may be meant for the system's headers."""
    lines, kept, words = [], [], iter(arguments)
    for word in words:
        given = word[2:] or next(words, "") if word[:2] in ("-D", "-U") else ""
        name, equals, value = given.partition("=")
        if not name or name[0] == "_" or "\n" in given:
            kept += [word] if word[2:] or not given else [word, given]
        else:
            lines.append(f"#define {name} {value if equals else 1}" if word[1] == "D" else f"#undef {name}")
    return lines, kept


@functools.lru_cache(maxsize=None)
def _own_macros():
    """{name: value} of the macros of gpuglue's headers."""
    own = {}
    for name in OWN_HEADERS:
        with open(os.path.join(include_directories()[0], "gpuglue", name), encoding="utf-8") as file:
            own.update(DEFINED.findall(file.read()))
    return own


def _declared(source):
    """(whether it is a kernel, name) of what the source marks for the device."""
    for mark, text in DEVICE.findall(ASIDE.sub(" ", source)):
        name = DECLARED.search(text.rstrip())
        if name:
            yield mark == "global", name[1]


def _without_macros(source):
    """Lines that remove the headers' macros with names of the source's functions and variables. CUDA's own remain: its
    variables, and its functions that the source overloads."""
    own = _own_macros()
    return [f"#undef {name}" for kernel, name in dict.fromkeys(_declared(source)) if name not in OPERATORS
            and (name not in own or kernel and "gg_host" not in own[name])]


def _preprocessed(removed, source, options, *more):
    macros, arguments = _macros(_common(options))
    lines = ["#include <gpuglue/cuda_dialect.h>", *removed, *macros, '#line 1 "source.cu"', source]
    directories = [f"-I{directory}" for directory in include_directories()]
    return _run([*arguments, *directories, "-E", *more, "-x", "c++"], "\n".join(lines).encode())


def preprocess(source, options):
    """(the source with all that it includes, log)."""
    return _preprocessed(_without_macros(source), source, options)


def why(source, options):
    """Why a source was not compiled, if functions or variables in it have names that its headers define as macros."""
    directives = re.sub(r"^(?![ \t]*#).*", "", source, flags=re.M)
    try:
        text = _preprocessed(_without_macros(source), directives, options, "-dM")[0]
    except Failed:
        return ""
    macros = dict(DEFINED.findall(text.decode(errors="replace"))).keys() - dict(DEFINED.findall(source)).keys()
    macros -= {name for name, value in _own_macros().items() if "::gg_host" not in value}
    names = [name for kernel, name in dict.fromkeys(_declared(source)) if name in macros or kernel and name in KEYWORDS]
    return f"no function or variable can be named {', '.join(names)}: a keyword, or a macro of CUDA or of a header" if names else ""


def _split(text):
    """(what comes from headers of the system and of gpuglue, the rest) of preprocessed text; each part keeps its order."""
    own = tuple(os.path.join(directory, "") for directory in include_directories())
    parts, files, end, system = {True: [], False: []}, set(), 0, False
    for marker in MARKER.finditer(text):
        parts[system].append(text[end:marker.start()])
        line, file, flags = marker.groups()
        if "1" in flags and ("3" in flags or file.startswith(own)):
            files.add(file)
        end, system = marker.end(), file in files
        parts[system].append(line + " 3" * ("3" in flags))  # the order of the files is no longer theirs
    parts[system].append(text[end:])
    return "".join(parts[True]), "".join(parts[False])


def _with_cxx_linkage(text):
    return LINKAGE.sub(lambda found: 'extern "C++"' if found[0].startswith("extern") else found[0], text)


def _renamed(user, system, names):
    """The user's part, in which kernels have other names if they are named like functions of headers, which the source may
    call, or like gpuglue's own: a kernel calls none. Not those in the expressions ``names``."""
    words, pieces, end = collections.Counter(re.findall(r"\w+", user)), [], 0
    found = [name for _, name in _kernels(user)]
    declared = collections.Counter(name[1] for name in found)
    called = {name for name in declared if words[name] > declared[name]}.difference(re.findall(r"\w+", " ".join(names)))
    functions = set(re.findall(rf"\b(?:{'|'.join(called)})(?=\s*\()", system)) if called else ()  # the headers are long
    for name in found:
        if name[1].startswith("gg_") or name[1] in functions:
            pieces += [user[end:name.start(1)], PREFIX]
            end = name.start(1)
    return "".join(pieces) + user[end:]


def _enclosed(text, names):
    """The source with the user's part in the namespace; None if that is not possible."""
    system, user = _split(text)
    if MARK.search(system) or re.search(r"\bnamespace\s+std\b", user):
        return None  # kernels in a header of the system; specialisations for the C++ library
    user = _renamed(user, system, names)
    wanted = {re.sub(rf"\b{PREFIX}(?=\w+$)", "", name): expression for name, expression in kernels(user).items()}
    wanted.update({name: name for name in names})
    user, pointers = dynamic_shared(_with_cxx_linkage(user))
    entries, head = table(wanted, [f"::{SPACE}{name}" for name in pointers])
    return "\n".join([system, f"namespace {SPACE} {{ }} using namespace {SPACE};", f"namespace {SPACE} {{", user,
                      '# 1 "gpuglue"', "}", f"namespace {SPACE} {{", entries, "}", head, ""])


def _plain(text, names):
    wanted = kernels(text)
    wanted.update({name: name for name in names})
    text, pointers = dynamic_shared(text)
    return "\n".join([text, '# 1 "gpuglue"', *table(wanted, pointers), ""])


def build(text, log, options, names):
    """(shared object, log, {expression: name in the table}) of the output of preprocess()."""
    text = text.decode(errors="surrogateescape")
    common = _common(options)
    # Symbols that are unique in the process would tie one image's kernels to another's.
    quiet = ["-Wno-attributes", "-Wno-unused", *([] if _is_clang(common[0]) else ["-fno-gnu-unique"])]
    flags = [*quiet, "-shared", "-fPIC", "-fno-lto", "-Wl,-Bsymbolic", "-x", "c++-cpp-output"]
    enclosed = _enclosed(text, names)
    if enclosed:
        try:  # a function that the source only declares is not in the namespace
            image, more = _run([*common, *flags, "-Wl,--no-undefined"], enclosed.encode(errors="surrogateescape"))
            return image, log + more, {name: name for name in names}
        except Failed:
            pass  # the errors below are in the user's own words
    image, more = _run([*common, *flags], _plain(text, names).encode(errors="surrogateescape"))
    return image, log + more, {name: name for name in names}
