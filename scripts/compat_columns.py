"""Fill the columns cuda, hip, host and ze of the tables of PyCUDA's and PybindGPU's names with what tests have shown.

    python scripts/compat_columns.py COLUMN REPORT…      e.g. host build/host.xml, a report of
        pytest tests/python/test_compat_*.py --junitxml=build/host.xml

A name is `yes` if a test that uses it has passed on that backend and none has failed: a test of the file in the column `tested in`
whose function has the name, or any test of the file if only code outside of functions has it. Names without such a test are listed
after `not:`. Rows that are not available, and those of which no name has one, get `no`.
"""

import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs/reference" / name for name in ("pycuda-names.md", "compat-names.md")]
TESTS = ROOT / "tests/python"
COLUMNS = ("cuda", "hip", "host", "ze")
COUNTED = "| names that work, of"


def outcomes(reports):
    """{(file, test): set of "passed", "failed", "skipped"} of reports in JUnit's form."""
    found: dict = {}
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            verdict = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            key = case.get("classname").split(".")[-1] + ".py", case.get("name").partition("[")[0]
            found.setdefault(key, set()).add(verdict)
    return found


def sources(file):
    """{test: its source, with its decorators} of a file."""
    text = (TESTS / file).read_text()
    lines, found = text.splitlines(), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1:node.end_lineno])
    return found


def word_of(name):
    """What of a name stands in tests: its last part, without the names of dtypes."""
    return name.replace("_<dtype>", "").split(".")[-1]


def works(name, file, found):
    """Whether tests have shown that the name works."""
    pattern = re.compile(rf"(?<![a-zA-Z]){re.escape(word_of(name))}")
    its = sources(file)
    users = [test for test, text in its.items() if pattern.search(text)] or list(its)
    verdicts = set().union(*(found.get((file, test), set()) for test in users))
    return "passed" in verdicts and "failed" not in verdicts


def filled(text, column, found):
    """The page with that column filled, and with the number of its names that work."""
    at, lines, total, working = 3 + COLUMNS.index(column), [], 0, 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 + len(COLUMNS) and cells[0].startswith("`"):
            names = re.findall(r"`([^`]+)`", cells[0])
            lacking = [name for name in names if not works(name, cells[2].strip("`"), found)]
            cells[at] = "no" if cells[1].startswith("not available") or lacking == names else \
                "not: " + ", ".join(f"`{name}`" for name in lacking) if lacking else "yes"
            line = "| " + " | ".join(cells) + " |"
            total, working = total + len(names), working + (len(names) - len(lacking) if cells[at] != "no" else 0)
        lines.append(line)
    head = next(index for index, line in enumerate(lines) if line.startswith(COUNTED))
    counts = [cell.strip() for cell in lines[head].split("|")[2:-1]]
    counts[at - 3] = str(working)
    lines[head] = f"{COUNTED} {total} | " + " | ".join(counts) + " |"
    return "\n".join(lines) + "\n"


def main(column, *reports):
    """Write both pages."""
    found = outcomes(reports)
    for page in PAGES:
        page.write_text(filled(page.read_text(), column, found))


if __name__ == "__main__":
    main(*sys.argv[1:])
