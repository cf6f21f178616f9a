"""The page about the suites on each driver has every suite and column, and is what its script makes of the results."""

import json
import re
import subprocess
import sys

import pytest
from blocks import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import driver_table  # noqa: E402

WIDE = 736  # pixels of the text in a window of 1280, between the two lists
LETTER, PADDING = 7.7, 17  # pixels at the size of letters in tables: at most, and beside each cell


@pytest.fixture(scope="module")
def kept():
    return json.loads(driver_table.KEPT.read_text())


def tables():
    """The cells of each table of the page."""
    blocks = re.findall(r"(?:^\|.*\n)+", driver_table.PAGE.read_text(), re.M)
    return [[[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in block.splitlines() if "---" not in line] for block in blocks]


def test_the_page_is_what_the_script_makes_of_the_results(kept):
    assert driver_table.PAGE.read_text() == driver_table.page(kept)


def test_each_suite_is_a_row_and_each_driver_a_column(kept):
    listed = re.search(r"^suite_names = \[(.*?)\]", (ROOT / "tests/meson.build").read_text(), re.M | re.S)[1]
    assert driver_table.SUITES == sorted(re.findall(r"'(\w+)'", listed))
    host, hip, columns, _ = tables()
    assert host[0][1:] + hip[0][1:] == list(kept) == [row[0] for row in columns[1:]]
    for table in (host, hip):
        assert [row[0] for row in table[1:]] == [*driver_table.SUITES, "**passed**", "**skipped**", "**failed**"]
        assert all(re.fullmatch(r"\d+( \(\d+\))?|–", cell) for row in table[1:] for cell in row[1:])


def test_the_columns_are_the_runs_of_the_makefile(kept):
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^run-{re.escape(run)} = ", makefile, re.M) for run in driver_table.MESON)
    simulated = {run for run in re.findall(r"^run-([\w.-]+-sim[\w.-]*) = ", makefile, re.M)}
    assert simulated <= driver_table.MESON.keys() and set(driver_table.MESON.values()) <= kept.keys()
    assert kept.keys() <= driver_table.COLUMNS.keys()


def test_the_sums_and_the_reasons_are_those_of_the_suites(kept):
    for column, its in kept.items():
        passed, skipped = (sum(each) for each in zip(*its["suites"].values(), strict=True))
        assert passed and skipped == sum(sum(suites.values()) for suites in its["skipped"].values()), column
        tests = {name: sum(counts) for name, counts in its["suites"].items()}
        same = [other for other in kept.values() if other["commit"] == its["commit"]]
        assert all(tests == {name: sum(counts) for name, counts in other["suites"].items()} for other in same), column


def test_the_tables_of_suites_fit_into_the_page():
    """Only lines of several words break. tests/site measures it in a browser."""
    for table in tables()[:2]:
        longest = [max(max(map(len, re.split(r"[ -]", cell))) for cell in column) for column in zip(*table, strict=True)]
        assert sum(letters * LETTER + PADDING for letters in longest) <= WIDE


def test_a_run_with_a_failure_is_not_kept(tmp_path):
    (tmp_path / "one.txt").write_text("ok 0.01 s  event/one\nFAILED 0.01 s  event/two: exit status 1\n")
    command = [sys.executable, ROOT / "scripts/driver_table.py", "keep", "host", "--machine", "none", tmp_path / "one.txt"]
    before = driver_table.KEPT.read_text()
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode and "failed: event/two: exit status 1; no result of the suite between" in result.stderr
    assert driver_table.KEPT.read_text() == before
