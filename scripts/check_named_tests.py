"""Check that the tests named in tests/README.md, tests/PROBING.md, tests/DIFFERENCES.md and SECURITY.md exist in the suites named there.

    check_named_tests.py

In a table cell, `copy: name` is in tests/conformance/test_copy.c, `python copy: name` in tests/python/test_copy.py,
and so on by directory. Commas separate several suites, and a suite applies until the next one. A name that ends in …
stands for all names with that prefix. In PROBING.md the default directory is python. `fuzz elf: corpus_elf` is the fuzzer
tests/fuzz/fuzz_elf.c with its corpus."""

import re
import sys
from pathlib import Path

TESTS = Path("tests")
DIRECTORIES = ("conformance", "core", "abi", "python", "sim", "headers", "plugin", "wheel", "vendors", "model")
FUZZ = TESTS / "fuzz"
# A function, or a row of the table `scenarios` of a suite.
DEFINED = re.compile(r"^(?:static void\s)?(\w+)\(void \*\*state\)|^static void (\w+)\(void \*\*|^    \{\"(\w+)\", \w+\},|^\s*def (?:test_)?(\w+)\(", re.M)
SUITE = re.compile(r"(?:(conformance|core|abi|fuzz|python|sim|headers|plugin|wheel|vendors|model) )?((?:\w+)(?:, \w+)*): *(?=`)")
NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+)+_?…?)`")


def names_in(path):
    return {"".join(groups) for groups in DEFINED.findall(path.read_text())}


def defined():
    """{(directory, suite): its tests}"""
    found = {}
    for path in (path for directory in DIRECTORIES for path in sorted((TESTS / directory).rglob("test_*.*"))):
        if path.suffix in (".c", ".py"):
            directory = path.relative_to(TESTS).parts[0]
            found.setdefault((directory, path.stem.removeprefix("test_")), set()).update(names_in(path))
    for path in FUZZ.glob("fuzz_*.c"):
        name = path.stem.removeprefix("fuzz_")
        found["fuzz", name] = {f"corpus_{name}"} if any((FUZZ / "corpus" / name).glob("*")) else set()
    return found


def exists(name, tests):
    stem = name.rstrip("…")
    return any(test.startswith(stem) for test in tests) if name != stem else name in tests


def check_cell(cell, directory, tests):
    """Yield the names of a cell that do not exist in the suites it names."""
    marks = [(match.start(), match) for match in (*SUITE.finditer(cell), *NAME.finditer(cell))]
    here = None
    for _, match in sorted(marks, key=lambda mark: mark[0]):
        if match.re is SUITE:
            where = match.group(1) or directory
            here = [(where, suite) for suite in match.group(2).split(", ")]
        elif here is None:
            yield f"{match.group(1)}: no suite is named before it"
        elif not exists(match.group(1), set().union(*(tests.get(suite, set()) for suite in here))):
            yield f"{match.group(1)} is not in {' or '.join('/'.join(suite) for suite in here)}"


def check(path, directory, tests, in_each_row=False):
    """The number of names, and what is wrong; in_each_row: each row of the table below its heading must have one."""
    count, wrong, rows = 0, [], 0
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if line.startswith("|"):
            cell = line.strip("| ").rsplit(" | ", 1)[-1]
            rows += 1
            if in_each_row and rows > 2 and not NAME.search(cell):
                wrong.append(f"{path}:{number}: the row names no test")
            count += len(NAME.findall(cell))
            wrong += [f"{path}:{number}: {text}" for text in check_cell(cell, directory, tests)]
    return count, wrong


def main():
    tests = defined()
    results = [check("tests/README.md", "conformance", tests), check("tests/PROBING.md", "python", tests),
               check("tests/DIFFERENCES.md", "conformance", tests), check("SECURITY.md", "python", tests, in_each_row=True)]
    wrong = [text for _, texts in results for text in texts]
    print(f"named tests       {sum(count for count, _ in results)} of them, {len(wrong)} that do not exist")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or not all(count for count, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
