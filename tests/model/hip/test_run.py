"""test_run.py: what run.py makes of each way in which its commands may end. Needs no root; the commands are replaced."""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import run  # also finds the modules of tests/vendors

import matrix  # noqa: E402, I001

CRASHED, STUCK = 139, 124
WRONG_INTERFACE = "Model has interface version 3, expected 2"


def ended(status=0, stdout="", stderr=""):
    return subprocess.CompletedProcess((), status, stdout, stderr)


def probe(status="available", devices=2, reason=""):
    """What `python -m gpuglue --json` prints."""
    record = {"name": "hip", "status": status, "devices": devices, "reason": reason, "version": "7.2.4"}
    return json.dumps({"backends": [{"name": "cuda", "status": "disabled", "devices": None, "reason": "", "version": ""}, record]})


def report(*cases):
    """A report of pytest, with (name, "" or the verdict's tag) of each test."""
    body = "".join(f'<testcase name="{name}">{f"<{tag} message={name!r}/>" if tag else ""}</testcase>' for name, tag in cases)
    return f"<testsuites><testsuite>{body}</testsuite></testsuites>"


class Replaced(unittest.TestCase):
    """Tests whose commands end as they say."""

    def setUp(self):
        self.stage = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.stage / "architecture").write_text("gfx942")
        self.enterContext(mock.patch.object(run, "say"))

    def command_ends(self, *result):
        self.enterContext(mock.patch.object(run, "on_model", return_value=ended(*result)))


class TheRuntime(Replaced):
    def check(self, *result):
        self.command_ends(*result)
        return run.check_runtime(None, self.stage, 2)

    def broken(self, words, *result):
        with self.assertRaisesRegex(run.Broken, words):
            self.check(*result)

    def test_that_has_the_gpus_returns_its_version(self):
        self.assertEqual(self.check(0, probe()), "7.2.4")

    def test_with_another_interface_is_unavailable(self):
        with self.assertRaisesRegex(run.Unavailable, WRONG_INTERFACE):
            self.check(0, probe("init-failed", None, "hipInit failed"), WRONG_INTERFACE)

    def test_that_crashes_is_broken(self):
        self.broken("exit status 139", CRASHED)

    def test_that_hangs_is_broken(self):
        self.broken("did not end within its limit", STUCK, probe())

    def test_that_does_not_start_is_broken(self):
        self.broken("init-failed, None devices: hipInit failed", 0, probe("init-failed", None, "hipInit failed"))

    def test_with_too_few_gpus_is_broken(self):
        self.broken("available, 1 devices", 0, probe(devices=1))

    def test_whose_compiler_fails_is_broken(self):
        self.command_ends(1, "", "kernels.cu:3: error: no such type")
        with self.assertRaisesRegex(run.Broken, "does not compile.*no such type"):
            run.compile_kernels(None, self.stage, "gfx942")


class TheNames(Replaced):
    def plan(self, *names, status=0, stdout="event/records event/waits copy/copies"):
        self.command_ends(status, stdout)
        return run.plan(None, self.stage, names)

    def test_select_suites_files_and_examples(self):
        rows = [(run.run_conformance, "event"), (run.run_python, "event"), (run.run_example, "doublify"), (run.run_own, "kernels")]
        self.assertEqual(self.plan("event", "test_event", "doublify", "test_kernels"), rows)

    def test_are_all_names_if_there_are_none(self):
        self.assertEqual(len(self.plan()), 2 + len(run.PYTHON) + len(run.EXAMPLES) + len(run.OWN))

    def test_that_do_not_exist_are_an_error_with_the_list(self):
        with self.assertRaisesRegex(run.Broken, "unknown: evnt. The names are event, copy, test_allocators"):
            self.plan("event", "evnt")

    def test_cannot_be_had_from_a_conformance_program_that_crashes(self):
        with self.assertRaisesRegex(run.Broken, "lists 1 suites: exit status 139"):
            self.plan(status=CRASHED, stdout="event/records")

    def test_cannot_be_had_from_a_conformance_program_without_suites(self):
        with self.assertRaisesRegex(run.Broken, "lists 0 suites"):
            self.plan(stdout="")

    def test_of_python_files_are_those_of_files(self):
        for name in run.PYTHON:
            self.assertTrue((run.TREE / f"tests/python/test_{name}.py").exists(), name)

    def test_of_python_files_are_all_that_use_a_device_but_those_with_a_reason(self):
        elsewhere = {name for names in run.NOT_THERE.values() for name in names}
        fixture = re.compile(r"def test_\w+\([^)]*\bdevice\b")
        using = {path.stem.removeprefix("test_") for path in (run.TREE / "tests/python").glob("test_*.py") if fixture.search(path.read_text())}
        self.assertLessEqual(using, {*run.PYTHON, *elsewhere})
        self.assertFalse(elsewhere & {*run.PYTHON})

    def test_of_known_failures_are_those_of_tests(self):
        files = (*run.TREE.glob("tests/conformance/*.c"), *run.TREE.glob("tests/python/test_*.py"))
        words = set(re.findall(r"\w+", " ".join(file.read_text() for file in files)))
        self.assertLessEqual(run.KNOWN_FAILURES.keys() | run.LEFT_OUT.keys(), words)


