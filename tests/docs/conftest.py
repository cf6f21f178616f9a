"""Counts the blocks that ran, and prints the reasons of those that did not; prints the shares of docstrings."""

import collections

import pytest

REPORTS = []
SHARES = {}


@pytest.fixture
def report():
    """Called for each block with its page, backend, line and what was done."""
    return lambda *what: REPORTS.append(what)


@pytest.fixture
def shares():
    """Called with a group of callables, and {section: (how many have it, how many need it)}."""
    return SHARES.__setitem__


def pytest_terminal_summary(terminalreporter):
    write = terminalreporter.write_line
    for group, counts in SHARES.items():
        write(f"callables of {group}: " + ", ".join(f"{name} {there}/{needed}" for name, (there, needed) in counts.items()))
    if not REPORTS:
        return
    counts = collections.Counter(done.partition(":")[0] for *_, done in REPORTS)
    pages = len({page for page, *_ in REPORTS})
    write(f"{pages} pages: " + ", ".join(f"{number} blocks {what}" for what, number in counts.most_common()))
    for page, backend, line, done in REPORTS:
        if done.startswith("not run"):
            write(f"  {page}:{line} on {backend} {done}")
