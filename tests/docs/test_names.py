"""The names of gpuglue that documents mention exist."""

import functools
import re

import gpuglue as gg
import gpuglue.dask
import gpuglue.mpi
import gpuglue.ray
import pytest
from test_blocks import PATHS
from blocks import ROOT

# What a page calls an object, by convention: `g.get()` is a method of GPUArray.
OBJECTS = {
    "gg": gg, "gpuglue": gg, "g": gg.GPUArray, "s": gg.Stream, "e": gg.Event, "device": gg.Device, "pool": gg.Pool,
    **{name: getattr(gg, name) for name in ("GPUArray", "Stream", "Event", "Device", "Buffer", "Module", "Kernel", "Pool")},
}  # fmt: skip
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"(?<![\w./\"'-])(" + "|".join(OBJECTS) + r")((?:\.[A-Za-z_]\w*)+)")
# Names in the tables' columns of other packages, and files.
OTHERS = dict.fromkeys(("migration.md", "compat-names.md", "pycuda-names.md"), re.compile(r"^\| .*? \| ", re.M))
NOT_NAMES = re.compile(r"gpuglue\.(h|hpp|backends|compat|so|pc)\b")


def mentioned(path):
    """(dotted name, object) for each name in the inline code of a page."""
    text = path.read_text()
    if path.name in OTHERS:
        text = OTHERS[path.name].sub("", text)
    for code in CODE.findall(text):
        for match in NAME.finditer(code):
            if not NOT_NAMES.match(match.group()):
                yield match.group(), OBJECTS[match[1]], match[2][1:].split(".")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_that_a_page_mentions_exist(path):
    missing = []
    for name, start, attributes in mentioned(path):
        try:
            first = getattr(start, attributes[0])
            # The type of a property's value is not known here.
            functools.reduce(getattr, attributes[1:], first) if isinstance(first, type) else None
        except AttributeError:
            missing.append(name)
    assert not missing


def in_the_reference(module):
    """Names that docs/reference/python.md documents as those of a module."""
    parts = re.split(r"^\.\. currentmodule:: ([\w.]+)$", (ROOT / "docs/reference/python.md").read_text(), flags=re.M)
    texts = [text for name, text in zip(parts[1::2], parts[2::2]) if name == module]
    return {name for text in texts for name in re.findall(r"^\.\. auto\w+:: (\w+)$", text, re.M)}


def test_every_public_name_is_in_the_reference():
    public = {name for name in dir(gg) if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(gg, name), type(gg))}
    assert public - modules == in_the_reference("gpuglue")
    for module in (gpuglue.dask, gpuglue.mpi, gpuglue.ray):
        assert set(module.__all__) == in_the_reference(module.__name__)
