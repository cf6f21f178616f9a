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
