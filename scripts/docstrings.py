"""The docstrings of the compiled module, from python/docstrings/*.rst: the one place where they are written.

    docstrings.py c DIRECTORY FILE...    write docstrings.h and docstrings.c; the build does this
    docstrings.py stub                   write them into python/gpuglue/_core.pyi, where editors find them
    docstrings.py stub --check           only compare them

An entry begins with a line `@ name` or `@ name(signature)`, as inspect.signature reads it; the text follows. The
name of a method or an attribute has that of its type in front. In C the entry of GPUArray.get is py_doc_GPUArray_get.
"""

import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "python/docstrings"
STUB = ROOT / "python/gpuglue/_core.pyi"
LONGEST = 4095  # bytes of a string literal in ISO C
ENTRY = re.compile(r"^@ ([\w.]+)(\(.*\))?$", re.M)


class Entry:
    """A docstring, and the signature that the interpreter takes from its first line."""

    def __init__(self, name, signature, text):
        self.name, self.signature = name, signature or ""
        self.text = text + "\n" if "\n" in text else text

    def in_c(self):
        """The string of a PyMethodDef or a type: CPython cuts the first line off."""
        head = f"{self.name.rpartition('.')[2]}{self.signature}\n--\n\n" if self.signature else ""
        return head + self.text


def entries(paths=None):
    """The entries of all files, by name."""
    found = {}
    for path in map(Path, paths or sorted(SOURCES.glob("*.rst"))):
        _, *parts = ENTRY.split(path.read_text(encoding="utf-8"))
        for name, signature, text in zip(parts[::3], parts[1::3], parts[2::3]):
            entry = Entry(name, signature, text.strip())
            size = len(entry.in_c().encode())
            if not entry.text or name in found or size > LONGEST:
                raise SystemExit(f"{path}: {name} is empty, is there twice, or has more than {LONGEST} bytes ({size})")
            found[name] = entry
    return found


# ---- C


def literal(text):
    """A string literal of C, one line of source per line of text."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("??", '?""?') for line in text.splitlines(True))
    return "\n".join('    "' + line.replace("\n", "\\n") + '"' for line in escaped)


def update(path, text):
    """Write a file, unless it has this text: what depends on it is then not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_c(directory, paths):
    found = entries(paths)
    names = {name: "py_doc_" + name.replace(".", "_") for name in found}
    mark = "/* From python/docstrings. */\n"
    update(directory / "docstrings.h", mark + "#ifndef GPUGLUE_PY_DOCSTRINGS_H\n#define GPUGLUE_PY_DOCSTRINGS_H\n\n" + "".join(
        f"extern const char {names[name]}[];\n" for name in found) + "\n#endif\n")
    update(directory / "docstrings.c", mark + '#include "docstrings.h"\n' + "".join(
        f"\nconst char {names[name]}[] =\n{literal(entry.in_c())};\n" for name, entry in found.items()))


# ---- the stub


def is_text(node):
    """Whether a statement is a docstring, or the `...` in place of one."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def quoted(text, indent):
    """A docstring at an indentation."""
    raw = "r" if "\\" in text else ""
    return textwrap.indent(f'{raw}"""{text}"""', " " * indent, lambda line: line.strip()) + "\n"


def slot(node, after, lines):
    """(first, last, kept, indent): the docstring of a node replaces lines[first:last], except for the text `kept`."""
    if isinstance(node, ast.AnnAssign):  # as editors know it: a string below the attribute
        return node.end_lineno, after.end_lineno if is_text(after) else node.end_lineno, "", node.col_offset
    body = node.body[0]
    first = body.lineno - 1
    kept = lines[first][: body.col_offset].rstrip()
    return first, body.end_lineno if is_text(body) else first, kept + "\n" if kept else "", node.col_offset + 4


def nodes(body, prefix=""):
    """(name, node, the next node) of all functions, classes and attributes."""
    for node, after in zip(body, [*body[1:], None]):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield prefix + node.name, node, after
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield prefix + node.target.id, node, after
        if isinstance(node, ast.ClassDef):
            yield from nodes(node.body, f"{node.name}.")


def stub_with(found, text):
    """The stub with the docstrings of the entries, and the names that it lacks."""
    lines = text.splitlines(True)
    known = [(name, slot(node, after, lines)) for name, node, after in nodes(ast.parse(text).body) if name in found]
    for name, (first, last, kept, indent) in sorted(known, key=lambda item: -item[1][0]):
        lines[first:last] = [kept, quoted(found[name].text, indent)]
    return "".join(lines), set(found) - {name for name, _ in known}


def write_stub(check):
    before = STUB.read_text(encoding="utf-8")
    after, missing = stub_with(entries(), before)
    if missing:
        print(f"{STUB.relative_to(ROOT)} lacks {', '.join(sorted(missing))}")
    if check and after != before:
        print(f"{STUB.relative_to(ROOT)} has other docstrings than {SOURCES.relative_to(ROOT)}: run scripts/docstrings.py stub")
    if not check:
        update(STUB, after)
    return 1 if missing or (check and after != before) else 0


if __name__ == "__main__":
    if sys.argv[1] == "c":
        write_c(Path(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(write_stub("--check" in sys.argv))
