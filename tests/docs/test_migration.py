"""docs/migration.md: what its left columns name is also answered by gpuglue, which has the name or raises an error that names ours.
The table of communicators has methods of several packages' communicators."""

import re

import gpuglue as gg
import pytest
from blocks import ROOT

TEXT = (ROOT / "docs/migration.md").read_text().partition("\n## torch.distributed")[0]
ROWS = [line.split("|")[1:3] for line in TEXT.splitlines() if re.match(r"\| [^-]*`", line)]
PREFIXES = {  # of the documents: an object of ours
    "ctx": "device", "device": "device", "s": "stream", "q": "stream", "e": "event", "e1": "event", "e2": "event", "g": "array", "c": "array",
    "m": "buffer", "buffer": "buffer", "pool": "pool", "f": "kernel", "Device": gg.Device, "cuda.Device": gg.Device, "Stream": gg.Stream,
}  # fmt: skip
PACKAGES = re.compile(r"(?:pycuda|cuda|gpuarray|cupy|cupyx|dpctl|PyGPU|runtime|memory|tensor|program|nccl)\.(?=\w)")
CALL = re.compile(r"([A-Za-z]\w*)(?:\.(\w+))?(?=[(,.`]|$)")


def names():
    """Pairs of an object of ours and the name that another library has for it, from all rows but those of what is not available."""
    for left, right in ROWS:
        if "not available" in right:
            continue
        for span in re.findall("`([^`]+)`", left):
            prefix, dot, rest = span.partition(".")
            if span.startswith("cuda.Device."):
                prefix, rest = "cuda.Device", span.removeprefix("cuda.Device.")
            if dot and prefix in PREFIXES:
                yield PREFIXES[prefix], re.match(r"\w+", rest)[0]
            elif found := CALL.match(re.sub(PACKAGES, "", span)):
                yield gg, found[1]


# Not names: variables of the environment, calls and operators of the documents' own objects, keywords of Python.
NOT_NAMES = {"with", "f", "kernel", "e2", "ONEAPI_DEVICE_SELECTOR", "ObjectCode", "SyclEvent", "graph"}
NAMES = sorted({(one if isinstance(one, str) else one.__name__, name): (one, name) for one, name in names() if name not in NOT_NAMES}.values(), key=str)


@pytest.fixture(scope="module")
def objects():
    device = gg.Device()
    kernel = gg.Module(gg.compile('extern "C" __global__ void f(float *x) { x[0] = 1; }'), device)["f"]
    return {"device": device, "stream": gg.Stream(device), "event": gg.Event(device), "array": gg.zeros(2, device=device), "buffer": gg.alloc(4, device),
            "pool": device.pool, "kernel": kernel}  # fmt: skip


def test_the_tables_have_names():
    assert len(ROWS) > 80 and len(NAMES) > 100


@pytest.mark.parametrize("one, name", NAMES)
def test_a_name_of_the_left_columns_is_ours_too_or_names_ours(one, name, objects):
    one = objects.get(one, one) if isinstance(one, str) else one
    try:
        value = getattr(one, name)
        if getattr(value, "__doc__", "") == "Of other libraries: not an attribute.":
            value()
    except AttributeError as error:
        assert re.search(f"has no attribute '{name}': use ", str(error))
