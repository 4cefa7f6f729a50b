"""A name that comes from outside leads nowhere but below its root, whoever wrote it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import penguin.cli.app
from lakebed.deltalog.checkpoint import sidecar_of
from lakebed.documents.entry import digest
from lakebed.documents.pending_meta import Meta
from lakebed.errors import LakeError, NameUnusable, TableUnreadable
from lakebed.layout import TablePath, folder, journal_folder, log_version
from lakebed.listing.sort import is_usable, leads_elsewhere
from lakebed.storage.store import Store
from lakebed.terminal.call import USAGE
from penguin.foreign.rules import why_not_a_data_file
from tests.support.builders import facts, ndjson, no_options, put, rows
from tests.support.commands import Desk
from tests.support.foreign import Directory

CANARY = "canary-outside"
UUID = "018cc4e5-2200-7000-8000-000000000001"
parts = st.sampled_from(
    [
        "..", ".", "", "%2e%2e", "%2E.", "..%2f..", "%2F", "..\\..", "\\", "\0", "a\nb", "\x7f",
        "\x1b[2J", "~", "$HOME", "a", "table", "secret", "file:", "s3:", "etc", "n" * 300,
        "é" * 200, "\ud800",
    ]
)  # fmt: skip
hostile = st.lists(parts, min_size=1, max_size=6).map("/".join)


@contextmanager
def disk() -> Iterator[tuple[Path, Store]]:
    """Make a table beside a file that nobody may touch."""
    with TemporaryDirectory() as made:
        root = Path(made)
        (root / "table/a/table").mkdir(parents=True)
        (root / "table/a/inside").write_text("inside")
        for name in ("secret", f"{UUID}.parquet", "secret#1"):
            (root / name).write_text(CANARY)
        yield root, Store(str(root / "table"), no_options())


def outside(root: Path) -> dict[str, str]:
    """Return all that lies beside the table."""
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): path.read_text() for path in found if root / "table" not in path.parents}


@given(name=hostile)
@example(name="../secret")
@example(name="../secret#1")
@example(name="/etc/hostname")
@example(name="a/../../secret")
@settings(max_examples=150)
def test_no_name_leads_out_of_a_store(name: str):
    """HOLES W23: reading finds nothing there, writing and deleting are refused in our words."""
    with disk() as (root, store):
        before = outside(root)
        found = [store.get(name), store.get_range(name, start=0, length=9), store.head(name)]
        assert not any(CANARY in str(each) for each in found)
        for read in (
            lambda: store.part(name, 0, len(CANARY), etag=None),
            lambda: b"".join(store.stream(name, size=len(CANARY), etag=None)),
        ):
            with pytest.raises(LakeError):
                read()
        writes = (
            lambda: store.create(name, b"x"),
            lambda: store.replace(name, b"x"),
            lambda: store.move("a/inside", name, size=6),
            lambda: store.delete(name),
        )
        told: list[str] = []
        for write in writes:
            try:
                write()
            except NameUnusable as refused:
                told.append(str(refused))
            except LakeError:
                pass  # a folder of that name is there, or the name is too long for a disk
            else:
                assert is_usable(name, remote=False)
        assert len(told) == (0 if is_usable(name, remote=False) else len(writes))
        assert "\n" not in "".join(told)
        assert outside(root) == before


@given(st.lists(st.sampled_from(["..", ".", "", "x", "%2e%2e", "..x", "x=.."]), max_size=5))
def test_what_leads_elsewhere_is_what_a_disk_would_resolve_elsewhere(some: list[str]):
    path = "/".join(some)
    resolved = os.path.normpath(f"/root/{path}")
    assert leads_elsewhere(path) == (resolved != f"/root/{path}" or path.startswith("/"))


@given(values=st.dictionaries(st.text(min_size=1), st.none() | st.text(), min_size=1))
@example(values={"..": ".."})
@example(values={"a/../..": "/etc"})
@example(values={"a": "\0"})
def test_no_partition_value_makes_a_folder_elsewhere(values: dict[str, str | None]):
    """HOLES W23: a value from a row is one part of a path, whatever stands in it."""
    made = folder(values)
    assert not leads_elsewhere(made)
    assert len(made.split("/")) == len(values)
    assert all("=" in part for part in made.split("/"))


@given(name=hostile)
def test_a_meta_asks_for_no_file_outside(name: str):
    meta = Meta(
        filename=f"{name}/{UUID}.parquet",
        size=1,
        record_count=1,
        partition_values={},
        source_file=None,
    )
    wrong = why_not_a_data_file(f"_staging/pending/{UUID}.meta.json", meta)
    assert wrong is not None or not leads_elsewhere(meta.filename)
    assert wrong is None or "\n" not in wrong


@given(name=hostile)
def test_a_checkpoint_refers_to_no_file_outside_its_log(name: str):
    with disk() as (_root, store), pytest.raises(TableUnreadable):
        sidecar_of(store, facts("_delta_log/0.checkpoint.parquet"), name)


# ------------------------------------------------------------------------------- end to end

WAYS_OUT = [
    f"../{UUID}.parquet",
    "../outside.parquet",
    f"date=2024-01-01/../../{UUID}.parquet",
    "{root}/outside.parquet",
    "file://{root}/outside.parquet",
    f"%2e%2e/{UUID}.parquet",
    "s3://another-bucket/x.parquet",
    "..\\outside.parquet",
    "a\nb.parquet",
    "\0",
    f"{'n' * 300}/{UUID}.parquet",
]


def beside(root: Path) -> dict[str, bytes]:
    """Put files beside a table, and return them."""
    body = CANARY.encode()
    for name in ("outside.parquet", f"{UUID}.parquet"):
        put(root, name, body)
    return {path.name: path.read_bytes() for path in root.glob("*.parquet")}


def penguin_once(file: Path, *arguments: str) -> str:
    done = CliRunner().invoke(penguin.cli.app.app, [*arguments, "-c", str(file)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.output


def configured(desk: Desk) -> Path:
    file = desk.config()
    file.write_text(f"{file.read_text()}tables: {{events: {{table_uri: {desk.table}}}}}\n")
    return file


def everything(desk: Desk, file: Path) -> str:
    """Run every command that reads or deletes what documents name."""
    commands: list[tuple[str, ...]] = [
        ("status",),
        ("audit", "--deep"),
        ("gc", "--delete", "--older-than", "0h"),
        ("redo", "--yes"),
        ("journal", "1"),
        ("dlq", "list"),
        ("dlq", "discard", "--all", "--yes"),
        ("schema", "promote", "name", "--yes"),
        ("--once",),
    ]
    told = []
    for words in commands:
        done = desk.run(*words, config=file)
        assert done.exit_code != USAGE, done.output
        told.append(done.output)
    told += [penguin_once(file, *words) for words in (("--once",), ("status",))]
    return "\n".join(told)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    put(desk.landing, "a.ndjson", ndjson(rows(3)))
    return desk


@pytest.mark.parametrize("name", WAYS_OUT)
def test_an_entry_names_nothing_outside_the_table(desk: Desk, name: str):
    """HOLES W23: a journal that somebody else wrote makes us read and delete nothing else."""
    desk.bench().pipeline().step()
    before = beside(desk.root)
    journal = desk.table / journal_folder("default")
    path = journal / "00000000000000000001.json"
    entry: dict[str, Any] = json.loads(path.read_text())
    shown = name.format(root=desk.root)
    entry["files"][0] |= {"filename": shown, "size": len(CANARY)}
    path.write_text(json.dumps(entry))
    following = entry | {
        "kind": "gc",
        "sequence": 2,
        "previous": digest(path.read_bytes()),
        "sources": [],
        "files": [],
        "deleted": [shown],
    }
    (journal / "00000000000000000002.json").write_text(json.dumps(following))
    told = everything(desk, configured(desk))
    assert CANARY not in told
    assert {name: (desk.root / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("name", WAYS_OUT)
def test_a_delta_log_names_nothing_outside_the_table(desk: Desk, name: str):
    """HOLES W23: whoever writes to the log, we neither read nor delete what it says elsewhere."""
    desk.bench().pipeline().step()
    file = configured(desk)
    penguin_once(file, "--once")
    before = beside(desk.root)
    shown = name.format(root=desk.root)
    add = {
        "path": shown,
        "size": len(CANARY),
        "partitionValues": {},
        "modificationTime": 1,
        "dataChange": True,
        "deletionVector": {
            "storageType": "p",
            "pathOrInlineDv": f"file://{desk.root}/outside.parquet",
            "offset": 0,
            "sizeInBytes": 9,
            "cardinality": 1,
        },
    }
    remove = {"path": shown, "deletionTimestamp": 1, "dataChange": True}
    for version, action in enumerate(({"add": add}, {"remove": remove}), start=2):
        target = desk.table / log_version(version)
        assert not target.exists()
        target.write_text(f"{json.dumps(action)}\n")
        told = everything(desk, file)
        assert CANARY not in told
        assert {name: (desk.root / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("name", WAYS_OUT)
def test_a_meta_of_another_program_reaches_nothing_outside(tmp_path: Path, name: str):
    """HOLES W23: the good file next to it is committed all the same."""
    table = Directory(tmp_path / "table")
    before = beside(tmp_path)
    table.meta(table.file(1))
    shown = name.format(root=tmp_path)
    for stem in (UUID, "outside", "b"):
        meta = {
            "filename": shown,
            "size": len(CANARY),
            "record_count": 1,
            "partition_values": {"date": "2024-01-01"},
            "source_file": None,
        }
        put(table.root, f"_staging/pending/{stem}.meta.json", json.dumps(meta).encode())
    visitor = table.penguin().drain()
    assert table.ids() == [1]
    assert CANARY not in "".join(str(event) for event in visitor.events)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_gc_deletes_nothing_behind_a_link_that_leads_out_of_the_table(desk: Desk):
    """A backup of the table has files with the same marks, and nothing in it is named here."""
    desk.bench().pipeline().step()
    backup = desk.root / "backup"
    (data,) = desk.table.glob("*.parquet")
    other = TablePath(f"{UUID[:-1]}7.parquet")
    put(backup, other, data.read_bytes())
    put(desk.table, other, data.read_bytes())
    (desk.table / "old").symlink_to(backup)
    done = desk.run("gc", "--delete", "--older-than", "0h")
    assert done.exit_code == 0, done.output
    assert (backup / other).exists()
    assert not (desk.table / other).exists()
    assert data.exists()
