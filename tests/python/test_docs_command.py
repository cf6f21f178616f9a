"""gpuglue docs: the pages and examples in the installed package."""

import json
import re
from pathlib import Path

import pytest
from conftest import run_python, succeeds

# Pages about changing gpuglue, which scripts/documents.py leaves with the sources.
WITH_THE_SOURCES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "docs/adding-a-backend.md",
                    "docs/adding-an-operation.md", "docs/architecture.md",
                    "docs/contributing/index.md", "docs/howto/index.md", "docs/index.md", "docs/performance.md",
                    "docs/reference/free-threading.md", "docs/reference/index.md",
                    "docs/reference/python.md", "docs/reference/slots.md", "docs/testing.md", "docs/reference/c/")


def docs(*options, **arguments):
    return run_python(None, arguments=("-m", "gpuglue", "docs", *options), **arguments)


def test_the_list_names_every_page_with_its_title():
    text = succeeds(docs())
    found = json.loads(succeeds(docs("--json")))
    assert found["directory"] in text and len(found["pages"]) > 35
    assert all(re.search(rf"^{row['name']}  +{re.escape(row['title'])}$", text, re.M) for row in found["pages"])
    assert all(Path(row["path"]).is_file() for row in found["pages"])


@pytest.mark.parametrize("name, title", [("explanation", "Explanation"), ("reference/c", "C reference"), ("c", "C reference")])
def test_a_page_that_introduces_others_has_the_name_of_its_directory(name, title):
    assert succeeds(docs(name)).startswith(f"# {title}\n")


@pytest.mark.parametrize("name", ["howto/mpi", "mpi", "docs/howto/mpi.md", "MPI"])
def test_a_page_is_printed_by_its_name_or_the_last_part_of_it(name):
    text = succeeds(docs(name))
    assert text.startswith("# MPI") and "<!--" not in text and text.strip() in re.sub(
        r"^ *<!--.*?-->\n?", "", Path(succeeds(docs("--path", name)).strip()).read_text(), flags=re.S | re.M)


@pytest.mark.parametrize("name, hint", [("tutorail", "did you mean tutorial?"), ("no such thing", "`gpuglue docs` lists all pages")])
def test_an_unknown_page_is_an_error_that_names_the_nearest(name, hint):
    result = docs(name)
    assert result.returncode == 2 and f"there is no page '{name}': {hint}" in result.stderr and not result.stdout


def test_a_search_prints_the_lines_of_all_pages_and_finding_nothing_is_status_1():
    assert "howto/mpi: " in succeeds(docs("--search", "gpu-aware"))
    assert set(re.findall(r"^[\w/-]+(?=: )", succeeds(docs("--search", "GPU", "tutorial")), re.M)) == {"tutorial"}
    nothing = docs("--search", "a text in no page at all")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (1, "", "")


def test_the_examples_are_copied_to_a_new_directory_and_run(tmp_path):
    succeeds(docs("--examples", str(tmp_path / "new/examples")))
    assert (tmp_path / "new/examples/existing_library/README.md").is_file()
    succeeds(run_python(None, arguments=(str(tmp_path / "new/examples/roundtrip.py"),)))
    again = docs("--examples", str(tmp_path / "new/examples"))
    assert again.returncode == 2 and "examples exists: expected a directory that can be created" in again.stderr


def test_links_between_the_installed_pages_lead_to_files():
    directory = Path(json.loads(succeeds(docs("--json")))["directory"])
    for page in [*directory.glob("docs/howto/*.md"), directory / "README.md", directory / "docs/tutorial.md"]:
        for target in re.findall(r"\]\(([^):#]+\.md)", page.read_text()):
            inside = (page.parent / target).resolve().relative_to(directory.resolve())
            assert (directory / inside).is_file() or inside.as_posix().startswith(WITH_THE_SOURCES), f"{page}: {target}"
