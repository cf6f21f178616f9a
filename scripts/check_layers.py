"""Directories use only those below them, and files form no circle.

    check_layers.py [BUILD]        nm reads the objects that BUILD holds
    check_layers.py --self-test    plant an upward include, an upward call and a circle: each must be reported

- No file of core/ or python/src includes a header of a directory that it may not use; every directory is in the table.
- No object calls what an object of such a directory defines. The core and the host backend, which is linked into it, know
  each other through the contract only.
- No two files, whatever their directories, need each other by their symbols, and no two headers include each other.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EACH_USES_ALL_BEFORE = ("base", "numpy", "runtime", "memory", "copy", "array", "interop", "kernel", "module")
TREES = {
    "core": {
        "base": "",
        "comm": "base",
        "runtime": "base",
        "trace": "base runtime",
        "loader": "base runtime trace",
        "memory": "base runtime loader",
        "transfer": "base runtime memory",
        "kernel": "base runtime memory",
        "collective": "base comm runtime loader memory transfer",
        "process": "base runtime trace loader memory transfer kernel",
    },
    "python/src": {directory: " ".join(EACH_USES_ALL_BEFORE[:at]) for at, directory in enumerate(EACH_USES_ALL_BEFORE)},
}
TREES["python/src"]["runtime"] = "base"  # not numpy
# Of these directories only some files may use the other one.
ONLY = {("memory", "loader"): {"memory/ipc.c", "memory/pointer.c"}}
PUBLIC = {"include"}  # the contract and the C API, which all may use
GENERATED = {"docstrings.h"}
# Tables that are declared below and filled in above: the one link that goes up.
FILLED_IN_ABOVE = {"ggi_device_parts", "ggi_host_backend"}


def may_use(directories, user, used):
    """Whether a file may use another; both are named with their directories."""
    user_in, used_in = user.split("/")[0], used.split("/")[0]
    if user_in == used_in:
        return True
    if used_in not in directories.get(user_in, "").split():
        return False
    return user in ONLY.get((user_in, used_in), {user})


def sources(root, tree):
    """Files by their names below the tree."""
    for path in sorted((root / tree).rglob("*.[ch]")):
        name = path.relative_to(root / tree)
        if name.parts[0] not in PUBLIC:
            yield str(name), path.read_text()


def includes(root, tree, directories):
    """(user, header as it is written, its name below the tree or None) for each include of the tree's own headers."""
    for user, text in sources(root, tree):
        for mark, name in re.findall(r'^#\s*include\s*(["<])([^">]+)[">]', text, re.M):
            if mark == '"' and name not in GENERATED:
                yield user, name, name if re.fullmatch(r"\w+(/\w+)+\.\w+", name) else None
            elif mark == "<" and (root / tree / name).is_file() and name.split("/")[0] in directories:
                yield user, name, None


def source_of(root, tree, name):
    """core_base_text.c.o -> base/text.c: the longest of the existing files."""
    files = (str(path.relative_to(root / tree)) for path in (root / tree).rglob("*.c"))
    return max((file for file in files if re.search(rf"(^|_){re.escape(file.replace('/', '_'))}\.o$", name)), key=len, default=None)


def objects(root, tree, build):
    directory = {"core": "libgpuglue.so.*p", "python/src": "python/_core*.so.p"}[tree]
    for found in sorted(build.glob(directory)):
        for path in sorted(found.glob("*.o")):
            file = source_of(root, tree, path.name)
            if file or path.name.startswith("backends_"):
                yield file or f"{path.name}", path


def nm(path):
    """(defined, used): global symbols alone, so that equal names of statics mean nothing."""
    defined, used = set(), set()
    for line in subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        (used if words[-2] in "Uwv" else defined).add(words[-1])
    return defined, used


def edges(found):
    """(user, symbol, used) between files."""
    symbols = {file: nm(path) for file, path in found}
    home = {symbol: file for file, (defined, _) in symbols.items() for symbol in defined}
    for file, (_, used) in sorted(symbols.items()):
        for symbol in sorted(used - FILLED_IN_ABOVE):
            if home.get(symbol, file) != file:
                yield file, symbol, home[symbol]


def circles(graph):
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, stack, result = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in sorted(graph.get(at, ())):
            if to not in index:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == index[at]:
            component = []
            while not component or component[-1] != at:
                component.append(stack.pop())
            if len(component) > 1:
                result.append(sorted(component))

    for file in sorted(graph):
        if file not in index:
            visit(file)
    return result


def check_includes(root, tree, directories):
    """(offending lines, circles of headers)."""
    wrong, graph = [], {}
    for user, written, used in includes(root, tree, directories):
        if not used:
            wrong.append(f"{tree}/{user}: includes {written}: expected the directory and the name in quotes")
        elif not may_use(directories, user, used):
            wrong.append(f"{tree}/{user}: includes {used}")
        elif user.endswith(".h"):
            graph.setdefault(user, set()).add(used)
    return wrong, circles(graph)


