"""bench/verdict.py: a target is reached or missed only where the rounds agree, or the processes."""

import sys
from pathlib import Path
from types import SimpleNamespace

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


# ---- several processes ----

import processes  # noqa: E402
import rows  # noqa: E402
import scale  # noqa: E402
from timing import plans_of  # noqa: E402

ROW = rows.Row("a", "", "a", plus=60)


def parts_of(*excesses, raw=100):
    """One part for each process: three rounds, whose excesses have that median; the first round of each is far off."""
    return [{"sides": {"raw": [raw] * 3, "gpuglue": [raw + 60 + more for more in (1000, excess, excess)]},
             "excesses": [1000, excess, excess]} for excess in excesses]


def test_a_figure_is_the_median_of_the_processes_with_the_worst_and_the_best_of_them():
    found = processes.figures_of(ROW, parts_of(-5, -4, 6))
    assert {key: found["gpuglue"][key] for key in ("median", "worst", "best")} == {"median": 156, "worst": 166, "best": 155}
    assert (found["target"], found["processes"], found["excess"]["median"]) == (160, 3, -4)
    copies = processes.figures_of(rows.BULKS[0], [{"sides": {"raw": [50], "gpuglue": [speed]}, "excesses": []} for speed in (40, 45, 49)])
    assert (copies["gpuglue"]["worst"], copies["gpuglue"]["best"], copies["result"]) == (40, 49, None)


@pytest.mark.parametrize(("excesses", "result"), [
    ([-1] * 8, verdict.OK), ([1] * 8, verdict.MISSED), ([-1] * 7 + [1], verdict.NOISY), ([-1] * 7, verdict.NOISY),
    ([-1] * 14 + [1] * 2, verdict.OK), ([1] * 14 + [-1] * 2, verdict.MISSED), ([1] * 12 + [-1] * 12, verdict.NOISY)])
def test_each_process_counts_once_when_a_target_is_judged(excesses, result):
    assert processes.figures_of(ROW, parts_of(*excesses))["result"] == result


def test_the_runs_of_one_process_are_judged_by_their_rounds():
    runs = [{"sides": {"raw": [100] * 30, "gpuglue": [150] * 30}, "excesses": found} for found in (MIXED, ABOVE)]
    assert processes.figures_of(ROW, runs[1:], alone=True)["result"] == verdict.MISSED
    found = processes.figures_of(ROW, runs, alone=True)
    assert (found["result"], found["runs"]) == (verdict.NOISY, 2) and "processes" not in found


def test_a_row_without_a_target_has_no_result():
    found = processes.figures_of(rows.Row("a", "", "a"), [{"sides": {"raw": [1, 2], "gpuglue": [3, 4]}, "excesses": []}])
    assert found["result"] is None and found["excess"] is None


def test_more_processes_measure_only_the_rows_that_are_too_noisy_to_say_and_all_processes_are_judged(monkeypatch):
    import bench
    asked = []

    def one_more(options, only):
        asked.append(only)
        excess = 5 if len(asked) == 1 else -5
        found = {"own": {"ns": {"event record": parts_of(excess), "event query": parts_of(-5)}}} if only is None else \
            {"own": {"ns": {"event record": parts_of(excess)}}}
        return {"device": len(asked), "tables": found}

    monkeypatch.setattr(bench, "one_more", one_more)
    found = bench.measure_in_processes(SimpleNamespace(quick=False, processes=8, sets=3))
    assert asked == [None] * 8 + [{"own": ["event record"]}] * 8 and found["device"] == 1
    rows_found = found["tables"]["own"]["ns"]
    assert {name: (row["processes"], row["result"]) for name, row in rows_found.items()} == {"event record": (16, "ok"), "event query": (8, "ok")}


def test_a_row_that_stays_noisy_has_three_sets_of_processes(monkeypatch):
    import bench
    turns = iter(range(100))
    monkeypatch.setattr(bench, "one_more", lambda *_: {"tables": {"own": {"ns": {"event record": parts_of(5 if next(turns) % 2 else -5)}}}})
    (row,) = bench.measure_in_processes(SimpleNamespace(quick=False, processes=8, sets=3))["tables"]["own"]["ns"].values()
    assert (row["processes"], row["result"]) == (24, verdict.NOISY)


