"""The diagrams are those that their script draws, and every one is shown."""

import importlib.util
import re
from xml.etree import ElementTree

import pytest
from blocks import ROOT

DIRECTORY = ROOT / "docs/diagrams"
spec = importlib.util.spec_from_file_location("draw", DIRECTORY / "draw.py")
draw = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw)
LINKS = {path: re.findall(r"!\[[^\]]+\]\(([^)]+\.svg)\)", path.read_text()) for path in (ROOT / "docs").rglob("*.md")}


@pytest.mark.parametrize("name", ["top.svg", "top-h200.svg"])
def test_a_picture_of_top_has_every_vendor_and_needs_no_other_site(name):
    text = (ROOT / "docs/static" / name).read_text()
    ElementTree.fromstring(text)
    shown = re.sub(r"&#160;", " ", "".join(re.findall(r"<text[^>]*>([^<]*)</text>", text)))
    assert all(f"{backend}:0" in shown for backend in ("cuda", "hip", "ze", "host")) and "url(" not in re.sub(r"url\(#", "", text)


def test_each_file_is_drawn_by_the_script():
    assert sorted(path.stem for path in DIRECTORY.glob("*.svg")) == sorted(draw.DIAGRAMS)


@pytest.mark.parametrize("name", draw.DIAGRAMS)
def test_a_diagram_is_the_one_that_the_script_draws(name):
    text = (DIRECTORY / f"{name}.svg").read_text()
    assert text == draw.DIAGRAMS[name]().svg()  # if not: python docs/diagrams/draw.py
    assert ElementTree.fromstring(text).tag.endswith("svg")


def test_each_diagram_is_shown_with_words_for_those_who_cannot_see_it():
    shown = {(path.parent / link).resolve() for path, links in LINKS.items() for link in links}
    assert {path.stem for path in shown if path.parent == DIRECTORY} == set(draw.DIAGRAMS)


def test_each_picture_that_a_page_shows_exists():
    assert [link for path, links in LINKS.items() for link in links if not (path.parent / link).exists()] == []