def check_tree(root, tree, build):
    directories = TREES[tree]
    unknown = {user.split("/")[0] for user, _ in sources(root, tree)} - set(directories)
    wrong = [f"{tree}/{name}: is in no table of {Path(__file__).name}" for name in sorted(unknown)]
    offending, rings = check_includes(root, tree, directories)
    wrong += offending
    graph = {}
    found = list(objects(root, tree, build)) if build else []
    if build and not found:
        wrong.append(f"{tree}: no objects in {build}")
    for user, symbol, used in edges(found):
        graph.setdefault(user, set()).add(used)
        both_outside = user.startswith("backends_") and used.startswith("backends_")
        if not both_outside and not may_use(directories, user, used):
            wrong.append(f"{tree}/{user}: calls {symbol} of {used}")
    return wrong, rings + [ring for ring in circles(graph) if not ring[0].startswith("backends_")]


def check(root, build):
    bad = 0
    for tree in TREES:
        wrong, rings = check_tree(root, tree, build)
        for line in wrong:
            print(line)
        for ring in rings:
            print(f"{tree}: a circle of {len(ring)} files: {' '.join(ring)}")
        print(f"layers            {tree}: {len(wrong)} upward, {len(rings)} circles")
        bad += len(wrong) + len(rings)
    return bad


# ---- the self-test --------------------------------------------------------------------------------------

CLEAN = {
    "base/low.h": "int low(void);\n",
    "base/low.c": '#include "base/low.h"\nint low(void)\n{\n    return 1;\n}\n',
    "runtime/high.h": "int high(void);\n",
    "runtime/high.c": '#include "base/low.h"\n#include "runtime/high.h"\nint high(void)\n{\n    return low();\n}\n',
    "runtime/other.c": "int other(void);\nint other(void)\n{\n    return 2;\n}\n",
}
PLANTED = {
    "nothing": ({}, None),
    "an upward include": ({"base/low.h": '#include "runtime/high.h"\nint low(void);\n'}, "core/base/low.h: includes runtime/high.h"),
    "an upward call": ({"base/low.c": "int low(void);\nint other(void);\nint low(void)\n{\n    return other();\n}\n"},
                       "core/base/low.c: calls other of runtime/other.c"),
    "a relative include": ({"base/low.h": '#include "../runtime/high.h"\nint low(void);\n'},
                           "core/base/low.h: includes ../runtime/high.h: expected the directory and the name in quotes"),
    "an include in brackets": ({"base/low.h": "#include <runtime/high.h>\nint low(void);\n"},
                               "core/base/low.h: includes runtime/high.h: expected the directory and the name in quotes"),
    "an include of a subdirectory": ({"base/low.h": '#include "runtime/sub/high.h"\nint low(void);\n', "runtime/sub/high.h": "int high(void);\n"},
                                     "core/base/low.h: includes runtime/sub/high.h"),
    "a new directory": ({"added/new.h": "int added(void);\n"}, "core/added: is in no table of check_layers.py"),
    "a file that may not use the directory": ({"loader/find.h": "int find(void);\n", "memory/pool.c": '#include "loader/find.h"\n'},
                                              "core/memory/pool.c: includes loader/find.h"),
    "the file that may": ({"loader/find.h": "int find(void);\n", "memory/ipc.c": '#include "loader/find.h"\n'}, None),
    "a call of the host backend": ({"../backends/host/work.c": "int work(void);\nint work(void)\n{\n    return 3;\n}\n",
                                    "base/low.c": "int low(void);\nint work(void);\nint low(void)\n{\n    return work();\n}\n"},
                                   "core/base/low.c: calls work of backends_host_work.c.o"),
    "a circle of headers": ({"runtime/high.h": '#include "runtime/other.h"\nint high(void);\n',
                             "runtime/other.h": '#pragma once\n#include "runtime/high.h"\n'}, "runtime/high.h runtime/other.h"),
    "a circle": ({"runtime/other.c": "int high(void);\nint other(void);\nint other(void)\n{\n    return high();\n}\n",
                  "runtime/high.c": "int high(void);\nint other(void);\nint high(void)\n{\n    return other();\n}\n"},
                 "runtime/high.c runtime/other.c"),
}


def planted(files):
    """What the check finds in a tree of these files, compiled."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        out = root / "build/libgpuglue.so.p"
        out.mkdir(parents=True)
        for file, text in files.items():
            path = Path(os.path.normpath(root / "core" / file))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for path in sorted(root.rglob("*.c")):
            target = out / (str(path.relative_to(root)).replace("/", "_") + ".o")
            subprocess.run(["cc", "-I", root / "core", "-c", path, "-o", target], check=True)
        wrong, rings = check_tree(root, "core", root / "build")
        return wrong + [" ".join(ring) for ring in rings]


def self_test():
    failures = 0
    for what, (files, expected) in PLANTED.items():
        found = planted({**CLEAN, **files})
        if found != ([expected] if expected else []):
            print(f"planted {what}: expected {expected}, found {found}")
            failures += 1
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    build = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    return check(Path(), build)


sys.exit(main() != 0)