def test_each_process_makes_its_share_of_the_rounds():
    alone, parts = plans_of(False, 1), plans_of(False, 8)
    for one, part in zip(alone, parts, strict=True):
        assert one.rounds <= 8 * part.rounds < one.rounds + 8 and one.bulk_rounds <= 8 * part.bulk_rounds < one.bulk_rounds + 8


def test_a_new_process_has_the_options_that_were_given():
    options = SimpleNamespace(raw="a.so", device=None, quick=True, nothing_current=False, streams=["own", "legacy"], processes=8, sets=3)
    assert processes.given(options, "processes", "raw", "device", "quick", "nothing-current", "streams") == \
        ["--processes", "8", "--raw", "a.so", "--quick", "--streams", "own", "legacy"]


def test_the_last_line_of_a_new_process_is_its_result(tmp_path):
    program = tmp_path / "a.py"
    program.write_text("import json, os, sys\nprint('words')\nprint(json.dumps([*sys.argv[1:], os.environ['GPUGLUE_LOG']]))")
    assert processes.result_of(program, "--part", "x", GPUGLUE_LOG="info") == ["--part", "x", "info"]


def of_scale(mean, worst, idle=None, at=0, **targets):
    """The figures of a process."""
    return {"mean": mean, "median": mean - 9, "p999": 600, "worst": worst, "worst_at": at, "worst_driver": worst // 2,
            **(targets or {"mean_target": 300, "worst_target": 200000}), **({"idle": {"mean": 60, "worst": idle}} if idle else {})}


def test_the_figures_of_scale_are_medians_and_its_worst_call_is_that_of_one_process():
    found = scale.merged([of_scale(100 + number, 10000 * number, at=number) for number in range(8)])
    assert {key: found[key] for key in ("mean", "mean_worst", "mean_best", "median", "p999")} == \
        {"mean": 103.5, "mean_worst": 107, "mean_best": 100, "median": 94.5, "p999": 600}
    assert {key: found[key] for key in ("worst", "worst_at", "worst_driver", "worst_worst", "worst_best")} == \
        {"worst": 40000, "worst_at": 4, "worst_driver": 20000, "worst_worst": 70000, "worst_best": 0}
    assert (found["processes"], found["result"]) == (8, verdict.OK)


@pytest.mark.parametrize(("each", "result"), [
    ([of_scale(300, 200000)] * 8, verdict.OK),
    ([of_scale(301, 1000, idle=5000)] * 8, verdict.MISSED),
    ([of_scale(100, 200001, idle=5000)] * 8, verdict.MISSED),
    ([of_scale(100, 1000)] * 7 + [of_scale(100, 200001, idle=5000)], verdict.NOISY),
    ([of_scale(100, 900000, idle=800000)] * 4 + [of_scale(100, 900000, idle=5000)] * 4, verdict.NOISY),
    ([of_scale(100, 900000, idle=800000)] * 3 + [of_scale(100, 900000, idle=5000)] * 5, verdict.MISSED),
    ([of_scale(1000, 900000, idle=800000)] * 8, verdict.MISSED),  # threads that do nothing have a long call, but a short mean
    ([of_scale(1999, 900000, mean_target=2000)] * 8, verdict.OK),
    ([of_scale(100, 1000)] * 7, verdict.NOISY)])
def test_a_row_of_scale_is_judged_by_its_processes_and_by_threads_that_do_nothing(each, result):
    assert scale.merged(each)["result"] == result


def test_more_processes_measure_only_the_kinds_of_scale_that_have_a_noisy_row_and_all_processes_are_judged(monkeypatch):
    asked = []

    def run(_, calls, kind, floors):
        asked.append((kind, floors))
        mean = 301 if len(asked) == 1 else 100
        found = {"1 streams": of_scale(mean, 1000, idle=500) | {"kind": "streams"}, "1 threads": of_scale(100, 1000) | {"kind": "threads"}}
        return {row: figures for row, figures in found.items() if kind in ("all", figures["kind"])}

    monkeypatch.setattr(scale, "run", run)
    found = scale.measure(SimpleNamespace(program="", calls=1, kind="all", processes=8, sets=3))
    assert asked == [("all", number % 3 == 0) for number in range(8)] + [("streams", False)] * 8
    assert {row: (figures["processes"], figures["result"]) for row, figures in found.items()} == {"1 streams": (16, "ok"), "1 threads": (8, "ok")}


