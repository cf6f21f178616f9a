"""Every code block of README.md, docs/ and the examples runs, and prints what its page shows."""

from pathlib import Path

import pytest
from blocks import ROOT, RUN, Wrong, read, run_page

# tests/ and bench/ describe programs that `make test` and `make bench` run anyway.
PATHS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]
PAGES = [page for page in map(read, PATHS) if any(block.language in RUN for block in page.blocks)]
CASES = [pytest.param(page, backend, id=f"{page.path.relative_to(ROOT)}-{backend}") for page in PAGES for backend in page.backends]


@pytest.mark.parametrize("page, backend", CASES)
def test_blocks_run_and_print_what_the_page_shows(page, backend, tmp_path, report):
    if backend == "cuda" and not Path("/dev/nvidia0").exists():
        pytest.skip("there is no NVIDIA GPU")
    name = str(page.path.relative_to(ROOT))
    try:
        run_page(page, backend, tmp_path, lambda block, done: report(name, backend, block.line, done))
    except Wrong as wrong:
        pytest.fail(str(wrong), pytrace=False)


# ---- the runner itself --------------------------------------------------------------------------------------


def run(text, tmp_path):
    """What was done with each block of a page."""
    done = []
    run_page(read(Path("page.md"), text), "host", tmp_path, lambda block, what: done.append(what))
    return done


def test_blocks_of_a_page_share_variables_and_the_directory(tmp_path):
    page = "```python\nx = 1\n```\n```sh\necho 2 >file\n```\n```python\nprint(x, open('file').read())\n```\n```output\n1 2\n```\n"
    assert run(page, tmp_path) == ["run"] * 3


def test_a_block_with_a_file_name_is_written_and_not_run(tmp_path):
    assert run("```python\n# use.py\nprint(3)\n```\n```console\n$ python use.py\n3\n```\n", tmp_path) == ["written", "run"]


def test_a_script_may_begin_with_its_interpreter_before_its_name(tmp_path):
    """The kernel, and sbatch, want `#!` in the first line."""
    page = "```sh\n#!/bin/sh\n# job.sh\nexit 3\n```\n```console\n$ head -n 1 job.sh\n#!/bin/sh\n```\n"
    assert run(page, tmp_path) == ["written", "run"]


@pytest.mark.parametrize("page", [
    "```python\nprint(1)\n```\n```output\n2\n```\n",
    "```python\nprint(1)\n```\n",
    "```python\nraise ValueError('no')\n```\n",
    "```python\nimport os; os._exit(3)\n```\n",
    "```sh\nfalse\necho\n```\n",
    "```console\n$ echo 1\n2\n```\n",
    "```console\n$ echo 1\n```\n",
])  # fmt: skip
def test_a_block_that_fails_or_prints_something_else_is_an_error(page, tmp_path):
    with pytest.raises(Wrong):
        run(page, tmp_path)


def test_an_exception_that_the_page_shows_is_expected(tmp_path):
    assert run("```python\nint('x')\n```\n```output\nValueError: invalid literal ... 'x'\n```\n", tmp_path) == ["run"]


def test_a_block_that_is_not_run_has_a_reason(tmp_path):
    page = ("<!-- not run: needs a cluster -->\n```sh\nfalse\n```\n<!-- needs: no_such_program -->\n```sh\nfalse\n```\n"
            "<!-- only: cuda-sim, two devices -->\n```python\n1/0\n```\n")
    assert run(page, tmp_path) == ["not run: needs a cluster", "not run: no_such_program is not installed here",
                                   "not run: only on cuda-sim, two devices"]


def test_code_before_a_block_can_be_left_out_of_the_page(tmp_path):
    assert run("<!-- before: python\nx = 5\n-->\n```python\nprint(x)\n```\n```output\n5\n```\n", tmp_path) == ["run", "run"]
