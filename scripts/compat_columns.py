"""Fill the columns cuda, hip, host and ze of the tables of PyCUDA's and PybindGPU's names with what tests have shown.

    python scripts/compat_columns.py COLUMN REPORT…      e.g. host build/host.xml, a report of
        pytest tests/python/test_compat_*.py --junitxml=build/host.xml

A name is `yes` if a test that uses it has passed on that backend and none has failed: a test of the file in the column `tested in`
whose function has the name outside of `with pytest.raises(…):`, or any test of the file if only code outside of tests has it.
Where runs of a test have the name as their parameter, only these count. Names without such a test are listed
after `not:`. Rows that are not available, and those of which no name has one, get `no`. FILES=test_a.py,test_b.py in the
environment fills only rows of those files, and keeps the others.
"""

import ast
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs/reference" / name for name in ("pycuda-names.md", "compat-names.md")]
TESTS = ROOT / "tests/python"
COLUMNS = ("cuda", "hip", "host", "ze")
ONLY = os.environ.get("FILES", "").split(",") if os.environ.get("FILES") else []
COUNTED = "| names that work, of"


def outcomes(reports):
    """{(file, test): {its parameters: "passed", "failed" or "skipped"}} of reports in JUnit's form; a failure stays one."""
    found: dict = {}
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            verdict = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            test, _, parameters = case.get("name").rstrip("]").partition("[")
            of_test = found.setdefault((case.get("classname").split(".")[-1] + ".py", test), {})
            if of_test.get(parameters) != "failed":
                of_test[parameters] = verdict
    return found


def refusals(function):
    """The lines of a test that have to raise: all, with those of its parameters, if it has no other statements."""
    raising = [node for node in ast.walk(function) if isinstance(node, ast.With)
               and any("pytest.raises" in ast.unparse(item.context_expr) for item in node.items)]
    if all(node in raising for node in function.body):  # the lines that name the exception stay
        return set(range(function.end_lineno + 1)) - {line for node in raising for line in range(node.lineno, node.body[0].lineno)}
    return {line for node in raising for line in range(node.body[0].lineno, node.end_lineno + 1)}


def sources(text):
    """{test: its source, with its decorators and without what has to raise} of a file, and the lines outside of tests."""
    lines, found, rest = text.splitlines(), {}, set(range(1, len(text.splitlines()) + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            its = range(min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno + 1)
            found[node.name] = "\n".join(lines[at - 1] for at in its if at not in refusals(node))
            rest -= set(its)
    return found, "\n".join(lines[at - 1] for at in sorted(rest))


def word_of(name):
    """What of a name stands in tests: its last part, without the names of dtypes; what is called is written as its class."""
    parts = name.replace("_<dtype>", "").split(".")
    return parts[-2] if parts[-1] == "__call__" and len(parts) > 1 else parts[-1]


def users(name, text):
    """The tests of a file that use a name: all if only code outside of tests has it, none if each has to raise."""
    pattern, (its, rest) = re.compile(rf"(?<!\w){re.escape(word_of(name))}" + ("" if "<dtype>" in name else r"(?!\w)")), sources(text)
    return [test for test, source in its.items() if pattern.search(source)] or (list(its) if pattern.search(rest) else [])


def works(name, file, found):
    """Whether tests have shown that the name works."""
    own = [verdict for (of, _), runs in found.items() if of == file for parameters, verdict in runs.items() if parameters == name]
    verdicts = own or [verdict for test in users(name, (TESTS / file).read_text()) for verdict in found.get((file, test), {}).values()]
    return "passed" in verdicts and "failed" not in verdicts


def filled(text, column, found):
    """The page with that column filled, and with the number of its names that work."""
    at, lines, total, working = 3 + COLUMNS.index(column), [], 0, 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 + len(COLUMNS) and cells[0].startswith("`"):
            names = re.findall(r"`([^`]+)`", cells[0])
            file = cells[2].strip("`")
            if not ONLY or file in ONLY:
                lacking = [name for name in names if not works(name, file, found)]
                cells[at] = "no" if cells[1].startswith("not available") or lacking == names else \
                    "not: " + ", ".join(f"`{name}`" for name in lacking) if lacking else "yes"
                line = "| " + " | ".join(cells) + " |"
            total += len(names)
            working += 0 if cells[at] == "no" else len(names) - len(re.findall(r"`[^`]+`", cells[at]))
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