def test_a_row_of_scale_that_stays_noisy_has_three_sets_of_processes(monkeypatch):
    turns = iter(range(100))
    monkeypatch.setattr(scale, "run", lambda *_: {"1 streams": of_scale(301 if next(turns) % 2 else 100, 1000, idle=500) | {"kind": "streams"}})
    found = scale.measure(SimpleNamespace(program="", calls=1, kind="streams", processes=8, sets=3))
    assert (found["1 streams"]["processes"], found["1 streams"]["result"]) == (24, verdict.NOISY)


def test_a_row_of_scale_without_a_target_has_no_result():
    row = {key: value for key, value in of_scale(100, 1000).items() if "target" not in key}
    assert scale.merged([row] * 3)["result"] == ""


# ---- traces of allocations, and the tables of docs/performance.md ----

import json  # noqa: E402

import pageable  # noqa: E402
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


def pageable_rows(ours, raw, row="1024 KiB, back to back"):
    return {row: {f"{direction} {side}": pageable.summary(values) for direction in ("up", "down")
                  for side, values in (("gpuglue", ours), ("raw", raw))}}


@pytest.mark.parametrize(("row", "ours", "raw", "up", "down"), [
    ("1024 KiB, back to back", 12.5, 10, "ok", "missed"),
    ("16384 KiB, spaced", 42.5, 10, "ok", "ok"),
    ("4 KiB, back to back", 0.96, 1, "ok", "ok"),
    ("4 KiB, back to back", 0.94, 1, "missed", "missed"),
    ("256 MiB, first copy", 10, 7, "missed", None),
    ("256 MiB, first copy", 11, 7, "ok", None),
    ("256 MiB, third on", 43, 7, "ok", None),
    ("256 KiB, back to back", 1, 10, None, None),
])
def test_pageable_copies_are_judged_by_their_targets(row, ours, raw, up, down):
    results = pageable.results_of(pageable_rows([ours] * 8, [raw] * 8, row))
    assert (results.get(row, {}).get("up"), results.get(row, {}).get("down")) == (up, down)


def test_processes_that_disagree_about_a_target_decide_nothing():
    rows = pageable_rows([11] + [13] * 7, [10] * 8)
    assert pageable.results_of(rows)["1024 KiB, back to back"]["up"] == verdict.NOISY


def test_later_copies_that_differ_too_much_between_processes_miss_the_target():
    row = "256 MiB, third on"
    assert pageable.results_of(pageable_rows([43] * 7 + [49], [7] * 8, row))[row]["up"] == verdict.OK
    assert pageable.results_of(pageable_rows([43] * 7 + [50], [7] * 8, row))[row]["up"] == verdict.MISSED
    assert pageable.results_of(pageable_rows([43] * 11 + [41], [7] * 12, row))[row]["up"] == verdict.MISSED  # each process counts


def test_the_table_of_pageable_copies_has_the_results():
    rows = pageable_rows([12.5] * 8, [10] * 8)
    figures = report.of_pageable({"gbps": rows, "results": pageable.results_of(rows)})
    assert "| 1024 KiB, in a row | 10.0 [10.0, 10.0] | 12.5 [12.5, 12.5] |  | ok |" in report.pageable(figures, "up")
    assert "|  | missed |" in report.pageable(figures, "down")


def test_a_table_without_figures_stays_as_it_is():
    text = "<!-- table: host -->\nold\n<!-- end of table -->"
    assert report.page(text, {}) == text


def bench_figures(**sides):
    def row(figures):
        return {side: {"median": value} if isinstance(value, float) else value for side, value in figures.items()}
    return report.of_bench({"streams": {kind: {"ns": {name: row(figures) for name, figures in rows.items()}, "gbps": {}}
                                        for kind, rows in sides.items()}})


