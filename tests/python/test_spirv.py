"""SPIR-V on Level Zero: specialisation constants, options of the driver's compiler, linking, and machine code that is kept
on disk. The simulated driver is loaded in place of a loader, so none needs to be installed. It runs functions of its own in
place of the kernels, with the constants that it found in the code (tests/images/make_images.py)."""

import inspect
import json
import pickle

import numpy as np
import pytest
from conftest import SIMULATED, built, needed, run_python, succeeds

import gpuglue as gg
from gpuglue import _spirv

IMAGES = {name: ("GPUGLUE_TEST_IMAGE", f"images/{name}.spv") for name in ("constants", "linked", "twice")}
RUN = """
import gpuglue as gg, numpy as np, warnings
def image(name):
    return open({directory!r} + f"/{{name}}.spv", "rb").read()
def run(name="constants", more=(), **keywords):
    module = gg.Module(image(name), link=[image(each) for each in more], **keywords)
    out = gg.zeros(4, np.uint64)
    module[name](out, grid=1, block=1)
    return out.tolist()
def refused(kind=gg.InvalidArgumentError, **keywords):
    try:
        run(**keywords)
    except kind as error:
        return str(error)
"""
DEFAULT = [7, 0x3FC00000, 1, 1 << 40]


def image(name):
    return needed(*IMAGES[name]).read_bytes()


@pytest.fixture
def sim(tmp_path):
    try:
        libraries = {name: str(built(*SIMULATED[name][1:])) for name in ("ze-sim-old", "ze-sim-new")}
    except pytest.UsageError as error:
        pytest.skip(str(error))
    directory = str(needed(*IMAGES["constants"]).parent)

    def run(code, driver="new", **environment):
        clean = dict.fromkeys(("GPUGLUE_SIM_DEVICES", "GPUGLUE_DEVICE", "ZE_ENABLE_ALT_DRIVERS", "ZE_AFFINITY_MASK", "GPUGLUE_CACHE"))
        library = {"GPUGLUE_BACKEND": "ze", "GPUGLUE_ZE_LIBRARY": libraries[f"ze-sim-{driver}"],
                   "GPUGLUE_CACHE_DIR": str(tmp_path / "cache")}
        return succeeds(run_python(RUN.format(directory=directory) + code, **{**clean, **library, **environment}))

    return run


def ask(sim, expression, **environment):
    return sim(f"print(ascii({expression}))", **environment)


# ---- specialisation constants


def test_constants_are_set_by_number_and_type(sim):
    assert ask(sim, "run()") == str(DEFAULT)
    expected = [2**32 - 2, 0xC0200000, 0, 3 << 50]
    assert ask(sim, "run(constants={9: 3 << 50, 0: -2, 3: np.float64(-2.5), 4: np.False_})") == str(expected)


@pytest.mark.parametrize("constants, words", (
    ({1: 0}, "no specialisation constant 1; the image has: 0 (int32), 3 (float32), 4 (bool), 9 (int64)"),
    ({0: 2**32}, "the value 4294967296 for the specialisation constant 0: expected a number of type int32"),
    ({0: -2**31 - 2**31 - 1}, "expected a number of type int32"),
    ({0: 1.5}, "the value 1.5 for the specialisation constant 0: expected a number of type int32"),
    ({3: 1e39}, "expected a number of type float32"),
    ({3: "x"}, "the value 'x' for the specialisation constant 3"),
    ({4: 2}, "expected a number of type bool")))
def test_a_constant_that_does_not_fit_is_refused(sim, constants, words):
    assert words in ask(sim, f"refused(constants={constants!r})")


@pytest.mark.parametrize("constants", ("{'a': 1}", "{True: 1}", "[1]"))
def test_constants_that_are_no_dict_of_numbers_are_type_errors(sim, constants):
    assert "constants" in ask(sim, f"refused(TypeError, constants={constants})")


def test_an_image_names_its_constants_and_can_have_other_defaults():
    code = image("constants")
    assert gg.Image(code).constants == {0: 7, 3: 1.5, 4: True, 9: 1 << 40}
    other = gg.Image(_spirv.specialise(code, {0: np.uint8(200), 3: -0.5, 4: False, 9: -1}))
    assert other.constants == {0: 200, 3: -0.5, 4: False, 9: 2**64 - 1} and len(other) == len(code)
    assert _spirv.specialise(code, {4: True}) == code
    assert other.kernels.keys() == gg.Image(code).kernels.keys() == {"constants"}


