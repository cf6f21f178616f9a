"""Links between documents lead to files and headings that exist, by GitHub's rules for anchors."""

import re

import pytest
from blocks import ROOT

SKIPPED = {".git", "build", "dist", "third_party"}
PATHS = sorted(path for path in ROOT.rglob("*.md") if not any(
    part in SKIPPED or part.startswith(".venv") for part in path.relative_to(ROOT).parts))
FENCE = re.compile(r"^ *```.*?^ *```", re.S | re.M)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path):
    """The anchors of a page's headings; a repeated one has a number."""
    seen = {}
    for title in re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = seen[slug] = seen.get(slug, -1) + 1
        yield f"{slug}-{number}" if number else slug


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(path):
    broken = []
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name) if name else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken
