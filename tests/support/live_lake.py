"""A small lake with something of everything, and the live page served for it on the loopback."""

import json
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from blizzard.config import load as blizzard_config
from blizzard.metrics import METRICS
from lakebed.clock import Clock
from lakebed.storage.store import Store
from lakebed.telemetry.events import Emit
from lakebed.telemetry.health import HealthPart, PartKind
from lakebed.telemetry.metrics_server import observed
from lakebed.telemetry.settings import Guard
from liveview.answer_cache import Timeouts
from liveview.site import LiveSite
from penguin.config import load as penguin_config
from penguin.telemetry import METRICS as PENGUIN_METRICS
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.scrape import Pages
from tests.support.tables import commit_table

METRICS_ON = "metrics: {enabled: true}\n"
PATIENT = Timeouts(first=240, stale=240, other=240, answer=240)
"""Tests are about what is said, and not when: a busy machine takes its time."""
CANARY = "canary-7f3a"
"""Stands in rows and nowhere else: no answer may have it."""


def configuration(root: Path, *names: str, more: str = "") -> Path:
    """Write a configuration for both programs, with a table for each pipeline."""
    pipelines = "".join(
        f"""
  {name}:
    source: {{path: "{root}/{name}-in"}}
    sink: {{path: "{root}/{name}-table"}}
    schema: {{fields: [{{name: id, type: int64, nullable: false}}, {{name: name, type: string}}]}}
    error_handling: {{on_bad_record: quarantine, max_bad_ratio: 0.9}}"""
        for name in names
    )
    tables = "".join(
        f"""
  {name}-t:
    poll_interval_secs: 600
    table_uri: "{root}/{name}-table\""""
        for name in names
    )
    file = root / "lake.yaml"
    file.write_text(f"pipelines:{pipelines}\ntables:{tables}\n{more or METRICS_ON}")
    return file


@dataclass
class LiveLake:
    """Pipelines and tables below a folder, run in this process."""

    root: Path
    names: tuple[str, ...] = ("orders", "clicks")
    more: str = ""
    file: Path = field(init=False)

    def __post_init__(self) -> None:
        self.file = configuration(self.root, *self.names, more=self.more)
        for name in self.names:
            (self.root / f"{name}-in").mkdir(exist_ok=True)

    @property
    def blizzard(self):
        return blizzard_config.load([self.file], [], os.environ)

    @property
    def penguin(self):
        return penguin_config.load([self.file], [], os.environ)

    def land(self, pipeline: str, name: str, rows: int, *, bad: int = 0) -> None:
        """Write a source file; its bad lines have a text where a number belongs."""
        lines = [{"id": number, "name": f"{CANARY} {number}"} for number in range(rows)]
        lines += [{"id": CANARY, "name": "x"} for _ in range(bad)]
        file = self.root / f"{pipeline}-in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def ingest(self, pipeline: str, emit: Emit = lambda _event: None) -> None:
        """Read what is there."""
        settings = next(one for one in self.blizzard.pipelines if one.name == pipeline)
        running = pipeline_of(settings, InProcessRunner(), emit=emit)
        while running.step():
            pass

    def commit(self, pipeline: str) -> None:
        """Commit what is journaled."""
        table = next(one for one in self.penguin.tables if one.name == f"{pipeline}-t")
        store = Store(table.table_uri, table.storage_options)
        commit_table(table, store, lambda _event: None, Clock())

    def fill(self) -> None:
        """Make something of everything: batches, bad lines, a failed file, one that waits."""
        for number in range(3):
            self.land("orders", f"2024/a{number}.ndjson", 10 + number, bad=number)
            self.ingest("orders")
            self.commit("orders")
        self.land("orders", "2024/late.ndjson", 5)
        self.ingest("orders")
        broken = self.root / "orders-in" / "2024" / "broken.ndjson.gz"
        broken.write_bytes(b"\x1f\x8b nothing of gzip")
        self.ingest("orders")
        self.land("orders", "2024/waits.ndjson", 1)

    @contextmanager
    def served(
        self,
        program: Literal["blizzard", "penguin"] = "blizzard",
        *,
        guard: Guard | None = None,
        clock: Clock | None = None,
        port: int = 0,
    ) -> Iterator[tuple[Pages, LiveSite, Emit]]:
        """Serve the page as a run of a program does."""
        own: Any = self.blizzard if program == "blizzard" else self.penguin
        kind = PartKind.PIPELINE if program == "blizzard" else PartKind.TABLE
        named = own.pipelines if program == "blizzard" else own.tables
        parts = [HealthPart(kind, one.name) for one in named]
        site = LiveSite(
            program,
            own,
            files=[self.file],
            folders=[],
            environment=os.environ,
            parts=parts,
            clock=clock,
            patience=PATIENT,
        )
        pages = Pages()
        if guard is not None and guard.tls_cert_file is not None:
            pages.trusted = ssl.create_default_context(cafile=guard.tls_cert_file)
        with observed(
            pages.log,
            address=f"127.0.0.1:{port}",
            specs=METRICS + PENGUIN_METRICS,
            parts=dict.fromkeys(parts, 10.0),
            seconds=Clock().seconds,
            guard=guard,
            page=site,
        ) as emit:
            yield pages, site, emit


def asked(pages: Pages, path: str) -> Any:
    """Return a document; it must be there."""
    status, _headers, body = pages.get(path)
    assert status == 200, (path, status, body)
    return json.loads(body)
