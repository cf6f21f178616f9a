"""Compilers run with a TMPDIR of their own, which a shell removes behind them even if this process is killed
meanwhile. They are a group of their own, which ends with the call. What goes in and out lies in files in memory."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time

# An end by a signal is an end, too: without the second trap some shells would leave the folder. The folder's name
# is looked up when the trap runs, and so is never read as part of a command.
RUN = """mkdir -m 700 -- "$TMPDIR" || exit 1; trap 'rm -rf -- "$TMPDIR"' 0; trap "exit 130" HUP INT TERM; "$@\""""
GRACE = 1.0  # seconds that an interrupted compiler has to end by itself


def memory(data=b""):
    """The descriptor of a file in memory that holds the data, at its beginning."""
    handle = os.memfd_create("gpuglue-source")
    if handle < 3:  # where standard streams are closed: the numbers are wanted for the compiler's own
        low, handle = handle, fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(low)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view):]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _ended(process):
    """Whether it has; it stays unreaped, so that its number remains its group's."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _stop(process):
    """End the group; what does not when asked is killed."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, ChildProcessError):  # where ended children are reaped by the system
        try:
            os.killpg(process.pid, signal.SIGTERM)
            end = time.monotonic() + GRACE
            while not _ended(process) and time.monotonic() < end:
                time.sleep(0.01)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(command, source, environment=None):
    """(exit status, what the program wrote to the descriptor, its log). `command` makes the arguments of the number
    of that descriptor; `source` is its standard input; it starts in the caller's folder."""
    given, made = memory(source), memory()
    base = os.environ.get("TMPDIR") or "/tmp"
    scratch = os.path.join(base, f"gpuglue-{os.getpid()}-{os.urandom(6).hex()}")
    try:
        with subprocess.Popen(["/bin/sh", "-c", RUN, "sh", *command(made)], stdin=given, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, pass_fds=(made,), start_new_session=True,
                              env={**os.environ, **(environment or {}), "TMPDIR": scratch, "LC_ALL": "C"}) as process:
            try:
                log, _ = process.communicate()
            except BaseException:  # Ctrl-C among them
                _stop(process)
                raise
        with open(os.dup(made), "rb") as file:
            file.seek(0)
            return process.returncode, file.read(), log.decode(errors="replace")
    finally:
        os.close(given)
        os.close(made)
        shutil.rmtree(scratch, ignore_errors=True)  # the shell did, unless it was killed
