"""test_runner.py PROGRAM: the runner reports each kind of result, and no process of a test outlives it."""

import os
import re
import subprocess
import sys
import time

EXPECTED = {
    "sample/passes": ("ok", ""),
    "sample/fails": ("FAILED", "exit status 1"),
    "sample/is_killed": ("FAILED", "it was killed by signal 9 (Killed)"),
    "sample/hangs": ("FAILED", "it did not end in {limit} s"),
    "sample/is_skipped": ("skipped", "there is no moon"),
    "sample/exits": ("FAILED", "it ended the process"),
    "sample/exits_as_skipped": ("FAILED", "it exits as skipped and gives no reason"),
    "sample/exec_of_a_scenario": ("FAILED", "exit status 3"),
    "other/passes": ("ok", ""),
}


def run(*arguments, **environment):
    done = subprocess.run([sys.argv[1], *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment})
    return done.returncode, done.stdout


def results(output):
    return {name: (result, reason) for result, name, reason in re.findall(r"^(ok|skipped|FAILED) +[\d.]+ s  (\w+/\w+)(?:: (.*))?$", output, re.M)}


def chosen(*names):
    status, output = run("x", *names)
    assert status == 0, output
    return set(results(output))


def lives(process):
    """Whether this process of the program has not ended; another process may have got its number."""
    try:
        with open(f"/proc/{process}/stat") as stat, open(f"/proc/{process}/cmdline") as command:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX" and "--run-test" in command.read()
    except OSError:
        return False


def run_to_the_limit():
    """What a run with a time limit prints, and the processes of the test that reaches it. The limit grows until the machine is
    fast enough for the other tests to end within it, and for that one to start its processes."""
    for limit in (2, 8, 32, 128, 512):
        status, output = run("x", "--timeout", str(limit))
        late = {name for name, (_, reason) in results(output).items() if reason == f"it did not end in {limit} s"}
        started = list(dict.fromkeys(re.findall(r"^(?:hangs with|and) (\d+)$", output, re.M)))
        if late <= {"sample/hangs"} and len(started) == 2:
            break
    assert status == 1, output
    assert results(output) == {name: (word, reason.format(limit=limit)) for name, (word, reason) in EXPECTED.items()}, output
    assert output.endswith("2 passed, 6 failed, 1 skipped\n"), output
    assert len(started) == 2, output
    return output, started


output, started = run_to_the_limit()
while any(map(lives, started)):  # the runner kills them before it exits; a process that is still alive makes this loop hang
    time.sleep(0.01)
assert output.count("0x1 != 0x2") == 2, output  # after the test, and at the end
assert "1 skipped: there is no moon" in output, output

assert chosen("other") == {"other/passes"}
assert chosen("sample/passes") == {"sample/passes"}
assert chosen("passes") == {"sample/passes", "other/passes"}
assert chosen("passes", "--without", "sample") == {"other/passes"}
assert chosen("--without", "sample") == {"other/passes"}
assert chosen("--without", "sample", "sample/passes") == {"sample/passes"}
assert chosen("--without", "sample", "--without", "other", "other") == {"other/passes"}
assert run("x", "--without", "sample", "--without", "other")[0] == 2
assert chosen("--suite", "other", "sample/is_skipped") == {"other/passes", "sample/is_skipped"}
assert run("x", "--here", "passes")[0] == 0
assert run("x", "--here", "fails")[0] == 1
assert run("x", "--here", "fails", SAMPLE_EXCUSE="it is late")[0] == 0
excused = results(run("x", "passes", "sample/fails", SAMPLE_EXCUSE="it is late")[1])
assert excused == {"sample/passes": ("ok", ""), "other/passes": ("ok", ""), "sample/fails": ("skipped", "it is late")}, excused
assert run("x", "passes", "misspelt")[0] == 2
assert run("--list", "other") == (0, "other/passes\n")
assert run("x", SAMPLE_ABSENT="1") == (77, "")
