"""`blizzard gc`: what a killed process left unfinished."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from blizzard.repair.gc import GarbageKind, collect, find_garbage
from lakebed.clock import Clock
from lakebed.layout import batch_started
from lakebed.storage.store import Store
from tests.support.builders import Hands, ndjson, no_options, put, rows, tree
from tests.support.commands import Desk, told

FILE = "018cc4e5-2200-7000-8000-000000000001.parquet"
KILLED = """
import os, sys
from pathlib import Path
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
table, name, body = sys.argv[1:]
parts = iter([lambda: None, lambda: os._exit(9)])
Store(table, StorageOptions()).upload(
    name, Path(body), part_size=1024, multipart=True, max_parts=1,
    part_taken=lambda: next(parts)(),
)
"""


def a_batch(desk: Desk, number: int = 0, **given: Any) -> None:
    put(desk.landing, f"{number}.ndjson", ndjson(rows(2, number * 2)))
    bench = desk.bench(**given).again(run_id=f"run-{number}", hands=Hands(at=1.7e9 + number))
    assert bench.pipeline().step()


def aged(path: Path, *, hours: float = 48) -> None:
    then = Clock().seconds() - hours * 3600
    os.utime(path, (then, then))


def left(desk: Desk, name: str, body: bytes = b"half of it", *, hours: float = 48) -> str:
    put(desk.table, name, body)
    aged(desk.table / name, hours=hours)
    return name


def pieces(desk: Desk, *arguments: str) -> dict[str, str]:
    (shown,) = told(desk.run("gc", *arguments, "--output", "json"))
    return {one["path"]: one["kind"] for one in shown["pieces"]}


def test_an_upload_that_was_killed_is_shown_and_then_deleted(desk, tmp_path):
    """HOLES W46: a worker that is killed in an upload leaves a file that no listing shows."""
    a_batch(desk)
    body = tmp_path / "body"
    body.write_bytes(b"x" * 4096)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, desk.table, f"date=2024-01-01/{FILE}", body], check=False
    )
    assert killed.returncode == 9
    (unfinished,) = desk.table.rglob("*.parquet#*")
    name = str(unfinished.relative_to(desk.table))
    assert name.startswith(f"date=2024-01-01/{FILE}#")
    aged(unfinished)
    before = tree(desk.table)
    assert pieces(desk) == {name: "unfinished"}
    assert "unfinished files" in desk.run("gc").stdout
    assert tree(desk.table) == before
    assert pieces(desk, "--delete") == {name: "unfinished"}
    assert not unfinished.exists()
    assert pieces(desk) == {}
    assert len(desk.bench().entries()) == 2, "nobody can name it, so no entry need say so"


@pytest.mark.parametrize("span", ["0s", "10m", "24h"])
def test_what_somebody_may_still_write_to_is_never_touched(desk, span):
    """HOLES W46: an hour without a write is the least, whatever is asked for."""
    a_batch(desk)
    name = left(desk, f"{FILE}#1", hours=0.5)
    assert pieces(desk, "--older-than", span, "--delete") == {}
    assert (desk.table / name).exists()
    (shown,) = told(desk.run("gc", "--older-than", span, "--output", "json"))
    assert shown["young_files"] == 1


def test_a_name_from_the_future_counts_as_young(desk):
    """HOLES W46: by its name or by the store, whichever is later."""
    a_batch(desk)
    left(desk, f"{Clock().fresh_id()}.parquet#1")
    assert pieces(desk, "--older-than", "0s") == {}


def test_unfinished_files_are_found_wherever_the_programs_write(desk):
    """HOLES W46: in the log, in the journal, in the dead letter queue, in the outbox."""
    a_batch(desk)
    desk.commit()
    log = "_delta_log/00000000000000000001.json#1"
    ours = {
        left(desk, log),
        left(desk, "_delta_log/_last_checkpoint#3"),
        left(desk, "_blizzard/protocol/2.json#1"),
        left(desk, "_blizzard/default/journal/00000000000000000002.json#1"),
        left(desk, "_blizzard/default/dlq/failures-20240101-120000-x.ndjson#1"),
        left(desk, f"_blizzard/default/outbox/{FILE}#1"),
        left(desk, "_blizzard/default/receipt.json#2"),
        left(desk, "_staging/pending/x.meta.json#1"),
        left(desk, f"{FILE}#12"),
    }
    others = {
        left(desk, "_blizzard/other/journal/00000000000000000002.json#1"),
        left(desk, "notes.txt#1"),
        left(desk, "_tmp/x.parquet#1"),
        left(desk, f"{FILE}#1x"),
    }
    assert pieces(desk) == dict.fromkeys(ours, "unfinished")
    assert set(pieces(desk, "--delete")) == ours
    assert all(not (desk.table / name).exists() for name in ours)
    assert all((desk.table / name).exists() for name in others)
    assert DeltaTable(str(desk.table)).version() == 1
    assert desk.run("status").exit_code == 0


def test_they_are_found_where_the_first_start_was_killed(desk):
    """HOLES W46: before there is a journal, nothing else can be garbage."""
    name = left(desk, "_blizzard/protocol/0.json#1")
    assert pieces(desk) == {name: "unfinished"}
    assert pieces(desk, "--delete") == {name: "unfinished"}
    assert not (desk.table / name).exists()


def test_garbage_and_leftovers_go_together(desk):
    """HOLES W46: the entry names what a batch might have named, and only that."""
    a_batch(desk)
    (file,) = desk.bench().entries()[1].files
    left(desk, FILE, (desk.table / file.filename).read_bytes())
    left(desk, f"{FILE}#1")
    found = pieces(desk, "--delete")
    assert found == {FILE: "data", f"{FILE}#1": "unfinished"}
    assert desk.bench().entries()[-1].deleted == (FILE,)


def test_an_empty_note_of_the_next_batch_goes_once_it_is_old(desk):
    """HOLES W46: a power cut left it without a word, and a start cannot read it."""
    a_batch(desk)
    note = left(desk, batch_started("default", 2), b"")
    whole = left(desk, batch_started("default", 3), json.dumps({"starts": 1}).encode())
    young = left(desk, batch_started("default", 4), b"", hours=1)
    assert pieces(desk) == {note: "started_note"}
    assert set(pieces(desk, "--delete")) == {note}
    assert (desk.table / whole).exists()
    assert (desk.table / young).exists()


def test_a_store_that_is_no_disk_has_no_unfinished_files(desk):
    store = Store(str(desk.root), no_options())
    store.local_root = None
    assert list(store.unfinished()) == []


def test_an_unfinished_file_that_is_gone_meanwhile_is_no_trouble(desk):
    """HOLES W46: its writer may have finished it between the look and the deletion."""
    a_batch(desk)
    name = left(desk, f"{FILE}#1")
    found = find_garbage(
        desk.store,
        "default",
        frozenset,
        now=Clock().now(),
        older_than=timedelta(hours=24),
    )
    assert [(one.path, one.kind) for one in found.leftovers] == [(name, GarbageKind.UNFINISHED)]

    class Vanishing(Store):
        def delete(self, path: str) -> None:
            super().delete(path)
            super().delete(path)

    done = collect(
        Vanishing(str(desk.table), no_options()),
        "default",
        frozenset,
        clock=Clock(),
        older_than=timedelta(hours=24),
    )
    assert [one.path for one in done.pieces] == [name]
