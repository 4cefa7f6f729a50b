"""Both programs on one table, over simulated hours; their pages are scraped once a minute.

Nothing is made up: batches are read and committed, the pages are served over the loopback and asked
for as Prometheus does. Only the clock is moved by hand, and it begins at the epoch, as that of
`promtool test rules` does.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blizzard.metrics import METRICS
from blizzard.pipeline import Pipeline
from lakebed.polling import Stop, run_step
from lakebed.retry import Backoff
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit, Event, StepFailed, StepFinished
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.metrics_server import build_info, observed
from penguin.delta.table import Log
from penguin.model.settings import TableSettings
from penguin.pipeline import TableRun, open_store
from penguin.telemetry import METRICS as PENGUIN
from tests.support.builders import Bench, Hands, ndjson, pipeline_settings, put, rows
from tests.support.scrape import Pages

MINUTE = 60.0
NAME = "default"
"""Of the pipeline and of its table."""
AT_ONCE = Backoff(first_secs=0.0)


@dataclass
class History:
    """What Prometheus would have of the scrapes: a value of each series for each minute."""

    minutes: int = 0
    samples: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, job: str, page: bytes | None) -> None:
        """Take in a scrape; None where nobody answered."""
        target = f'instance="{job}:9090",job="{job}"'
        self._put("up", "", target, "0" if page is None else "1")
        for line in (page or b"").decode().splitlines():
            if not line.startswith("#"):
                series, _space, value = line.rpartition(" ")
                name, _brace, labels = series.removesuffix("}").partition("{")
                self._put(name, labels, target, value)

    def _put(self, name: str, labels: str, target: str, value: str) -> None:
        key = f"{name}{{{labels}{',' if labels else ''}{target}}}"
        self.samples.setdefault(key, {})[self.minutes] = value

    def series(self, *metrics: str) -> Iterator[tuple[str, list[str | None]]]:
        """Yield the series of some metrics, or of all, with a value or nothing for each minute."""
        for key, values in self.samples.items():
            if not metrics or key.partition("{")[0] in metrics:
                yield key, [values.get(minute) for minute in range(self.minutes)]


@dataclass
class Program:
    """One of the two programs: what it does each minute, and its page."""

    job: str
    step: Callable[[], bool]
    kind: PartKind
    pages: Pages
    emit: Emit
    server: ExitStack
    alive: bool = True
    hung: threading.Thread | None = None

    def turn(self) -> None:
        """Take steps until there is nothing to do or one fails, as the program's loop does."""
        if not self.alive or self.hung is not None:
            return
        stop = Stop()

        def emit(event: Event) -> None:
            self.emit(event)
            if isinstance(event, StepFailed) or (
                isinstance(event, StepFinished) and not event.found
            ):
                stop.request()

        run_step(
            self.step,
            who=NAME,
            stop=stop,
            emit=emit,
            once=False,
            interval=lambda: 0.0,
            kind=self.kind,
            backoff=AT_ONCE,
        )

    def hang(self, reached: threading.Event, *, let_go: threading.Event) -> None:
        """Take a step that does not come to an end until the program is stopped."""
        self.hung = threading.Thread(target=self.step)
        self.hung.start()
        self.server.callback(self.hung.join)
        self.server.callback(let_go.set)
        assert reached.wait(300)

    def scrape(self) -> bytes | None:
        return self.pages.get("/metrics")[2] if self.alive else None

    def die(self) -> None:
        """Stop answering."""
        self.alive = False
        self.server.close()


@dataclass
class Lake:
    """A source, a table, and both programs."""

    root: Path
    hands: Hands
    history: History = field(default_factory=History)
    bench: Bench = field(init=False)
    table: TableSettings = field(init=False)
    log: type[Log] = Log
    _blizzard: Program | None = None
    _penguin: Program | None = None
    closing: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.source.mkdir()
        settings = pipeline_settings(self.source, self.root / "table")
        self.bench = Bench(settings, hands=self.hands)
        self.table = TableSettings(
            name=NAME, table_uri=str(self.root / "table"), storage_options=StorageOptions()
        )

    @property
    def source(self) -> Path:
        return self.root / "in"

    def change(self, **given: Any) -> None:
        """Change the settings of the pipeline, before it starts."""
        self.bench.settings = replace(self.bench.settings, **given)

    def land(self, name: str, body: bytes | None = None) -> None:
        """Let a source file arrive now."""
        put(self.source, name, ndjson(rows(3)) if body is None else body)
        os.utime(self.source / name, (self.hands.at, self.hands.at))

    @property
    def blizzard(self) -> Program:
        if self._blizzard is None:
            pipeline: list[Pipeline] = []

            def step() -> bool:
                if not pipeline:
                    pipeline.append(self.bench.stepping())
                    watched(pipeline[0], made.emit)
                return pipeline[0].step()

            made = self._program("blizzard", step, PartKind.PIPELINE)
            self._blizzard = made
        return self._blizzard

    @property
    def penguin(self) -> Program:
        if self._penguin is None:
            run: list[TableRun] = []

            def step() -> bool:
                if not run:
                    run.append(
                        TableRun(
                            settings=self.table,
                            emit=made.emit,
                            clock=self.hands.clock,
                            open_store=self.open_store,
                            open_log=self.log,
                            pause=self.hands.sleep,
                        )
                    )
                return run[0].step()

            made = self._program("penguin", step, PartKind.TABLE)
            self._penguin = made
        return self._penguin

    def open_store(self) -> Store | None:
        return open_store(self.table)

    def _program(self, job: str, step: Callable[[], bool], kind: PartKind) -> Program:
        pages, server = Pages(), ExitStack()
        part = HealthPart(kind, NAME)
        libraries = ("pyspark",) if kind is PartKind.PIPELINE else ()
        emit = server.enter_context(
            observed(
                pages.log,
                address="127.0.0.1:0",
                specs=METRICS if kind is PartKind.PIPELINE else PENGUIN,
                parts={part: 10.0},
                known=lambda: [build_info(kind, *libraries)],
                seconds=self.hands.seconds,
            )
        )
        self.closing.push(server)
        return Program(job, step, kind, pages, emit, server)

    def minutes(self, number: int, *, landing: str | None = None) -> None:
        """Let minutes pass: each program has its turn and is scraped; files may land meanwhile."""
        for _ in range(number):
            minute = self.history.minutes
            if landing is not None:
                self.land(f"{landing}-{minute:04}.ndjson")
            for program in (self.blizzard, self.penguin):
                program.turn()
                self.history.add(program.job, program.scrape())
            self.history.minutes += 1
            self.hands.at += MINUTE


def watched(pipeline: Pipeline, emit: Emit) -> None:
    """Let a pipeline report to a page."""
    pipeline.emit = pipeline._events.emit = emit


@contextmanager
def lake(root: Path) -> Iterator[Lake]:
    """Return a lake whose programs are stopped in the end."""
    root.mkdir(parents=True, exist_ok=True)
    found = Lake(root, Hands(at=0.0))
    with found.closing:
        yield found
