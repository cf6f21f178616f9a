"""Docstrings: numpydoc's validator accepts all of them, they have the sections that they need, and what they show is true.

The shares are printed at the end. `docs/reference` and help() show the same text; that of the compiled module is in
python/docstrings."""

import ast
import collections
import functools
import inspect
import os
import subprocess
import sys
import textwrap
from ctypes.util import find_library
from pathlib import Path

import gpuglue as gg
import public
import pytest
from blocks import BUILT, ROOT, environment

sys.path.insert(0, str(ROOT / "scripts"))
import docstrings  # noqa: E402

MAIN, COMPAT = public.main(), public.compat()
# Of numpydoc's checks these are left out:
IGNORED = {
    "ES01",  # one sentence is enough for many
    "SA01",  # references to others are optional
    "EX01",  # the share of Examples is checked below
}
# They never raise, whatever their arguments: what they do is to release, and to return what is known.
NEVER_RAISE = {
    *(f"gpuglue.{name}" for name in """Buffer.close Event.close Graph.close Module.close Stream.close GPUArray.release_captured
      available_backends get_include get_library_dir compat.PyGPU.cudaSetDevice Communicator.close Trace""".split()),
}
EXAMPLES = 0.8  # of all callables


def numpydoc_errors(item):
    """(code, text) of what numpydoc finds."""
    validate = pytest.importorskip("numpydoc.validate")

    class Validator(validate.Validator):
        source_file_def_line = None  # no comments in the source that leave a check out

        @property
        def is_function_or_method(self):
            return inspect.isroutine(self.obj)

        @property
        def signature_parameters(self):
            names = super().signature_parameters
            return () if isinstance(self.obj, type) and item.signature is None else names

    document = Validator(validate.get_doc_object(item.value))
    found = validate.validate(item.name, validator_cls=lambda obj_name: document)["errors"]
    return [f"{code} {text}" for code, text in found if code not in IGNORED]


def sections(item):
    lines = (inspect.getdoc(item.value) or "").split("\n")
    return {line for line, under in zip(lines, lines[1:]) if line and under == "-" * len(line)}


def returns_something(item):
    if isinstance(item.value, type):
        return False
    if item.name.startswith("gpuglue.compat") or inspect.isfunction(item.value):
        validate = pytest.importorskip("numpydoc.validate")
        return validate.Validator(validate.get_doc_object(item.value)).method_returns_something
    return item.name in public.STUB_RETURNS


def raises(item):
    """Compat modules pass errors of gpuglue on, or return them as numbers; what they raise themselves is theirs."""
    if item.name in NEVER_RAISE or not item.name.startswith("gpuglue.compat"):
        return item.name not in NEVER_RAISE
    function = vars(item.value).get("__init__") if isinstance(item.value, type) else item.value
    if function is None or hasattr(function, "__wrapped__"):  # `translated`
        return function is not None
    return any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))))


@functools.cache
def wanted(item):
    """The sections that a callable needs."""
    needed = {"Parameters"} if item.parameters else set()
    needed |= {"Returns"} if returns_something(item) else set()
    return needed | ({"Raises"} if raises(item) else set())


GROUPS = {"gpuglue": MAIN, "gpuglue.compat": COMPAT}


def listed(faults):
    return "\n" + "\n".join(f"{name}: {', '.join(map(str, found))}" for name, found in faults.items() if found)


@pytest.mark.parametrize("group", GROUPS)
def test_numpydoc_accepts_every_docstring(group):
    faults = {item.name: numpydoc_errors(item) for item in GROUPS[group]}
    assert not any(faults.values()), listed(faults)


@pytest.mark.parametrize("group", GROUPS)
def test_callables_document_parameters_result_and_exceptions(group):
    faults = {item.name: sorted(wanted(item) - sections(item)) for item in GROUPS[group] if item.is_callable}
    assert not any(faults.values()), listed(faults)


@pytest.mark.parametrize("group", GROUPS)
def test_most_callables_have_an_example(group, shares):
    items = [item for item in GROUPS[group] if item.is_callable]
    counts = collections.Counter()
    for item in items:
        there, needed = sections(item), wanted(item)
        for name in ("Parameters", "Returns", "Raises"):
            counts[name, "wanted"] += name in needed
            counts[name, "there"] += name in needed and name in there
        counts["Examples", "wanted"] += 1
        counts["Examples", "there"] += "Examples" in there
    shares(group, {name: (counts[name, "there"], counts[name, "wanted"])
                   for name in ("Parameters", "Returns", "Raises", "Examples")})
    assert counts["Examples", "there"] >= EXAMPLES * len(items)


def test_the_module_has_the_docstrings_of_the_files():
    for name, entry in docstrings.entries().items():
        owner, _, member = name.rpartition(".")
        value = vars(getattr(gg, owner))[member] if owner else getattr(gg._core, name)
        assert value.__doc__ == entry.text, name
        if entry.signature and not owner:
            assert value.__text_signature__ == entry.signature


SIMULATED = {"hip-sim": ("GPUGLUE_HIP_LIBRARY", "sim/hip7/libamdhip64.so.7"),
             "ze-sim": ("ZE_ENABLE_ALT_DRIVERS", "sim/ze_new/libze_sim_new.so.1")}


def library_of(backend):
    """The variable with the simulated library of a backend; skips where there is none."""
    if backend == "cuda" and not Path("/dev/nvidia0").exists():
        pytest.skip("there is no NVIDIA GPU")
    if backend not in SIMULATED:
        return {}
    name, path = SIMULATED[backend]
    if not (BUILT / path).exists() or backend == "ze-sim" and not find_library("ze_loader"):
        pytest.skip(f"{path} was not built, or there is no loader for it")
    return {name: str(BUILT / path)}


@pytest.mark.parametrize("backend", ["host", "cuda-sim", "cuda", *SIMULATED])
def test_the_examples_print_what_they_show(backend, tmp_path):
    program = [sys.executable, "-P", str(Path(__file__).with_name("examples.py")), backend]
    variables = environment(backend, tmp_path) | library_of(backend) | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- scripts/docstrings.py


def test_a_literal_of_c_has_the_text():
    assert docstrings.literal('a "b"\n\\c ??(') == '    "a \\"b\\"\\n"\n    "\\\\c ?""?("'


def test_the_stub_gets_docstrings_at_functions_classes_and_attributes():
    found = {name: docstrings.Entry(name, None, text) for name, text in
             {"f": "New.", "C": "Two\nlines.", "C.x": "X.", "C.g": "G."}.items()}
    before = 'def f(\n    a: int,\n) -> int: ...\nclass C:\n    """Old."""\n    x: int\n    def g(self) -> int:\n        """Old."""\n'
    after = ('def f(\n    a: int,\n) -> int:\n    """New."""\nclass C:\n    """Two\n    lines.\n    """\n    x: int\n    """X."""\n'
             '    def g(self) -> int:\n        """G."""\n')
    assert docstrings.stub_with(found, before) == (after, set())
    assert docstrings.stub_with(found, after) == (after, set())
    assert docstrings.stub_with(found, "def f() -> int: ...\n")[1] == {"C", "C.x", "C.g"}
