"""The tests that tests/README.md and docs/probing.md name exist, in the suites that they name.

    check_named_tests.py

In a table's cell, `copy: name` is in tests/conformance/test_copy.c, `python copy: name` in tests/python/test_copy.py,
and so on by folder; several suites are parted by commas, and a suite holds until the next. A name may end in … for
all that begin so. In probing.md, python is the folder."""

import re
import sys
from pathlib import Path

TESTS = Path("tests")
FOLDERS = ("conformance", "core", "python", "sim", "headers", "plugin", "wheel", "vendors")
# A function, or a row of a suite's `scenarios`.
DEFINED = re.compile(r"^(?:static void\s)?(\w+)\(void \*\*state\)|^static void (\w+)\(void \*\*|^    \{\"(\w+)\", \w+\},|^\s*def (?:test_)?(\w+)\(", re.M)
SUITE = re.compile(r"(?:(conformance|core|python|sim|headers|plugin|wheel|vendors) )?((?:\w+)(?:, \w+)*): *(?=`)")
NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+)+_?…?)`")


def names_in(path):
    return {"".join(groups) for groups in DEFINED.findall(path.read_text())}


def defined():
    """{(folder, suite): its tests}"""
    found = {}
    for path in (path for folder in FOLDERS for path in sorted((TESTS / folder).rglob("test_*.*"))):
        if path.suffix in (".c", ".py"):
            folder = path.relative_to(TESTS).parts[0]
            found.setdefault((folder, path.stem.removeprefix("test_")), set()).update(names_in(path))
    return found


def exists(name, tests):
    stem = name.rstrip("…")
    return any(test.startswith(stem) for test in tests) if name != stem else name in tests


def check_cell(cell, folder, tests):
    """The names of a cell that are nowhere, or not where the cell says."""
    marks = [(match.start(), match) for match in (*SUITE.finditer(cell), *NAME.finditer(cell))]
    here = None
    for _, match in sorted(marks, key=lambda mark: mark[0]):
        if match.re is SUITE:
            where = match.group(1) or folder
            here = [(where, suite) for suite in match.group(2).split(", ")]
        elif here is None:
            yield f"{match.group(1)}: no suite is named before it"
        elif not exists(match.group(1), set().union(*(tests.get(suite, set()) for suite in here))):
            yield f"{match.group(1)} is not in {' or '.join('/'.join(suite) for suite in here)}"


def check(path, folder, tests):
    count, wrong = 0, []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if line.startswith("|"):
            cell = line.strip("| ").rsplit(" | ", 1)[-1]
            count += len(NAME.findall(cell))
            wrong += [f"{path}:{number}: {text}" for text in check_cell(cell, folder, tests)]
    return count, wrong


def main():
    tests = defined()
    results = [check("tests/README.md", "conformance", tests), check("docs/probing.md", "python", tests)]
    wrong = [text for _, texts in results for text in texts]
    print(f"named tests       {sum(count for count, _ in results)} of them, {len(wrong)} that do not exist")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or not all(count for count, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
