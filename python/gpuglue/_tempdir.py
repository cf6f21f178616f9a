"""Compilers run with their own TMPDIR, which a shell removes after them even if this process is killed meanwhile.
They form a process group, which ends with the call. Input and output are files in memory."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time

# Without the second trap some shells would leave the directory when a signal ends them. Its name is expanded when
# the trap runs, so that it is never parsed as part of a command.
RUN = """mkdir -m 700 -- "$TMPDIR" || exit 1; trap 'rm -rf -- "$TMPDIR"' 0; trap "exit 130" HUP INT TERM; "$@\""""
GRACE = 1.0  # seconds in which an interrupted compiler may end by itself
POLL = 0.2  # seconds between two checks for signals: one that arrives just before a wait does not end the wait


def memory(data=b""):
    """The descriptor of a file in memory that holds the data, at its beginning."""
    handle = os.memfd_create("gpuglue-source")
    if handle < 3:  # standard streams are closed: keep their numbers free for the compiler's own
        low, handle = handle, fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(low)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view):]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _ended(process):
    """Whether it has ended; it stays unreaped, so that its process group id stays valid."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _stop(process):
    """Terminate the group, and kill what does not end."""
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


@contextlib.contextmanager
def _sigint_deferred():
    """Call the handler of SIGINT only at the end, so that a process which was started is known to its caller."""
    handler, pending = signal.getsignal(signal.SIGINT), []
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield  # no Python code runs at a SIGINT here
        return
    try:
        signal.signal(signal.SIGINT, lambda *arguments: pending.append(arguments))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pending:
            handler(*pending[0])


def _log_of(process):
    """What it writes until it ends."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=POLL)[0]


def run(command, source, environment=None):
    """(exit status, what the program wrote to the descriptor, its log). `command` returns the arguments, given the number
    of that descriptor; `source` is the standard input; the working directory is the caller's."""
    given, output = memory(source), memory()
    base = os.environ.get("TMPDIR") or "/tmp"
    scratch = os.path.join(base, f"gpuglue-{os.getpid()}-{os.urandom(6).hex()}")
    process = None
    try:
        try:
            with _sigint_deferred():
                process = subprocess.Popen(
                    ["/bin/sh", "-c", RUN, "sh", *command(output)], stdin=given, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, pass_fds=(output,), start_new_session=True,
                    env={**os.environ, **(environment or {}), "TMPDIR": scratch, "LC_ALL": "C"})
            log = _log_of(process)
        except BaseException:  # including Ctrl-C
            if process:
                _stop(process)
                process.stdout.close()
            raise
        with open(os.dup(output), "rb") as file:
            file.seek(0)
            return process.returncode, file.read(), log.decode(errors="replace")
    finally:
        os.close(given)
        os.close(output)
        shutil.rmtree(scratch, ignore_errors=True)  # the shell did this, unless it was killed
