"""docs/adding-an-operation.md, followed in a copy of the tree: the copy builds exactly when the page says so, and the operation works."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# The file, what the text is inserted behind (None: at the end), the text.
CONTRACT = ("core/include/gpuglue/backend.h", r"(?<=struct gg_backend_ops \{)(?s:.*?)\n(?=\};)", "\n    /** Store twice the value. */\n    gg_status (*stream_twice)(struct gg_stream_impl *stream, uint64_t value, uint64_t *out);")
LIST = ("core/include/gpuglue/ops.def", None, "OP(stream_twice, GG_OPTIONAL)\n")
PUBLIC = ("core/include/gpuglue/stream.h", "(?=\nGG_END_DECLS)", "\nGG_API gg_status gg_stream_twice(gg_stream *stream, uint64_t value, uint64_t *out);\n")
CORE = ("core/runtime/stream.c", None, """
gg_status gg_stream_twice(gg_stream *stream, uint64_t value, uint64_t *out)
{
    struct gg_device *device = stream->device;
    gg_status status = ggi_stream_check(stream);
    if (status)
        return status;
    return GGI_CALL_OPTIONAL(device, stream_twice, stream, 0, (stream->impl, value, out));
}
""")  # fmt: skip
FUNCTION = "\ngg_status {}_stream_twice(struct gg_stream_impl *stream, uint64_t value, uint64_t *out)\n{{\n    (void)stream;\n{}}}\n"
HOST = ("backends/host/stream.c", None, FUNCTION.format("host", "    *out = 2 * value;\n    return GG_OK;\n"))
CUDA_HIP = ("backends/cuda_hip/stream.c", None, FUNCTION.format("cuhip", "    (void)value;\n    (void)out;\n    return GG_ERR_UNSUPPORTED;\n"))
LEVEL_ZERO = ("backends/ze/ze.c", "(?=#define ze_device_record NULL)", "#define ze_stream_twice NULL\n")
PROGRAM = """
#include <gpuglue/gpuglue.h>
#include <stdio.h>
int main(void)
{
    gg_device *device;
    gg_stream *stream;
    uint64_t out = 0;
    gg_status status = gg_current_device(&device);
    status = status ? status : gg_stream_create(device, 0, 0, &stream);
    status = status ? status : gg_stream_twice(stream, 21, &out);
    printf("%s %d\\n", gg_status_name(status), (int)out);
}
"""


def apply(tree, step):
    """Insert the text of the step."""
    name, mark, text = step
    path = tree / name
    before = path.read_text()
    position = re.search(mark, before).end() if mark else len(before)
    path.write_text(before[:position] + text + before[position:])


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The parts of the tree that the C library is built from, configured."""
    tree = tmp_path_factory.mktemp("tree")
    for name in "core", "backends", "meson.build", "meson.options", "LICENSE":
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    command = ["meson", "setup", "-Dpython=false", "-Doptimization=0", "-Ddebug=false", "build"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return tree


def build(tree):
    """What could not be built, and why."""
    done = subprocess.run(["ninja", "-C", "build", "-k", "0"], cwd=tree, capture_output=True, text=True)
    return sorted(set(re.findall(r"undefined reference to `(\w+)'|'(\w+)' undeclared|error: (.*)", done.stdout))) if done.returncode else []


def test_the_steps_of_the_page_lead_to_a_tree_that_builds_and_an_operation_that_works(tree, tmp_path):
    page = (ROOT / "docs/adding-an-operation.md").read_text()
    assert "Between steps 2 and 8 the tree does not build" in page
    missing = lambda: {name for found in build(tree) for name in found if name.endswith("_stream_twice")}
    for step in CONTRACT, LIST, PUBLIC:  # the headers before the first build, since each of them makes most files compile again
        apply(tree, step)
    assert missing() == {"host_stream_twice", "cuhip_stream_twice", "ze_stream_twice"}
    for step in CORE, HOST:
        apply(tree, step)
    assert missing() == {"cuhip_stream_twice", "ze_stream_twice"}
    apply(tree, CUDA_HIP)
    assert missing() == {"ze_stream_twice"}
    apply(tree, LEVEL_ZERO)
    assert build(tree) == []

    (tmp_path / "program.c").write_text(PROGRAM)
    command = ["cc", "-I", str(tree / "core/include"), "program.c", "-o", "program", "-L", str(tree / "build"), "-lgpuglue", f"-Wl,-rpath,{tree / 'build'}"]
    subprocess.run(command, cwd=tmp_path, check=True)
    run = subprocess.run(["./program"], cwd=tmp_path, env={"GPUGLUE_BACKEND": "host"}, capture_output=True, text=True)
    assert run.stdout == "OK 42\n", run.stderr
