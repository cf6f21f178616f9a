"""What tests/programs/run.py makes of programs' output, and the table that it writes."""

import importlib.util
import sys

import pytest
from blocks import ROOT

specification = importlib.util.spec_from_file_location("programs_run", ROOT / "tests/programs/run.py")
run = importlib.util.module_from_spec(specification)
sys.modules["programs_run"] = run
specification.loader.exec_module(run)

PAGE = """# Programs

| program | source | host | cuda |
|---|---|---|---|
| `demo.py` | PyCUDA, examples | ok, 1.0 s |  |

Text below.
"""


@pytest.mark.parametrize("name, status, text, expected", [
    ("demo.py", 0, "", "ok"),
    ("game_of_life.py", None, "100 live cells after 10 iterations\n", "ok"),
    ("demo.py", None, "100 live cells after 10 iterations\n", "not in 60 s"),
    ("a.py", 1, "ModuleNotFoundError: No module named 'pyfft'\n", "needs the package pyfft"),
    ("rotate.py", 1, "error: 'texture' does not name a type\n", "uses texture references, which CUDA 12 has not"),
    ("demo.py", 1, "error: 'texture' does not name a type\n", "FAILED: error: 'texture' does not name a type"),
    ("demo.py", 1, "a | b\n", "FAILED: a / b"), ("demo.py", -11, "", "FAILED: no output")])
def test_a_result_is_ok_or_a_known_reason_or_a_failure(name, status, text, expected):
    assert run.verdict(name, status, text, 60) == expected


def test_tests_are_counted_by_how_they_ended(tmp_path):
    report = tmp_path / "report.xml"
    assert run.counted(report)["failed"] == ["the whole file"]
    report.write_text("""<testsuites><testsuite><testcase name="a"/><testcase name="b"><failure/></testcase><testcase name="c"><error/></testcase>
        <testcase name="d"><skipped type="pytest.skip"/></testcase><testcase name="e"><skipped type="pytest.xfail"/></testcase>
        </testsuite></testsuites>""")
    assert run.counted(report) == {"passed": ["a"], "failed": ["b", "c"], "skipped": ["d"], "xfailed": ["e"]}


def test_results_replace_a_column_and_add_rows_of_new_programs():
    results = [run.Result("demo.py", "PyCUDA, examples", "default", "ok", 2.04), run.Result("new.py", "PyCUDA, doc", "default", "needs tea", 1)]
    lines = run.written(PAGE, "cuda", results).splitlines()
    assert lines[4:] == ["| `demo.py` | PyCUDA, examples | ok, 1.0 s | ok, 2.0 s |", "| `new.py` | PyCUDA, doc |  | needs tea |", "", "Text below."]


def test_the_code_of_a_page_is_that_which_python_compiles(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text("Text::\n\n    import sys\n\n    x = 1\n\nand C::\n\n    int x = 1;\n\nand::\n\n  y = 2\n")
    assert run.code_of(page).split() == ["import", "sys", "x", "=", "1", "y", "=", "2"]
