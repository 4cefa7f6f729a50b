"""The channel between running tasks and the driver: progress one way, what to do the other.

It is advisory. Correctness never depends on it: a task that cannot reach the driver goes on
without, and a message that is lost is followed by the next. Python accumulators would not do: they
move only when a task ends.
"""

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import ProcessError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from typing import Self

from blizzard.model.progress import Address, Done, Instruction, Progress, Report

BEAT_SECS = 0.5
PATIENCE_SECS = 2.0


@dataclass(kw_only=True)
class ProgressChannel:
    """A unit's end of the channel; this one reaches no driver."""

    attempt: str = ""
    """The name of this attempt at the unit; no other attempt has it."""
    progress: Progress = field(default_factory=Progress)
    """What is reported to the driver; the unit keeps it up to date."""
    done: Done = field(default_factory=Done)
    """What is finished; the unit adds to it."""

    @property
    def stop_soon(self) -> bool:
        """Whether the driver wants the unit to finish cleanly at once."""
        return False

    @property
    def hand_in(self) -> bool:
        """Whether the driver wants the unit to finish cleanly, because the batch is old enough."""
        return False

    def report(self) -> None:
        """Call the driver now, and wait for its answer; a silent driver is not waited for."""


class ProgressClient(ProgressChannel):
    """A task's end of the channel, open while one unit runs. Its trouble never fails the task.

    `reached` says whether the driver has answered at all. A unit that is run `again`, because its
    worker died, is not asked to hand in: it might die unnoticed in one batch after the other.
    """

    def __init__(
        self,
        address: Address | None,
        unit: str,
        *,
        job: str = "",
        again: bool = False,
        patience: float = PATIENCE_SECS,
    ) -> None:
        super().__init__(attempt=secrets.token_hex(8))
        self._address = address
        self._unit = unit
        self._job = job
        self._again = again
        self._worker = f"{socket.gethostname()}, process {os.getpid()}"
        self._patience = patience
        self.reached = False
        self._instruction = Instruction.GO_ON
        self._answered = threading.Event()
        self._news = threading.Condition()
        self._reports = 0
        """How many messages the unit wanted to send at once."""
        self._told = 0
        """How many of them the driver has answered."""
        self._over = False
        self._gone = address is None
        """Whether no listener is left to report to."""
        self._thread = threading.Thread(target=self._call, name="progress-client", daemon=True)

    @property
    def stop_soon(self) -> bool:
        """Whether the driver wants the unit to finish cleanly at once."""
        return self._instruction is Instruction.STOP

    @property
    def hand_in(self) -> bool:
        """Whether the driver wants the unit to finish cleanly, because the batch is old enough."""
        return self._instruction is Instruction.HAND_IN and not self._again

    def report(self) -> None:
        """Call the driver now, and wait for its answer; a silent driver is not waited for."""
        with self._news:
            self._reports += 1
            wanted = self._reports
            self._news.notify_all()
            self._news.wait_for(lambda: self._told >= wanted or self._gone, self._patience)

    def __enter__(self) -> Self:
        if self._address is not None:
            self._thread.start()
            # A stop is to be known before anything is read; a driver that is silent is not
            # waited for.
            self._answered.wait(self._patience)
        return self

    def __exit__(self, *_error: object) -> None:
        with self._news:
            self._over = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join(self._patience)

    def _call(self) -> None:
        address = self._address
        if address is None:
            return
        with (
            contextlib.suppress(OSError, EOFError, ProcessError),
            Client((address.host, address.port)) as connection,
        ):
            _send_at_once(connection)
            answer_challenge(connection, address.token)
            deliver_challenge(connection, address.token)
            self._say(connection)
            while not self._wait():
                self._say(connection)
            self._say(connection)
        with self._news:
            self._gone = True
            self._news.notify_all()
        self._answered.set()

    def _wait(self) -> bool:
        """Wait for the next beat, or for urgent news; True once the unit has ended."""
        with self._news:
            self._news.wait_for(lambda: self._over or self._reports > self._told, BEAT_SECS)
            return self._over

    def _say(self, connection: Connection) -> None:
        reports = self._reports
        connection.send(
            Report(
                unit=self._unit,
                job=self._job,
                attempt=self.attempt,
                worker=self._worker,
                progress=self.progress,
                done=self.done,
            )
        )
        instruction: Instruction = connection.recv()
        self.reached = True
        if self._instruction is not Instruction.STOP:
            self._instruction = instruction
        self._answered.set()
        with self._news:
            self._told = reports
            self._news.notify_all()


def _send_at_once(connection: Connection) -> None:
    """Let no word wait for the one before to be acknowledged: it cost every task 40 ms.

    That is why both ends do by hand what `Client` and `Listener` would do, given the token.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class ProgressServer:
    """The driver's end: it receives every running unit's reports and answers what to do.

    `host` is what executors call. The driver may have to listen at another address, `bind`: inside
    a container, or where its machine is known by another name outside.
    """

    def __init__(
        self,
        host: str,
        *,
        bind: str | None = None,
        port: int = 0,
        stop_requested: Callable[[], bool],
        heard: Callable[[Report], None],
        instruction: Callable[[str, Progress], Instruction] = lambda _unit, _progress: (
            Instruction.GO_ON
        ),
        call: Callable[[tuple[str, int]], Connection] = Client,
        patience: float = PATIENCE_SECS,
    ) -> None:
        token = secrets.token_bytes(32)
        # The listener lets everybody in and each caller is asked for the word in a thread of its
        # own: one that connects and says nothing must not keep the others out.
        self._listener = Listener((bind or host, port), backlog=64)
        self._own_door = (bind or host, int(self._listener.address[1]))
        self.address = Address(host, self._own_door[1], token)
        self._stop_requested = stop_requested
        self._heard = heard
        self._instruction = instruction
        self._call = call
        self._patience = patience
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="progress-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up."""
        self._closed.set()
        with contextlib.suppress(OSError):
            # The listener waits for a caller; a last call wakes it. It is not to wait for an
            # answer: a listener that was awake may have gone already.
            self._call(self._own_door).close()
        # Nor is it waited for where the last call could not be made: no file handle was left.
        self._thread.join(self._patience)
        self._listener.close()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
            except OSError:  # a caller that has hung up; or no file handle to be had, which passes
                self._closed.wait(BEAT_SECS)
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with contextlib.suppress(OSError, EOFError, ProcessError), connection:
            _send_at_once(connection)
            deliver_challenge(connection, self.address.token)
            answer_challenge(connection, self.address.token)
            while True:
                report: Report = connection.recv()
                self._heard(report)
                instruction = self._instruction(report.unit, report.progress)
                connection.send(Instruction.STOP if self._stop_requested() else instruction)
