"""Footers of other programs' files are tried in a process of its own before they are read in ours.

Arrow ends the whole process when some parts of a footer contradict each other: one damaged byte is
enough, and nothing in Python can catch it. Such a file would end every penguin that meets it.
"""

import atexit
import contextlib
import select
import signal
import subprocess
import sys
import threading

PATIENCE_SECS = 60.0
LENGTH_BYTES = 4
SURVIVED = b"+"
DYING_SECS = 5.0
"""A crash may write a core dump first."""
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


class Trial:
    """A process that reads what it is sent; if it dies, the next question starts another."""

    def __init__(self, *command: str, patience: float = PATIENCE_SECS) -> None:
        self._command = command
        self._patience = patience
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def survives(self, footer: bytes) -> bool:
        """Whether a process that reads this footer lives on, whatever it thinks of it.

        One that was ended from outside says nothing of the footer: that is a MemoryError, as it is
        the system that does so when it runs out of memory.
        """
        with self._lock:
            process = self._process or self._started()
            # A broken pipe: it has died before it had read everything.
            with contextlib.suppress(BrokenPipeError):
                self._send(process, footer)
            answer = self._answer(process)
            if answer == SURVIVED:
                return True
            silent = answer is None
            code = self._end(process, at_once=silent)
            if silent or -code in CRASHES:
                return False
            raise MemoryError("the process that tries Parquet footers was ended")

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._end(self._process, at_once=True)

    def _started(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(  # noqa: S603 - our own program, with nothing of the file's
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self._process

    def _send(self, process: subprocess.Popen[bytes], footer: bytes) -> None:
        if process.stdin is not None:
            process.stdin.write(len(footer).to_bytes(LENGTH_BYTES, "little") + footer)
            process.stdin.flush()

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """Return what it answers, nothing if it died; None where it takes too long."""
        if process.stdout is None or not select.select([process.stdout], [], [], self._patience)[0]:
            return None
        return process.stdout.read(1)

    def _end(self, process: subprocess.Popen[bytes], *, at_once: bool) -> int:
        """End it, if it has not ended by itself; return how it did."""
        self._process = None
        if not at_once:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(DYING_SECS)
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # What was not sent yet goes nowhere.
                    pipe.close()
        return process.wait()


# Without the working directory on its path: a module there may have a library's name.
TRIAL = Trial(sys.executable, "-P", "-m", "penguin.foreign.trial_process")
"""One for all tables; it begins with the first question and ends with the program."""
atexit.register(TRIAL.close)
