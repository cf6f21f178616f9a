"""The table of slots: which operation each backend has, from which version of the driver on, and why others are missing.

    slots.py json FILE       write the data of `gpuglue info --slots`; the build does this
    slots.py docs            write docs/reference/slots.md
    slots.py docs --check    only compare it

It reads the slots from ops.def, and the rest from the backends' sources: the slots that are defined as NULL or that a
function X_supports refuses, and the driver functions that these functions require. backends/slots.toml has what the sources
do not contain: versions of functions, and reasons. Each missing slot must have a reason and a source there.
"""

import ast
import itertools
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/slots.md"
BACKENDS = ("cuda", "hip", "ze", "host")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
MEMBER = re.compile(r"\b(?:cuhip_driver|cuda|hip|ze)\.(\w+)")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def slots():
    """{name: required}, in the table's order."""
    return {name: need == "REQUIRED" for name, need in re.findall(r"^OP\((\w+), GG_(\w+)\)", read("core/include/gpuglue/ops.def"), re.M)}


# ---- the driver functions that a slot needs


def symbols(backend):
    """{member of the table of driver functions: symbol}"""
    if backend == "ze":
        rows = re.findall(r"^(?:FN|GIVES)\((\w+), \(.*\), (\w+), GG_\w+\)", read("backends/ze/ze.def"), re.M)
        return dict(rows)
    shared = re.findall(r"^FN\((\w+), \(.*\), (cu\w+), (hip\w+), GG_\w+, \w+\)", read("backends/cuda_hip/driver.def"), re.M)
    own = re.findall(r"^OWN\((\w+), \(.*\), (\w+), GG_\w+\)", read(f"backends/{backend}/{backend}.def"), re.M)
    return {row[0]: row[1 + (backend == "hip")] for row in shared} | dict(own)


def conditions(text):
    """{slot: expression} of a function `X_supports`, whose statements are `if (op == …) return …;`."""
    body = COMMENT.sub("", re.search(r"_supports\([^)]*\)\n\{(.*?)\n\}", text, re.S)[1])
    found = {}
    for tested, result in re.findall(r"if \(((?:op == GG_OP_\w+[\s|]*)+)\)\s*return ([^;]*);", body):
        found |= dict.fromkeys(re.findall(r"GG_OP_(\w+)", tested), result)
    found |= re.findall(r"return op != GG_OP_(\w+) \|\| ([^;]*);", body)
    return found


def choices(expression, known):
    """The sets of functions each of which satisfies an expression."""
    python = " ".join(expression.replace("||", " or ").replace("&&", " and ").replace("!= NULL", "").replace("->", ".").split())

    def of(node):
        if isinstance(node, ast.Attribute):
            return [{known[node.attr]}] if node.attr in known and MEMBER.fullmatch(ast.unparse(node)) else [set()]
        if not isinstance(node, ast.BoolOp):
            return [] if isinstance(node, ast.Name) and node.id == "false" else [set()]
        parts = [of(value) for value in node.values]
        if isinstance(node.op, ast.Or):
            return [each for part in parts for each in part]
        return [set().union(*sets) for sets in itertools.product(*parts)]

    return of(ast.parse(python, mode="eval").body)


def both(first, second):
    return [one | other for one in first for other in second]


def needed(backend):
    """{slot: the sets of functions of which one set is needed}, and the slots that are always refused."""
    known = symbols(backend)
    if backend == "ze":
        return {slot: choices(text, known) for slot, text in conditions(read("backends/ze/device.c")).items()}, set()
    source = read("backends/cuda_hip/device.c")
    found = {}
    for slot, member in re.findall(r"\{GG_OP_(\w+), offsetof\(struct cuhip_driver, (\w+)\)\}", source):
        found[slot] = both(found.get(slot, [set()]), [{known[member]}])
    own = conditions(read(f"backends/{backend}/{backend}.c"))
    for slot, text in conditions(source).items():
        found[slot] = choices(text.replace("cuhip.supports(op)", own.get(slot, "false")), known)
    found |= {slot: both(found.get(slot, [set()]), choices(text, known)) for slot, text in own.items() if slot not in conditions(source)}
    refused = {slot for slot, text in own.items() if text == "false"}
    if ".writes_words = false" in read(f"backends/{backend}/{backend}.c"):
        refused.add("write_word")
    return found, refused


# ---- the table


def oldest(backend):
    if backend == "ze":
        return "{}.{}".format(*re.search(r"#define API_MIN ZE_API\((\d+), (\d+)\)", read("backends/ze/probe.c")).groups())
    if backend == "hip":
        return re.search(r"\bHIP_OLDEST = (\d+)", read("backends/hip/hip_driver.h"))[1] + ".0"
    version = int(re.search(r"\.version_min = (\d+)", read("backends/cuda/cuda.c"))[1])
    return f"{version // 1000}.{version % 1000 // 10}"


