"""Code blocks of a Markdown page, and how they are run.

The blocks of a page run in order, in one fresh directory. A block's language decides:

    python      runs in the page's interpreter, which keeps its variables until the end of the page
    sh          runs in bash, which stops at the first failure
    console     each line that begins with `$ ` is a command; the lines below it are its output
    output      what the block above prints; a python block that prints must have one

A block whose first line is a comment with a file name and nothing else (`// scale.cu`), or whose first two lines are `#!…` and
such a comment, is written to that file. In expected output `...` stands for any text. GPUGLUE_COMM_PORT and MASTER_PORT have a port of the page's own, so that pages may run
at the same time. Comments of HTML give directions:

    <!-- not run: REASON -->            the next block is not run
    <!-- needs: mpi4py, gcc -->         the next block runs if these modules and programs are there
    <!-- only: host, REASON -->         the next block runs on this backend only
    <!-- before: python CODE -->        CODE runs here, and the page does not show it; also `before: sh`
    <!-- backends: host cuda-sim -->    the page runs once on each; without this it runs on host. cuda is a real GPU
    <!-- files: examples/extensions --> the files of this directory are copied to the page's directory; a README
                                        below examples/ has those of its own directory
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("GPUGLUE_TEST_LIBRARIES") or ROOT / "build/plain/tests")
HANG = 900  # seconds; only ends a block that would never end by itself

TOKEN = re.compile(r"^(?P<indent> *)(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^ *(?P=fence) *$"
                   r"|<!-- *(?P<word>not run|needs|only|before|backends|files): *(?P<rest>.*?) *-->", re.S | re.M)
FILE = re.compile(r"(?:#!.*\n)?(?:#|//|/\*|!|%) ?([\w.-]+\.\w+|Makefile|Dockerfile)(?: \*/)?[ \t]*$", re.M)
RUN = ("python", "sh", "console")


class Wrong(Exception):
    """A block failed, or printed something else than the page shows."""


@dataclass
class Block:
    """A code block with its directions."""

    line: int
    language: str
    text: str
    directions: dict[str, str] = field(default_factory=dict)
    expected: str | None = None


@dataclass
class Page:
    """The blocks of a page, and its own directions."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    backends: tuple[str, ...] = ("host",)
    files: str = ""


def read(path, text=None):
    """The page in a file."""
    page, pending = Page(path), {}
    if path.parent.parent.name == "examples":
        page.files = str(path.parent.relative_to(ROOT))
    text = path.read_text() if text is None else text
    for match in TOKEN.finditer(text):
        word, rest, line = match["word"], match["rest"], text.count("\n", 0, match.start()) + 1
        if word == "backends":
            page.backends = tuple(rest.split())
        elif word == "files":
            page.files = rest
        elif word == "before":
            language, _, code = rest.partition(" ") if "\n" not in rest.split(" ")[0] else rest.partition("\n")
            page.blocks.append(Block(line, language, textwrap.dedent(code) + "\n", {"hidden": "yes"}))
        elif word:
            pending[word] = " ".join(rest.split())
        elif match["language"].strip() == "output":
            page.blocks[-1].expected = textwrap.dedent(match["text"])
        else:
            page.blocks.append(Block(line, match["language"].strip(), textwrap.dedent(match["text"]), pending))
            pending = {}
    return page


def why_not(block, backend):
    """The reason not to run a block here, or an empty string."""
    if "not run" in block.directions:
        return block.directions["not run"]
    wanted, _, reason = block.directions.get("only", "").partition(", ")
    if wanted and wanted != backend:
        return f"only on {wanted}, {reason}"
    needs = filter(None, block.directions.get("needs", "").split(", "))
    missing = [name for name in needs if not shutil.which(name, path=search_path()) and not find_spec(name)]
    return f"{', '.join(missing)} is not installed here" if missing else ""


def search_path():
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


# The commands that probe have a limit of their own, too short for a busy machine; one that a page gives comes later.
PROBES = f"""case "${{1--}}" in
doctor | info) command=$1; shift; set -- "$command" --timeout {HANG} "$@" ;;
--version | --help | -h) ;;
-*) set -- --timeout {HANG} "$@" ;;
esac
"""


