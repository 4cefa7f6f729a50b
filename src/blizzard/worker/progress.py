"""The channel between running tasks and the driver: progress reports and instructions.

It is advisory: a task that cannot reach the driver continues, and each report replaces the last.
Spark's accumulators would not do, since they are updated only when a task ends.
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

from blizzard.model.progress import Address, Instruction, Progress, Report

BEAT_SECS = 0.5
PATIENCE_SECS = 2.0


@dataclass(kw_only=True)
class ProgressChannel:
    """A unit's end of the channel; this base class has no driver."""

    progress: Progress = field(default_factory=Progress)
    """The reported progress, updated by the unit."""

    @property
    def stop_soon(self) -> bool:
        """Whether the driver wants the unit to finish cleanly at once."""
        return False

    @property
    def hand_in(self) -> bool:
        """Whether the driver wants the unit to finish cleanly, because the batch is old enough."""
        return False


class ProgressClient(ProgressChannel):
    """A task's end of the channel, open while one unit runs. Its errors never fail the task.

    A unit that runs `again`, because its worker died, ignores requests to hand in: it might die
    unnoticed in batch after batch.
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
        super().__init__()
        self._address = address
        self._unit = unit
        self._job = job
        self._again = again
        self._worker = f"{socket.gethostname()}, process {os.getpid()}"
        self._patience = patience
        self._instruction = Instruction.GO_ON
        self._answered = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._call, name="progress-client", daemon=True)

    @property
    def stop_soon(self) -> bool:
        """Whether the driver wants the unit to finish cleanly at once."""
        return self._instruction is Instruction.STOP

    @property
    def hand_in(self) -> bool:
        """Whether the driver wants the unit to finish cleanly, because the batch is old enough."""
        return self._instruction is Instruction.HAND_IN and not self._again

    def __enter__(self) -> Self:
        if self._address is not None:
            self._thread.start()
            # Learn of a stop before reading anything, but do not wait long for a silent driver.
            self._answered.wait(self._patience)
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
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
            self._send(connection)
            while not self._over.wait(BEAT_SECS):
                self._send(connection)
            self._send(connection)
        self._answered.set()

    def _send(self, connection: Connection) -> None:
        connection.send(
            Report(
                unit=self._unit,
                job=self._job,
                worker=self._worker,
                progress=self.progress,
            )
        )
        instruction: Instruction = connection.recv()
        if self._instruction is not Instruction.STOP:
            self._instruction = instruction
        self._answered.set()


def _send_at_once(connection: Connection) -> None:
    """Set TCP_NODELAY: Nagle's algorithm delayed every task by 40 ms.

    For this reason both ends perform the token handshake themselves, which `Client` and `Listener`
    would do before the option can be set.
    """
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class ProgressServer:
    """The driver's end: it receives the reports of all running units and answers instructions.

    Executors connect to `host`. The driver may have to listen at another address, `bind`, such as
    inside a container.
    """

    def __init__(
        self,
        host: str,
        *,
        bind: str | None = None,
        port: int = 0,
        stop_requested: Callable[[], bool],
        heard: Callable[[Report], None],
        instruction: Callable[[str], Instruction] = lambda _unit: Instruction.GO_ON,
        call: Callable[[tuple[str, int]], Connection] = Client,
        patience: float = PATIENCE_SECS,
    ) -> None:
        token = secrets.token_bytes(32)
        # Each caller is authenticated in its own thread, so that a silent one does not block the
        # others.
        self._listener = Listener((bind or host, port), backlog=64)
        self._own_address = (bind or host, int(self._listener.address[1]))
        self.address = Address(host, self._own_address[1], token)
        self._stop_requested = stop_requested
        self._heard = heard
        self._instruction = instruction
        self._call = call
        self._patience = patience
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="progress-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        with contextlib.suppress(OSError):
            # A last connection wakes the listener; it may have ended, so do not wait for an answer.
            self._call(self._own_address).close()
        # Do not wait forever: without a free file handle, nothing has woken it.
        self._thread.join(self._patience)
        self._listener.close()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
            except OSError:  # the caller has disconnected, or no file handle is free for now
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
                instruction = self._instruction(report.unit)
                connection.send(Instruction.STOP if self._stop_requested() else instruction)