def number(version):
    return [int(part) for part in version.split(".")]


def undefined(backend):
    """The slots that are NULL in the backend's table."""
    prefix, path = {"ze": ("ze", "backends/ze/ze.c"), "host": ("host", "backends/host/host.c")}.get(
        backend, ("cuhip", "backends/cuda_hip/driver.c"))
    return set(re.findall(rf"^#define {prefix}_(\w+)\s+(?:\\\n\s*)?NULL", read(path), re.M))


def newest(functions, versions, first):
    return max([first, *(versions.get(name, first) for name in functions)], key=number)


def problems(backend, words, absent):
    reasons = words["absent"].get(backend, {}).keys()
    yield from (f"{backend} has {name}, for whose absence slots.toml has a reason" for name in reasons - absent)
    yield from (f"{backend} lacks {name}, and slots.toml has no reason" for name in absent - reasons)
    versions = words["since"].get(backend, {})
    if versions:
        yield from (f"{backend} does not use {name} of slots.toml" for name in versions.keys() - set(symbols(backend).values()))


def column(backend, words):
    """{slot: cell} of one backend, and what is wrong with slots.toml."""
    found, refused = needed(backend) if backend != "host" else ({}, set())
    absent = undefined(backend) | refused
    reasons, versions = words["absent"].get(backend, {}), words["since"].get(backend, {})
    cells = {}
    first = None if backend == "host" else oldest(backend)
    for slot in slots():
        if slot in absent:
            reason, source = reasons.get(slot, (None, None))
            cells[slot] = {"since": None, "reason": reason, "source": source}
            continue
        sets = found.get(slot, [set()])
        cells[slot] = {"since": min((newest(each, versions, first) for each in sets), key=number) if first else "any",
                       "functions": sorted(map(sorted, sets)) if any(sets) else [],
                       "needs": words["needs"].get(backend, {}).get(slot)}
    return cells, list(problems(backend, words, absent))


def table():
    """The data, and what is wrong with slots.toml: a build does not fail because of that."""
    words = tomllib.loads(read("backends/slots.toml"))
    columns = {backend: column(backend, words) for backend in BACKENDS}
    rows = [{"slot": slot, "required": required, "backends": {backend: columns[backend][0][slot] for backend in BACKENDS}}
            for slot, required in slots().items()]
    return {"sources": words["since"]["source"], "slots": rows}, [text for _, wrong in columns.values() for text in wrong]


# ---- the page


HEAD = """# Operations of each backend

<!-- Written by scripts/slots.py. -->

A backend has one function, a *slot*, per operation of the [plugin contract](c/backend.md). The table has the oldest version
of CUDA, HIP or Level Zero's API with which each slot works. **–** is an operation that the backend does not have; the reasons
are below. Such an operation raises `gg.UnsupportedError` in Python, or gpuglue replaces it: without `copy_region`, for
instance, it copies row by row.

`gpuglue info --slots` prints this table for the drivers of this machine; with `--json` it adds the functions that each slot
needs. `device.supports("ipc_export")` and `gg_device_supports` return whether one device supports an operation.

"""


def link(source):
    if source.startswith("https:"):
        return f"<{source}>"
    return f"[docs/{source[5:]}](../{source[5:]})" if source.startswith("docs/") else f"`{source}`"


def page(data):
    notes = []

    def note(text):
        if text not in notes:
            notes.append(text)
        return f" ({notes.index(text) + 1})"

    def cell(backend, it):
        if it["since"] is None:
            return "–" + note(f"{backend}: {it['reason']}. Source: {link(it['source'])}")
        return it["since"].replace("any", "yes") + (note(f"{backend}: needs {it['needs']}.") if it["needs"] else "")

    lines = ["| slot | cuda | hip | ze | host |", "|---|---|---|---|---|"]
    for row in data["slots"]:
        name = f"**{row['slot']}**" if row["required"] else row["slot"]
        lines.append(" | ".join([f"| {name}", *(cell(*item) for item in row["backends"].items())]) + " |")
    lines += ["", "A slot in bold is required: a plugin without it is refused.", ""]
    lines += [f"{i}. {text}" for i, text in enumerate(notes, 1)]
    lines += ["", "Versions of functions are from:", "", *(f"- {source}" for source in data["sources"])]
    return HEAD + "\n".join(lines) + "\n"


def main(arguments):
    data, wrong = table()
    if arguments[:1] == ["json"]:
        Path(arguments[1]).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    elif wrong:
        raise SystemExit("\n".join(wrong))
    elif arguments == ["docs", "--check"]:
        if PAGE.read_text(encoding="utf-8") != page(data):
            raise SystemExit("docs/reference/slots.md differs from the code: run scripts/slots.py docs")
    elif arguments == ["docs"]:
        PAGE.write_text(page(data), encoding="utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