def environment(backend, place):
    """Variables of a new user whose device is the given one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUGLUE_", "PYCUDA", "CUDA_VIS"))}
    (place / "bin").mkdir()
    for name, module in {"gpuglue": "gpuglue", "gpuglue-config": "gpuglue._config"}.items():
        command = place / "bin" / name  # the wheel installs them, `meson install` does not
        command.write_text(f'#!/bin/sh\n{PROBES if name == "gpuglue" else ""}exec {sys.executable} -m {module} "$@"\n')
        command.chmod(0o755)
    kept |= {"PATH": f"{place}/bin{os.pathsep}{search_path()}", "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1",
             "GPUGLUE_BACKEND": backend.partition("-")[0], "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}
    if backend == "cuda-sim":
        kept["GPUGLUE_CUDA_LIBRARY"] = str(BUILT / "sim/cuda/libcuda.so.1")
        kept["GPUGLUE_NCCL_LIBRARY"] = str(BUILT / "sim/nccl/libnccl.so.2")  # without it a communicator is staged
    return kept


def reserved_port():
    """A socket whose port no other process gets until it is closed. A communicator can listen on the port: both set SO_REUSEADDR."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def check(expected, printed, where):
    """Compare an output with what the page shows."""
    pattern = ".*?".join(re.escape(part) for part in expected.rstrip().split("..."))
    tidy = "\n".join(line.rstrip() for line in printed.rstrip().split("\n"))
    if not re.fullmatch(pattern, tidy, re.S):
        raise Wrong(f"{where}: the page shows\n{expected.rstrip()}\nand the block printed\n{printed.rstrip()}")


INTERPRETER = """
import json, sys, traceback
names = {"__name__": "__main__"}
for request in sys.stdin:
    code, end = json.loads(request)
    try:
        exec(compile(code, "page", "exec"), names)
        failed = ""
    except BaseException as error:
        print("".join(traceback.format_exception_only(error)).rstrip())
        failed = traceback.format_exc()
    sys.stdout.flush()
    print(end + json.dumps(failed), flush=True)
"""


class Runner:
    """Runs the blocks of one page in a directory."""

    def __init__(self, page, backend, place):
        self.page, self.backend = page, backend
        self.work = place / "work"
        source = ROOT / page.files if page.files else None
        shutil.copytree(source, self.work) if source else self.work.mkdir()
        self.port = reserved_port()
        self.variables = environment(backend, place) | dict.fromkeys(("GPUGLUE_COMM_PORT", "MASTER_PORT"), str(self.port.getsockname()[1]))
        self.variables["DASK_LOGGING__DISTRIBUTED"] = "critical"  # what its processes report when they are slow to end is not output
        self.interpreter = None

    def where(self, block):
        return f"{self.page.path}:{block.line} on {self.backend}"

    def bash(self, script):
        """The exit status of a script, and all it prints."""
        done = subprocess.run(["bash", "-e", "-c", script], cwd=self.work, env=self.variables, text=True, timeout=HANG,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def run_sh(self, block):
        status, printed = self.bash(block.text)
        if status:
            raise Wrong(f"{self.where(block)}: exit status {status}\n{printed}")
        if block.expected is not None:
            check(block.expected, printed, self.where(block))

    def run_console(self, block):
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, expected = re.match(r"((?:.*\\\n)*.*)(\n)?((?s:.*))", part).groups()
            status, printed = self.bash(command)
            if status:
                raise Wrong(f"{self.where(block)}: {command}: exit status {status}\n{printed}")
            check(expected, printed, f"{self.where(block)}: {command}")

    def run_python(self, block):
        if not self.interpreter:
            self.interpreter = subprocess.Popen([sys.executable, "-P", "-c", INTERPRETER], cwd=self.work, env=self.variables,
                                                text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        end = f"end of block {block.line}: "
        self.interpreter.stdin.write(json.dumps(["\n" * block.line + block.text, end]) + "\n")
        self.interpreter.stdin.flush()
        printed = ""
        while (line := self.interpreter.stdout.readline()) and end not in line:
            printed += line
        before, found, failed = line.partition(end)
        printed += before
        if not found or (json.loads(failed) and block.expected is None):
            raise Wrong(f"{self.where(block)}: {json.loads(failed) if found else 'the interpreter ended'}\n{printed}")
        check(block.expected or "", printed, self.where(block))

    def run(self, block):
        """Run a block, or write its file. Returns what was done."""
        named = FILE.match(block.text)
        if named and "hidden" not in block.directions:
            (self.work / named[1]).write_text(block.text)
            return "written"
        if block.language not in RUN:
            return "shown"
        getattr(self, f"run_{block.language}")(block)
        return "run"

    def close(self):
        """End the interpreter; the exit status must be 0, because gpuglue's own exit is a part of each page."""
        self.port.close()
        if self.interpreter:
            self.interpreter.stdin.close()
            status = self.interpreter.wait(HANG)
            self.interpreter.stdout.close()
            if status:
                raise Wrong(f"{self.page.path} on {self.backend}: the interpreter ended with status {status}")


def run_page(page, backend, place, report):
    """Run a page; calls report(block, what was done or the reason why not)."""
    runner = Runner(page, backend, place)
    try:
        for block in page.blocks:
            reason = why_not(block, backend)
            report(block, f"not run: {reason}" if reason else runner.run(block))
    except BaseException:
        if runner.interpreter:
            runner.interpreter.kill()
        raise
    runner.close()
