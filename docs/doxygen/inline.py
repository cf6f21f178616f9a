"""Prints a public header as Doxygen should read it; a filter, see Doxyfile.

Doxygen does not include a file into an enum, so the rows of *.def are put where they are included. A row of ops.def has
no comment of its own: its value is named after the member of gg_backend_ops that describes it. Macros that only serve the
header itself are left out. An enum and its type of the same name are one entry. A name in a comment becomes a link."""

import re
import sys
from pathlib import Path

INTERNAL = r"STATUS|PROBE|OP|\w+_ENUM|GG_API|GG_BEGIN_DECLS|GG_END_DECLS|GG_\w+(?=\(X\))"
MACRO = re.compile(rf"^#define ({INTERNAL})\b((?:.*\\\n)*.*)\n", re.M)
INCLUDE = re.compile(r"^#include <gpuglue/(\w+\.def)>\n", re.M)
TYPEDEF = re.compile(r"^typedef (enum (\w+) \{[^}]*\}) \2;", re.M)
COMMENT = re.compile(r"/\*\*.*?\*/", re.S)
NAME = re.compile(r"(?<![\w.:/#`])(gg_\w+(?:::\w+)?)(?![\w(`])")
VALUES = {"status.def": r"GG_\1 = \2,", "probe.def": r"GG_PROBE_\1 = \2,"}


def rows(path):
    """The enum values of a .def file."""
    text = path.read_text()
    if path.name == "ops.def":
        return "".join(f"    GG_OP_{slot}, /**< gg_backend_ops::{slot} */\n" for slot in re.findall(r"^OP\((\w+),", text, re.M))
    return re.sub(r"^\w+\((\w+), (\d+), \"[^\"]*\"\)", VALUES[path.name], text, flags=re.M)


def substitute(row, parameters, arguments):
    """What a macro with these parameters expands to."""
    values = dict(zip(parameters.split(", "), arguments.split(", ")))
    return re.sub(r"(?:##)?\b(\w+)\b", lambda match: values.get(match[1], match[0]), row.replace("##", "## ")).replace("## ", "")


def known_names(directory):
    """The functions, structs and enums of all headers. Doxygen finds no members of a struct that a function is named as."""
    text = "".join(path.read_text() for path in directory.glob("*.h"))
    functions = set(re.findall(r"^GG_API [\w ]+?[ *]+(gg_\w+)\(", text, re.M))
    structs = set(re.findall(r"^struct (gg_\w+) \{", text, re.M))
    enums = set(re.findall(r"^(?:typedef )?enum (gg_\w+) \{", text, re.M))
    return functions | structs | enums, structs - functions


def link(text, names, structs):
    """The text with links in its comments."""

    def refer(match):
        name, member, _ = match[1].partition("::")
        return f'@ref {match[1]} "{match[1]}"' if name in (structs if member else names) else match[0]

    return COMMENT.sub(lambda comment: NAME.sub(refer, comment[0]), text)


def expand(header):
    """The text of a header, with lists of values in place of the macros that generate them."""
    text = header.read_text()
    for name, body in re.findall(r"^#define (GG_\w+)\(X\)((?:.*\\\n)*.*)\n", text, re.M):
        (prefix,) = re.findall(rf"{name}\((\w+)\)", text.partition("#undef")[0].split(body)[1])
        ((parameters, row),) = re.findall(rf"^#define {prefix}\(([\w, ]+)\) (.*)", text, re.M)
        values = re.sub(r"X\(([^()]*)\)", lambda match: substitute(row, parameters, match[1]), body.replace("\\\n", "\n"))
        text = re.sub(rf"{name}\({prefix}\)", lambda _: values, text)
    text = INCLUDE.sub(lambda match: rows(header.parent / match[1]), text)
    text = TYPEDEF.sub(r"\1;", text)
    return re.sub(rf"^#undef ({INTERNAL})\n", "", MACRO.sub("", text), flags=re.M)


if __name__ == "__main__":
    header = Path(sys.argv[1])
    print(link(expand(header), *known_names(header.parent)), end="")
