"""The comments of the public headers are complete, and each header has a page whose example uses all its functions."""

import re

import pytest
from blocks import ROOT, read

HEADERS = {path.name: path.read_text() for path in sorted((ROOT / "core/include/gpuglue").glob("*.h"))}
PAGES = {path: path.read_text() for path in sorted((ROOT / "docs/reference/c").glob("*.md"))}
FUNCTION = re.compile(r"(?P<comment>/\*\*(?:(?!\*/).)*\*/\n)?(?:GG_API|static inline) (?P<type>[\w ]+?[ *]+)(?P<name>gg_\w+)\((?P<parameters>[^;{}]*)\)(?:;|\n{)", re.S)
FUNCTIONS = [(header, match) for header, text in HEADERS.items() for match in FUNCTION.finditer(text)]
BY_NAME = [pytest.param(header, match, id=match["name"]) for header, match in FUNCTIONS]


def names_of(parameters):
    """The names of parameters: `void (*release)(void *owner), void *owner` has release and owner."""
    callbacks = re.findall(r"\(\*(\w+)\)", parameters)
    plain = re.sub(r"[\w ]+\(\*\w+\)\([^()]*\)", "", parameters)
    return {*callbacks, *re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", plain)} - {"void"}


def page_of(header):
    """The page that has the reference of a header."""
    (page,) = [path for path, text in PAGES.items() if re.search(rf"^```{{doxygenfile}} {header}$", text, re.M)]
    return page


@pytest.mark.parametrize("header, function", BY_NAME)
def test_a_function_has_a_comment_with_each_parameter_and_the_result(header, function):
    comment = function["comment"] or ""
    documented = re.findall(r"@param(?:\[[a-z,]+\])? +(\w+) +\S", comment)
    assert len(documented) == len(set(documented)) and set(documented) == names_of(function["parameters"])
    assert ("@return " in comment) == (function["type"].strip() != "void")


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_describes_ordering_and_threads_and_has_a_page(header):
    assert HEADERS[header].startswith("/** @file\n")
    for paragraph in ("@par Ordering\n", "@par Threads\n"):
        assert HEADERS[header].count(paragraph) == 1
    assert page_of(header)


@pytest.mark.parametrize("header, function", BY_NAME)
def test_a_function_is_used_in_the_example_of_its_page(header, function):
    name, page = function["name"], page_of(header)
    if header == "backend.h":  # a plugin defines the function; the page leads to one
        assert "examples/plugin/README.md" in PAGES[page]
        source = "".join(path.read_text() for path in (ROOT / "examples/plugin/src").glob("*.c"))
    else:
        source = "".join(block.text for block in read(page).blocks if block.language == "c")
    assert re.search(rf"\b{name}\(", source)


@pytest.mark.parametrize("page", [path for path in PAGES if path.name not in ("backend.md",)], ids=lambda path: path.name)
def test_the_example_of_a_page_is_compiled_and_run(page):
    blocks = read(page).blocks
    (source,) = [block for block in blocks if block.language == "c" and re.match(r"// \w+\.c\n", block.text)]
    name = source.text.split()[1].removesuffix(".c")
    assert any(block.language == "console" and f"-o {name} {name}.c " in block.text and f"./{name}\n" in block.text for block in blocks)


def test_the_header_of_the_examples_is_the_one_that_the_first_page_shows():
    shown = [block.text for block in read(ROOT / "docs/reference/c/index.md").blocks if block.text.startswith("/* check.h")]
    assert shown == [(ROOT / "docs/reference/c/examples/check.h").read_text()]


def test_every_exported_function_of_the_headers_is_found():
    """The pattern of this file misses none of the declarations."""
    assert len(FUNCTIONS) == sum(len(re.findall(r"^(?:GG_API|static inline) ", text, re.M)) for text in HEADERS.values()) > 100