def test_an_image_is_read_from_a_path_as_a_module_is(tmp_path):
    code, path = image("constants"), tmp_path / "x.spv"
    path.write_bytes(code)
    images = [gg.Image(given) for given in (code, bytearray(code), memoryview(code), path, str(path))]
    assert all(each == code and each.constants == gg.Image(code).constants for each in images)
    images[0].log = "words"
    same = pickle.loads(pickle.dumps(images[0]))
    assert type(same) is gg.Image and same == code and same.log == "words"
    assert str(inspect.signature(gg.Image)).startswith("(image: ")


@pytest.mark.parametrize("given", (3, None, [1], 2.5))
def test_what_is_no_image_is_refused(given):
    with pytest.raises(TypeError, match="an image must be bytes or the path of a file"):
        gg.Image(given)


def test_a_path_without_a_file_and_a_text_are_no_images(tmp_path):
    with pytest.raises(FileNotFoundError):
        gg.Image(tmp_path / "missing.spv")
    with pytest.raises(gg.InvalidArgumentError, match="this str is a text"):
        gg.Image("int main() {}")


def test_damaged_declarations_of_constants_are_refused():
    code = image("constants")
    for at in range(20, len(code), 4):  # each word in turn, as a count that is too large and as another number
        for word in (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x32\0\x03\0"):
            try:
                assert all(isinstance(number, int) for number in gg.Image(code[:at] + word + code[at + 4:]).constants)
            except gg.InvalidArgumentError:
                pass


# ---- options


def test_options_reach_the_drivers_compiler_and_an_unknown_one_is_named(sim):
    assert ask(sim, "run(options=['-ze-opt-level=1', '-g'])") == str(DEFAULT)
    assert "unrecognized build options: -ze-opt-levl=1" in ask(sim, "refused(options=['-g', '-ze-opt-levl=1'])")
    assert "one option without spaces" in ask(sim, "refused(options=['-g -ze-opt-disable'])")
    assert "sequence" in ask(sim, "refused(TypeError, options='-g')")
    assert "sequence of str" in ask(sim, "refused(TypeError, options=[1])")


def test_options_that_compile_keeps_for_the_driver_are_passed_on(sim):
    code = "code = gg.Image(image('constants')); code.options = ('-ze-opt-unheard-of',)\n"
    code += "try:\n    gg.Module(code)\nexcept gg.InvalidArgumentError as error:\n    print(error)"
    assert "-ze-opt-unheard-of" in sim(code)


def test_what_the_compiler_says_about_options_is_a_warning_of_the_log(sim, tmp_path):
    code = "import os, sys; sys.stderr = None; log = os.open('{0}', os.O_WRONLY | os.O_CREAT); os.dup2(log, 2)\nprint(run(options=['-g']))"
    assert sim(code.format(tmp_path / "log"), GPUGLUE_SIM_ZE_LOG="warning: -g is slow", GPUGLUE_LOG="warn") == str(DEFAULT)
    assert 'compiling with "-g": warning: -g is slow' in (tmp_path / "log").read_text()


# ---- linking


def test_several_inputs_become_one_module(sim):
    assert ask(sim, "run('linked', ['twice'])") == str([*DEFAULT[:3], 2 << 40])
    options = "options=['-ze-opt-level=1', '-g'], constants={0: 5, 9: 8}"
    assert ask(sim, f"run('linked', ['twice'], {options})") == str([5, *DEFAULT[1:3], 16])


def test_a_function_that_no_input_has_is_missed_at_the_kernel(sim):
    assert "link it with the SPIR-V that has them" in ask(sim, "refused(name='linked')")
    assert "link it with the SPIR-V that has them" in ask(sim, "refused(name='linked', more=['constants'])")


def test_a_driver_that_does_not_link_says_so(sim):
    message = ask(sim, "refused(gg.UnsupportedError, name='linked', more=['twice'])", driver="old")
    assert "lacks ZE_experimental_module_program" in message


def test_an_input_that_is_no_spirv_is_refused(sim):
    code = "try:\n    gg.Module(image('linked'), link=[b'.version 8.0 .target sm_90 '])\nexcept gg.InvalidArgumentError as error:\n    print(error)"
    assert "input 0 is ptx: only SPIR-V is linked" in sim(code)


# ---- machine code on disk


def entries(tmp_path):
    return sorted((tmp_path / "cache").glob("*.image")) if (tmp_path / "cache").exists() else []


def formats(sim, tmp_path, code="assert run() == %r" % DEFAULT, **environment):
    """How often the driver compiled, and how often it returned machine code, in a process that runs the code."""
    report = tmp_path / "report.json"
    sim(code, GPUGLUE_SIM_REPORT=str(report), **environment)
    calls = json.loads(report.read_text())["calls"]
    return calls.get("zeModuleCreate", 0), calls.get("zeModuleGetNativeBinary", 0)


def test_what_the_driver_compiled_is_kept(sim, tmp_path):
    assert formats(sim, tmp_path) == (1, 3)  # its size twice, and its bytes
    assert len(entries(tmp_path)) == 1
    assert formats(sim, tmp_path) == (1, 0)


def test_constants_options_inputs_driver_and_device_have_entries_of_their_own(sim, tmp_path):
    runs = ("run()", "run(constants={0: 8})", "run(options=['-g'])", "run('linked', ['twice'])")
    sim("; ".join(runs))
    assert len(entries(tmp_path)) == 4
    results = sim("; ".join(f"print({each})" for each in runs)).splitlines()
    assert results == list(map(str, (DEFAULT, [8, *DEFAULT[1:]], DEFAULT, [*DEFAULT[:3], 2 << 40]))) and len(entries(tmp_path)) == 4
    for number, change in enumerate(({"driver": "old"}, {"IGC_ExtraOCLOptions": "-x"}, {"GPUGLUE_SIM_MEMORY": str(300 << 20)}), 5):
        sim("run()", **change)
        assert len(entries(tmp_path)) == number


@pytest.mark.parametrize("switch", ({"GPUGLUE_CACHE": "0"}, {"GPUGLUE_CACHE_DIR": "/dev/null/nowhere"}))
def test_without_a_cache_nothing_is_kept(sim, tmp_path, switch):
    for _ in range(2):
        assert formats(sim, tmp_path, **switch)[0] == 1
    assert not entries(tmp_path)


def test_a_damaged_entry_is_compiled_and_written_again(sim, tmp_path):
    sim("run()")
    [entry] = entries(tmp_path)
    whole = entry.read_bytes()
    for damaged in (whole[:-8] + bytes(8), whole[: len(whole) // 2], b""):
        entry.write_bytes(damaged)
        assert formats(sim, tmp_path) == (1, 3)
        assert entry.read_bytes() == whole


def test_an_entry_that_the_driver_refuses_is_compiled_and_written_again(sim, tmp_path):
    sim("run()")
    [entry] = entries(tmp_path)
    whole = entry.read_bytes()
    sim(f"from gpuglue import _cache\nname = {entry.stem!r}; facts, body = _cache.load(name); _cache.discard(name)\n"
        "_cache.store(name, facts, b'another' + body)")
    assert entry.read_bytes() != whole
    assert formats(sim, tmp_path) == (2, 3)
    assert entry.read_bytes() == whole


def test_an_entry_that_others_can_write_to_is_not_loaded(sim, tmp_path):
    sim("run()")
    [entry] = entries(tmp_path)
    entry.chmod(0o666)
    assert formats(sim, tmp_path) == (1, 3)


# ---- other backends


@pytest.mark.parametrize("keywords", ({"constants": {0: 1}}, {"options": ["-g"]}, {"link": [b"x"]}))
def test_other_backends_refuse_what_is_for_spirv(device, keywords):
    if device.supports("module_load_with") or not device.supports("module_load"):
        pytest.skip("the backend compiles SPIR-V, or loads no modules")
    with pytest.raises(gg.UnsupportedError, match="SPIR-V, which this backend does not load"):
        gg.Module(image("constants"), device, **keywords)


def test_compile_sets_constants_of_spirv_only():
    for backend, arch in (("cuda", "sm_90"), ("hip", "gfx90a")):
        with pytest.raises(gg.UnsupportedError, match=f"SPIR-V, which {backend} does not use: use options"):
            gg.compile("", backend=backend, arch=arch, constants={0: 1})


def compiles(monkeypatch, tmp_path, body):
    from gpuglue import _opencl

    asked = []
    monkeypatch.setattr(_opencl, "identity", lambda: "test")
    monkeypatch.setattr(_opencl, "compile_source", lambda source, options, device: (asked.append(options), (body, ""))[1])
    monkeypatch.setenv("GPUGLUE_CACHE_DIR", str(tmp_path))
    return asked


def test_compile_gives_spirv_other_defaults_and_keeps_the_drivers_options(monkeypatch, tmp_path):
    asked = compiles(monkeypatch, tmp_path, image("constants"))
    for _ in range(2):
        made = gg.compile("kernel void constants(global ulong *x) {}", backend="ze", arch="dg2",
                          options=["-DN=4", "-ze-opt-level=1"], constants={0: 5})
        assert made.options == ("-ze-opt-level=1",) and made.constants == {0: 5, 3: 1.5, 4: True, 9: 1 << 40}
    assert asked == [["-DN=4"]]  # the second from the cache
    with pytest.raises(gg.InvalidArgumentError, match="no specialisation constant 2"):
        gg.compile("kernel void constants(global ulong *x) {}", backend="ze", arch="dg2", constants={2: 5})