def test_the_tables_of_few_columns_have_the_worst_and_the_best_of_several_processes():
    def row(**sides):
        return {name: {"median": middle, "worst": worst, "best": best} for name, (worst, middle, best) in sides.items()} | {"result": "ok"}

    copies = {"D2D": row(raw=(1900.0, 1950.0, 2000.0), gpuglue=(1890.0, 1940.0, 1960.0))}
    records = {"event record": row(**{"cuda.core": (260.0, 241.0, 230.0), "gpuglue": (250.0, 238.0, 229.0)})}

    def made(**more):
        figures = report.of_bench({"streams": {"own": {"ns": {}, "gbps": {"D2D": copies["D2D"] | more}}},
                                   "against cuda.core": {"event record": records["event record"] | more}})
        return report.bulk(figures), report.against(figures)

    several, alone = made(processes=8), made(runs=1)
    assert "| within the device | 1950.0 [1900.0, 2000.0] | 1940.0 [1890.0, 1960.0] | ok |" in several[0]
    assert "| event record | 241 [260, 230] | 238 [250, 229] | ok |" in several[1] and all("median [worst, best]" in text for text in several)
    assert "| within the device | 1950.0 | 1940.0 | ok |" in alone[0] and "| event record | 241 | 238 | ok |" in alone[1]


def test_the_table_of_floors_has_what_each_side_takes_more_than_its_own_baseline():
    figures = bench_figures(own={
        "launch": {"raw": 1000.0, "floor": 1050.0, "gpuglue": 1100.0, "target": 1060, "result": "missed"},
        "launch, 16 arguments": {"raw": 1000.0, "beside": 1200.0, "floor beside": 1060.0, "floor": 1160.0, "gpuglue": 1380.0,
                                 "target": 1450, "result": "ok"}})
    found = report.floors(figures, ("own", "legacy"))
    assert "| launch | own | 1000 | 60 (6 %) | 50 (5 %) |  | 100 (10 %) | missed |" in found
    assert "| launch, 16 arguments | own | 1200 | 250 (21 %) | 100 (9 %) |  | 180 (15 %) | ok |" in found


def test_the_table_of_floors_has_each_call_that_is_missed_on_one_of_its_streams():
    near = {"raw": 100.0, "gpuglue": 150.0, "target": 160, "result": "ok"}
    rows = {"a": near, "b": near, "c": {"raw": 100.0, "gpuglue": 150.0}}
    figures = bench_figures(own=rows, blocking=rows | {"b": near | {"gpuglue": 170.0, "result": "missed"}})
    found = report.floors(figures, ("own", "blocking"))
    assert "| b | blocking | 100 | 60 (60 %) |  |  | 70 (70 %) | missed |" in found
    assert "| b | own |" in found and "| a |" not in found and "| c |" not in found


def test_the_floor_that_asks_the_driver_about_its_source_has_a_column():
    row = {"raw": 1500.0, "floor": 1700.0, "floor, asking": 1900.0, "gpuglue": 2400.0, "target": 2100, "result": "missed"}
    found = report.floors(bench_figures(blocking={"to_gpu of 1 KiB": row}), ("blocking",))
    assert "| to_gpu of 1 KiB | blocking | 1500 | 600 (40 %) | 200 (13 %) | 400 (27 %) | 900 (60 %) | missed |" in found


def test_the_table_of_hip_has_the_results_and_the_shim_where_it_was_measured():
    row = {"raw": 120.0, "gpuglue": 970.0, "target": 240, "result": "missed"}
    assert "| event record | 120 | 970 | 240 | missed |" in report.calls_alone(bench_figures(own={"event record": row}))
    with_shim = report.calls_alone(bench_figures(own={"event record": row | {"shim": 800.0}}))
    assert "| event record | 120 | 800 | 970 | 240 | missed |" in with_shim


