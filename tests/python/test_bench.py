"""bench/verdict.py: a target is reached or missed only where the rounds agree."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
if not BENCH.is_dir():
    pytest.skip("the source tree is not there", allow_module_level=True)
sys.path.insert(0, str(BENCH))

import verdict  # noqa: E402

BELOW, ABOVE = [-3, -2, -1] * 10, [1, 2, 3] * 10
MIXED = [-4, 5] * 15


def test_rounds_that_agree_decide_and_others_are_too_noisy():
    assert verdict.verdict(BELOW) == verdict.OK
    assert verdict.verdict(ABOVE) == verdict.MISSED
    assert verdict.verdict(MIXED) == verdict.NOISY


def test_a_few_outliers_do_not_change_the_result():
    assert verdict.verdict(BELOW + [1e6, 1e6]) == verdict.OK
    assert verdict.verdict(ABOVE + [-1e6, -1e6]) == verdict.MISSED


def test_too_few_rounds_decide_nothing():
    assert verdict.interval([]) is None
    assert verdict.verdict([-1] * 7) == verdict.NOISY
    assert verdict.verdict([-1] * 8) == verdict.OK


def test_a_miss_counts_only_if_every_run_shows_it():
    assert verdict.judge([ABOVE, ABOVE, ABOVE]) == verdict.MISSED
    assert verdict.judge([ABOVE, ABOVE, MIXED]) == verdict.NOISY
    assert verdict.judge([MIXED, BELOW, BELOW]) == verdict.OK


def test_the_figure_of_a_round_is_the_median_of_its_bursts():
    assert verdict.rounds_of([1, 2, 900, 4, 5, 6], 3) == [2, 5]


def test_a_slow_period_of_the_machine_misses_no_target():
    """In a third of the rounds both sides take twice as long."""
    slow = [1, 1, 2] * 20
    excesses = [105 * speed - 1.1 * 100 * speed for speed in slow]
    assert verdict.verdict(excesses) == verdict.OK


def test_the_summary_counts_each_result():
    line = verdict.summary([verdict.OK, verdict.OK, verdict.MISSED, None])
    assert line == "3 targets: 2 reached, 1 missed"
    assert "1 too noisy to say" in verdict.summary([verdict.NOISY])


# ---- traces of allocations, and the tables of docs/performance.md ----

import json  # noqa: E402

import report  # noqa: E402
import traces  # noqa: E402


@pytest.mark.parametrize("make", traces.TRACES.values(), ids=traces.TRACES)
def test_a_trace_releases_only_blocks_in_use_and_is_the_same_each_time(make):
    live, trace = set(), make(3)
    assert trace == make(3) != make(4)
    for number, nbytes in trace:
        assert (number in live) == (nbytes == 0)
        live ^= {number}


def test_a_random_trace_stays_within_its_sizes_and_its_number_of_blocks():
    live, most = set(), 0
    for number, nbytes in traces.random_trace(1, live=100, steps=3000):
        assert nbytes == 0 or traces.SMALLEST <= nbytes <= traces.LARGEST
        live ^= {number}
        most = max(most, len(live))
    assert most == 100


def test_the_tables_of_the_performance_page_are_those_of_its_figures():
    assert report.MARKED.findall(report.PAGE.read_text())
    assert report.main(["--check"]) == 0


def test_a_table_has_the_figures_of_its_json_and_a_changed_one_is_noticed():
    figures = {"scale": {"machine": "A machine.", "figures": {
        "1 threads": {"mean": 100.4, "median": 90, "p999": 300, "worst": 5000, "result": "ok"}}}}
    text = "before\n<!-- table: scale -->\nold\n<!-- end of table -->\nafter"
    made = report.page(text, json.loads(json.dumps(figures)))
    assert "| 1 threads | 100 | 90 | 300 | 5000 | ok |" in made and "A machine." in made and "old" not in made
    assert made.startswith("before\n") and made.endswith("\nafter")
    assert report.page(made, figures) == made


def test_a_table_without_figures_stays_as_it_is():
    text = "<!-- table: host -->\nold\n<!-- end of table -->"
    assert report.page(text, {}) == text
