"""Journals in which everything happens that an entry can tell, made from a list of choices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from blizzard.discover.scan import gone
from blizzard.handoff.dead_letters import encode as encode_letters
from blizzard.handoff.dead_letters import letters
from lakebed import layout
from lakebed.clock import uuid7
from lakebed.documents.entry import Entry, digest, encode
from lakebed.documents.records import (
    BadLines,
    Failure,
    FailureStage,
    QuarantineFile,
    Resolved,
    SourceRecord,
)
from lakebed.types import Handoff
from tests.support.bucket import Bucket
from tests.support.builders import ID_AND_NAME, NOON, finished_file, rewrite

TABLE = "s3://bucket/table"
SOURCES = {"default": "s3://bucket/in", "other": "s3://bucket/other"}
PATHS = ("a/1.ndjson", "a/2.ndjson", "b/1.ndjson", "c.ndjson", "d.ndjson")
STEPS = (
    "batch", "bad batch", "part", "gone", "retry", "redo", "replay", "discard", "gc", "promote",
    "retract", "erase", "compact",
    "moved", "inherited", "closed", "clock back",
)  # fmt: skip
"""What can happen in a journal; each comes with a number that chooses among what there is."""


@dataclass(slots=True)
class Story:
    """A journal that is written step by step; `entries` and `letters` are what is in the store."""

    entries: list[tuple[Entry, bytes]] = field(default_factory=list)
    letters: dict[str, bytes] = field(default_factory=dict)
    unfinished: dict[str, SourceRecord] = field(default_factory=dict)
    units: dict[str, Entry] = field(default_factory=dict)
    """The data files that were not given up, by their names."""
    waiting: dict[str, QuarantineFile] = field(default_factory=dict)
    back: timedelta = timedelta(0)

    def tell(self, steps: Sequence[tuple[str, int]]) -> "Story":
        """Write the entries of some steps."""
        self._append("open")
        for step, choice in steps:
            self._step(step, choice)
        return self

    def _step(self, step: str, choice: int) -> None:
        records = [each for _key, each in sorted(self.unfinished.items())]
        failed = [each for each in records if each.failure is not None and not each.gone]
        match step:
            case "batch" | "bad batch" | "part":
                self._batch(step, choice)
            case "gone" if records:
                left = records[choice % len(records)]
                self._append("batch", sources=(gone(left),))
            case "retry" if failed:
                self._append("retry", sources=(replace(failed[choice % len(failed)], retry=True),))
            case "redo" if self.units:
                self._redo(sorted(self.units)[choice % len(self.units)])
            case "replay" | "discard" if self.waiting:
                self._resolve(step, sorted(self.waiting)[choice % len(self.waiting)], choice)
            case "retract" if self.units:
                self._retract(sorted(self.units)[choice % len(self.units)])
            case "promote" | "erase" | "compact" if self.units:
                old = sorted(self.units)[choice % len(self.units)]
                new = finished_file(f"new-{len(self.entries)}.parquet")
                left_out = choice % 3 if step == "erase" else 0
                one = rewrite(f"{old}.parquet", new, left_out=left_out)
                erased = {"s3://bucket/in/a": 1} if step == "erase" else {}
                self._append(step, rewrites=(one,), erased=erased)
            case _:
                self._note(step, choice)

    def _note(self, step: str, choice: int) -> None:
        """Write an entry that says nothing of what was read."""
        match step:
            case "clock back":
                self.back += timedelta(minutes=choice * 40)
                self._append("gc", deleted=("x.parquet",))
            case "moved":
                self._append("moved", moved="other", source_uris={**SOURCES, "other": "s3://b/o"})
            case "closed":
                self._append("closed", heir="heir")
            case "inherited":
                done = SourceRecord(source="other", path=PATHS[choice % 5], size=3, etag="i")
                self._append("inherited", sources=(done,))
            case _:
                self._append("gc", deleted=("x.parquet",))

    def _batch(self, step: str, choice: int) -> None:
        number = len(self.entries)
        source = "other" if choice % 7 == 3 else "default"
        paths = (PATHS[choice % 5], PATHS[(choice + 2) % 5])
        read = SourceRecord(
            source=source,
            path=paths[0],
            size=choice,
            etag=f"e{number}",
            lines=4,
            blank=1,
            filtered=choice % 2,
            quarantined=1,
            rows=2 - choice % 2,
            complete=step != "part",
            unit=f"{number}.0",
            rescued={f"x{choice % 3}": 2},
            dropped={f"y{choice % 4}": choice + 1},
        )
        failure = Failure(
            stage=FailureStage.PARSE if choice % 2 else FailureStage.DOWNLOAD,
            code="bad_json",
            message="it went wrong",
            retryable=choice % 2 == 0,
            attempts=choice % 3 + 1,
        )
        bad = replace(
            SourceRecord(source="default", path=paths[1], size=5, etag="f"), failure=failure
        )
        quarantined = QuarantineFile(
            filename=layout.quarantine_file("default", _uuid(number)),
            size=9,
            record_count=1,
            unit=f"{number}.0",
            sources=(
                BadLines(source=read.key, lines=1, first=2, code="wrong_type", message="no int"),
            ),
        )
        sources = (read, bad) if step == "bad batch" else (read,)
        name = layout.dead_letters(NOON, _uuid(number))
        found = letters(sources, pipeline="default", batch=number, source_uris=SOURCES, at=NOON)
        if found:
            self.letters[name] = encode_letters(found)
        file = finished_file(f"{number}.parquet", unit=f"{number}.0")
        self._append(
            "batch",
            sources=sources,
            files=(file,),
            quarantine=(quarantined,),
            dlq=(f"{TABLE}/{layout.dead_letter_folder('default')}/{name}",) if found else (),
        )

    def _redo(self, name: str) -> None:
        entry = self.units[name]
        lost = Failure(stage=FailureStage.UPLOAD, code="output_lost", message="gone", attempts=0)
        again = tuple(
            replace(each, failure=lost, redo=True, lines=0, rows=0, rescued={}, dropped={})
            for each in entry.sources
            if each.failure is None
        )
        self._append("redo", sources=again, redone=(name,), resolved=self._given_up(entry))

    def _retract(self, name: str) -> None:
        entry = self.units.pop(name)
        done = [each for each in entry.sources if each.failure is None and each.complete]
        sources = tuple(
            SourceRecord(
                source=each.source,
                path=each.path,
                size=each.size,
                etag=each.etag,
                lines=each.rows,
                rows=each.rows,
                retracted=True,
            )
            for each in done
        )
        file = rewrite(f"{name}.parquet", left_out=len(sources))
        self._append("retract", sources=sources, rewrites=(file,), resolved=self._given_up(entry))

    def _given_up(self, entry: Entry) -> tuple[Resolved, ...]:
        """Give up the bad lines of an entry that still wait."""
        left = (file for file in entry.quarantine if file.filename in self.waiting)
        return tuple(Resolved(old=file.filename, lines=file.record_count) for file in left)

    def _resolve(self, kind: str, name: str, choice: int) -> None:
        file, number = self.waiting[name], len(self.entries)
        left = replace(file, filename=layout.quarantine_file("default", _uuid(number)))
        became = {file.sources[0].source: 1} if kind == "replay" else {}
        one = Resolved(
            old=file.filename,
            lines=1,
            replayed=became,
            left=replace(left, record_count=0) if choice % 2 else None,
        )
        files = (finished_file(f"{number}.parquet"),) if kind == "replay" else ()
        self._append(kind, resolved=(one,), files=files)

    def _append(self, kind: str, **given: Any) -> None:
        number = len(self.entries)
        at = NOON + timedelta(hours=number) - self.back
        usual: dict[str, Any] = {
            "kind": kind,
            "pipeline": "default",
            "journal": "j",
            "sequence": number,
            "run": f"r{number // 3}",
            "created": at.isoformat(),
            "previous": digest(self.entries[-1][1]) if self.entries else None,
            "handoff": Handoff.JOURNAL,
            "source_uris": SOURCES,
            "table_schema": ID_AND_NAME.delta(),
            "partition_columns": (),
        }
        entry = Entry(**(usual | given))
        self.entries.append((entry, encode(entry)))
        self._learn(entry)

    def _learn(self, entry: Entry) -> None:
        for record in entry.sources:
            if record.failure is None and record.complete:
                self.unfinished.pop(record.key, None)
            else:
                self.unfinished[record.key] = record
        for name in entry.redone:
            del self.units[name]
        if entry.kind == "batch":
            self.units |= {layout.file_name(file.filename): entry for file in entry.files}
        self.waiting |= {file.filename: file for file in entry.quarantine}
        for one in entry.resolved:
            self.waiting.pop(one.old)
            if one.left is not None:
                self.waiting[one.left.filename] = one.left

    def table(self, entries: int | None = None) -> Bucket:
        """Return a table's directory with the first entries, and all dead letters."""
        store = Bucket(uri=TABLE)
        for entry, body in self.entries[:entries]:
            store.replace(layout.journal_entry("default", entry.sequence), body)
        for name, body in self.letters.items():
            store.replace(f"{layout.dead_letter_folder('default')}/{name}", body)
        return store

    def kinds(self) -> Iterator[str]:
        """Yield the kinds of its entries."""
        return (entry.kind for entry, _body in self.entries)


def _uuid(number: int) -> UUID:
    # Names do not come in the order of the entries.
    return uuid7(1000 - number, number.to_bytes(10, "big"))