class AConformanceSuite(Replaced):
    def failed(self, *result):
        self.command_ends(*result)
        return run.run_name(None, self.stage, run.run_conformance, "event")["failed"]

    def test_that_passes_has_no_failure(self):
        self.assertEqual(self.failed(0, "ok 0.01 s  event/records\nskipped 0.00 s  event/waits: no peer\n"), {})

    def test_with_a_failed_test_has_its_reason(self):
        self.assertEqual(self.failed(1, "ok 0.01 s  event/records\nFAILED 0.00 s  event/waits: exit status 1\n"), {"waits": "exit status 1"})

    def test_whose_failures_are_known_has_none(self):
        late = "FAILED 240.00 s  event/exit_with_work_in_progress_is_silent: it did not end in 240 s\n"
        alone = "FAILED 0.01 s  event/pinned_memory_is_shared_with_a_child: exit status 1\n[ RUN ]\nexit 1: pinned memory is not shared with a child\n"
        self.assertEqual(self.failed(1, late + alone + "  failed: event/x: exit status 1\n"), {})

    def test_with_a_known_failure_that_fails_otherwise_has_a_failure(self):
        crash = "FAILED 0.01 s  event/exit_with_work_in_progress_is_silent: it was killed by signal 11\n"
        self.assertIn("signal 11", self.failed(1, crash)["exit_with_work_in_progress_is_silent"])

    def test_does_not_take_the_output_of_the_next_test_for_that_of_a_failure(self):
        first = "FAILED 0.01 s  event/pinned_memory_is_shared_with_a_child: exit status 1\n"
        next_one = "FAILED 0.01 s  event/waits: exit status 1\npinned memory is not shared with a child\n"
        self.assertEqual(self.failed(1, first + next_one).keys(), {"pinned_memory_is_shared_with_a_child", "waits"})

    def test_that_crashes_after_a_known_failure_has_a_failure(self):
        found = self.failed(CRASHED, "FAILED 240.00 s  event/exit_with_work_in_progress_is_silent: it did not end in 240 s\n")
        self.assertIn("exit status 139", found["the process"])

    def test_in_which_no_test_ran_has_a_failure(self):
        self.assertIn("the process", self.failed(0, "0 passed"))


class AFileOfPython(Replaced):
    def failed(self, status, text=None):
        self.command_ends(status)
        if text:
            (self.stage / "test_event.xml").write_text(text)
        return run.run_name(None, self.stage, run.run_python, "event")["failed"]

    def test_that_passes_has_no_failure(self):
        self.assertEqual(self.failed(0, report(("test_a", ""), ("test_b", "skipped"))), {})

    def test_with_a_failed_test_has_its_message(self):
        self.assertEqual(self.failed(1, report(("test_a", "failure"), ("test_b", "error"))), {"test_a": "test_a", "test_b": "test_b"})

    def test_that_is_skipped_whole_has_no_failure(self):
        self.assertEqual(self.failed(run.NONE_COLLECTED, report(("test_event", "skipped"))), {})

    def test_without_tests_has_a_failure(self):
        self.assertIn("exit status 5", self.failed(run.NONE_COLLECTED, report())["the process"])

    def test_that_crashes_has_a_failure(self):
        self.assertIn("exit status 139", self.failed(CRASHED)["the process"])

    def test_that_crashes_after_its_report_has_a_failure(self):
        self.assertIn("exit status 139", self.failed(CRASHED, report(("test_a", "")))["the process"])


class TheProgram(unittest.TestCase):
    """What `make test-hip-model` and tests/vendors/matrix.py see."""

    def main(self, **replaced):
        output = io.StringIO()
        with mock.patch.multiple(run, **replaced), mock.patch.object(sys, "argv", ["run.py", "build"]), contextlib.redirect_stdout(output):
            return run.main(), output.getvalue()

    def test_skips_what_is_unavailable(self):
        self.assertEqual(self.main(run_all=mock.Mock(side_effect=run.Unavailable("no root"))), (0, "skipped: no root\n"))

    def test_fails_if_the_model_does_not_run(self):
        self.assertEqual(self.main(run_all=mock.Mock(side_effect=run.Broken("exit status 139"))), (1, "FAILED: exit status 139\n"))


class TheMatrix(unittest.TestCase):
    """How `make test-vendors` reports that program."""

    def verdict(self, *result):
        with mock.patch.object(matrix.subprocess, "run", return_value=ended(*result)):
            return matrix.modelled("gpuglue.whl", pathlib.Path("build/tests"))

    def test_has_the_last_line(self):
        self.assertEqual(self.verdict(0, "event: 3 passed\nok: 3 passed, 0 failed, 1 skipped\n"), "ok: 3 passed, 0 failed, 1 skipped")

    def test_has_a_skip_with_its_reason(self):
        self.assertEqual(self.verdict(0, f"skipped: {WRONG_INTERFACE}\n"), f"skipped: {WRONG_INTERFACE}")

    def test_has_a_failure_with_what_was_printed(self):
        self.assertEqual(self.verdict(1, "FAILED: exit status 139\n", "Traceback"), "FAILED: FAILED: exit status 139\nTraceback")

    def test_has_a_failure_if_nothing_was_printed(self):
        self.assertTrue(self.verdict(0).startswith("FAILED"))


if __name__ == "__main__":
    unittest.main()
