"""A Markdown table of what passed, by suite and run:    suites.py [RUN=]PATH …

A PATH is the output of tests/conformance, results.txt of tests/model/hip/run.py, a report of pytest (--junit-xml=…), or a
directory of such .txt, .log and .xml files. Meson's testlog.json needs no RUN: it has that of each test conformance-<run>
or conformance-<run>-core, which has the other suites of the same run.
A run may be given several times. A cell has the number of passed tests, and of skipped and failed ones if there are any.
Below the table are the reasons of the skipped tests, and each failure. The exit status is 1 if there is a failure."""

import collections
import json
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

RESULT = re.compile(r"^(ok|skipped|FAILED) +[\d.]+ s  (\w+)/(\w+)(?:: (.*))?$", re.M)


def of_conformance(text):
    """(suite, verdict, test, reason) of each test."""
    for verdict, suite, test, reason in RESULT.findall(text):
        yield suite, {"ok": "passed", "FAILED": "failed"}.get(verdict, verdict), test, reason


def of_pytest(path):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        children = {child.tag: child.get("message", "") for child in case}
        verdict = "failed" if children.keys() & {"failure", "error"} else "skipped" if "skipped" in children else "passed"
        reason = next((children[tag] for tag in ("failure", "error", "skipped") if tag in children), "")
        yield case.get("classname").split(".")[-1], verdict, case.get("name"), reason


def results(path):
    if path.is_dir():
        for each in sorted(path.iterdir()):
            if each.suffix in (".txt", ".log", ".xml"):
                yield from results(each)
    else:
        yield from of_pytest(path) if path.suffix == ".xml" else of_conformance(path.read_text(errors="replace"))


def shorten(reason):
    """A reason without what differs between two runs of one test."""
    return re.sub(r"0x[0-9a-f]+|/\S+/", "…", reason.splitlines()[0] if reason else "no reason").replace("|", "\\|")[:160]


def of_meson(path):
    """(run, results) of each run of the conformance suites."""
    for line in path.read_text().splitlines():
        test = json.loads(line)
        _, found, run = test["name"].partition("conformance-")
        if found:
            tests = list(of_conformance(test.get("stdout", "")))
            if test["result"] not in ("OK", "SKIP") and not any(verdict == "failed" for _, verdict, _, _ in tests):
                tests.append(("the run", "failed", "its end", test["result"]))
            yield run.removesuffix("-core"), tests


def read(arguments):
    """{run: {suite: {verdict: {test: reason}}}}"""
    found = {}
    for argument in arguments:
        run, given, path = argument.partition("=")
        for name, tests in [(run, results(Path(path)))] if given else of_meson(Path(argument)):
            suites = found.setdefault(name, {})
            for suite, verdict, test, reason in tests:
                suites.setdefault(suite, collections.defaultdict(dict))[verdict][test] = shorten(reason)
    return found


def cell(counts):
    if not counts:
        return "–"
    words = [str(counts["passed"])]
    words += [f"{counts[verdict]} {verdict}" for verdict in ("skipped", "failed") if counts[verdict]]
    return ", ".join(words)


def count(suites, names):
    return collections.Counter({verdict: sum(len(suites[name][verdict]) for name in names if name in suites)
                                for verdict in ("passed", "skipped", "failed")} if any(name in suites for name in names) else {})


def print_table(found):
    names = sorted({name for suites in found.values() for name in suites})
    print("| suite |", " | ".join(found), "|")
    print("|---|" + "---:|" * len(found))
    for title, group in [*((name, [name]) for name in names), ("**all**", names)]:
        print(f"| {title} |", " | ".join(cell(count(suites, group)) for suites in found.values()), "|")


def print_reasons(found):
    print("\nSkipped:\n")
    reasons = collections.defaultdict(collections.Counter)
    for run, suites in found.items():
        for verdicts in suites.values():
            for reason in verdicts["skipped"].values():
                reasons[reason][run] += 1
    for reason, runs in sorted(reasons.items(), key=lambda item: -item[1].total()):
        print(f"- {reason}: {', '.join(f'{run} {number}' for run, number in runs.items())}")


def print_failures(found):
    failures = [f"- {run}: {suite}/{test}: {reason}" for run, suites in found.items() for suite, verdicts in suites.items()
                for test, reason in verdicts["failed"].items()]
    print("\nFailed:\n", *(failures or ["- none"]), sep="\n")
    return bool(failures)


def main(arguments):
    if not arguments or any("=" not in argument and not argument.endswith(".json") for argument in arguments):
        sys.exit(__doc__)
    found = read(arguments)
    print_table(found)
    print_reasons(found)
    return int(print_failures(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