def test_a_row_of_scale_has_its_worst_call_and_the_drivers_part_of_it():
    old = {"mean": 100.4, "median": 90, "p999": 300, "worst": 5000, "result": "ok"}
    assert "| 1 threads | 100 | 90 | 300 | 5000 | ok |" in report.scale({"1 threads": old})
    assert "| 1 threads | 100 | 90 | 300 | 5000 | 17 | 4800 | ok |" in report.scale({"1 threads": old | {"worst_at": 17, "worst_driver": 4800}})
    new = old | {"worst_at": 17, "worst_driver": 4800, "worst_worst": 9000, "mean_worst": 120}
    assert "| 1 threads | 100 | 90 | 300 | 5000 | 17 | 4800 | 9000 | ok |" in report.scale({"1 threads": new})


def test_the_first_copies_of_a_process_have_those_of_pinned_memory_of_the_drivers_processes():
    driver = {"up": [5, 9, 7, 6, 8], "down": [5] * 5, "up pinned": [40, 50, 54, 52, 55], "down pinned": [50] * 5}
    rows = pageable.first_rows({"raw": [driver], "gpuglue": [{"up": [20, 30, 45, 44, 46], "down": [20] * 5}]})
    assert {row: sides["up pinned"]["median"] for row, sides in rows.items()} == {"first copy": 40, "third on": 52}
    assert rows["third on"]["up raw"]["median"] == 6 and "up gpuglue pinned" not in rows["first copy"]


def test_without_the_driver_there_are_only_gpuglues_first_copies():
    rows = pageable.first_rows({"raw": [{}], "gpuglue": [{"up": [1] * 5, "down": [2] * 5}]})
    assert rows["first copy"].keys() == {"up gpuglue", "down gpuglue"}


def test_the_table_beside_other_packages_is_of_the_largest_copies():
    sizes = {str(mib): {"H2D": {"raw pageable": 6.0, "gpuglue": 40.0 + mib, "CuPy": 5.0}} for mib in (4, 256, 16)}
    figures = report.of_copies({"sizes": sizes, "strided": {}, "get": [27.0, 19.0, 55.0, 54.0, 56.0]})
    found = report.packages(figures)
    assert "| to the device | 6.0 |  | 296.0 | 5.0 |  |" in found and "GB/s, pageable, 256 MiB" in found
    assert "| `.get()`, the first call with this size |  |  | 27.0 |  |  |" in found
    assert "| `.get()`, from the third call on |  |  | 55.0 |  |  |" in found


def test_the_table_of_graphs_has_how_many_times_longer_the_launches_take():
    times = {"graph, gpuglue": {"call": 2.0, "done": 90.0}, "launches, gpuglue": {"call": 360.0, "done": 378.0}}
    found = report.graphs(report.of_graphs({"length": 100, "us": times, "results": {}}))
    assert "| graph, gpuglue | 2.00 | 90.0 |" in found and "| launches / graph, gpuglue | 180.0 | 4.2 |" in found


def test_the_table_of_samples_has_the_nanoseconds_of_each_part_of_a_call():
    found = {"launch, gpuglue": {"ns": 3600.4, "samples": 5000, "libraries": {"libcuda.so.580.1": 3000.2, "libgpuglue.so": 200, "_core.abi3.so": 90,
                                                                              "gpuglue_cuda.so": 40, "python3.12": 100, "libc.so.6": 150,
                                                                              "linux-vdso.so.1": 10, "?": 10}},
             "launch, floor": {"ns": 3400, "samples": 4900, "libraries": {"libcuda.so.580.1": 3300, "floor.abi3.so": 100}}}
    made = report.sample(report.of_sample({"rows": found}))
    assert "| launch, gpuglue | 3600 | 3000 | 90 | 200 | 40 | 100 | 160 | 10 |" in made
    assert "| launch, C from Python | 3400 | 3300 | 100 | 0 | 0 | 0 | 0 | 0 |" in made


def test_a_target_that_counts_from_no_baseline_is_shown_as_it_is():
    row = {"raw": 63000.0, "gpuglue": 350.0, "target": 300, "result": "missed", "absolute": True}
    assert "| alloc + close, 1 MiB | own |  | 300 in all |  |  | 350 in all | missed |" in report.floors(bench_figures(own={"alloc + close, 1 MiB": row}), ("own",))
