"""docs/migration.md: a table of another writer is taken over, and no row is lost or there twice."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import write_deltalake

from tests.support.adoptions import ParquetFolder
from tests.support.open_table import OpenTable
from tests.support.readers import ids

DOCS = Path(__file__).parents[2] / "docs"
OLD = ("date=2024-01-01/a.ndjson", "date=2024-01-02/b.ndjson")
NEW = ("date=9999-12-30/c.ndjson", "date=9999-12-31/d.ndjson")
"""Folders of days that are past, and of days that are not, whenever this is run."""

SCHEMA = {"fields": [{"name": "id", "type": "int64"}]}
BY_DATE = {"partition_by": {"prefix_template": "date=%Y-%m-%d"}}


def chapter(page: str, title: str, language: str) -> str:
    """Return the block of a language in a chapter of a page."""
    text = re.split(rf"\n##+ {title}\n", (DOCS / page).read_text())[1]
    found = re.search(
        rf"```{language}[^\n]*\n(.*?)```",
        re.split(r"^##+ ", text, flags=re.MULTILINE)[0],
        re.DOTALL,
    )
    assert found is not None
    return found[1]


def taken_over(tmp_path: Path) -> OpenTable:
    """Return a table that another writer has filled from two of the four files that landed."""
    desk = OpenTable(tmp_path, SCHEMA, **BY_DATE)
    for number, name in enumerate((*OLD, *NEW), 1):
        desk.land(name, {"id": number})
    days = pa.array(["2024-01-01", "2024-01-02"]).cast(pa.date32())
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "date": days})
    write_deltalake(str(desk.table), rows, partition_by=["date"])
    return desk


def reads(desk: OpenTable, **source: Any) -> None:
    """Change the source's settings."""
    document = yaml.safe_load(desk.file.read_text())
    document["source"] |= source
    desk.file.write_text(yaml.safe_dump(document))


def only_new(desk: OpenTable) -> dict[str, Any]:
    """Read what the page's filter lets through; return the filter."""
    shown = yaml.safe_load(chapter("migration.md", "By date folder", "yaml"))
    only: dict[str, Any] = shown["source"]["partition_filter"]
    reads(desk, partition_filter=only)
    desk.ingest()
    return only


def balanced(desk: OpenTable, others: str = "in the table, by other writers") -> None:
    done = desk.cli("audit")
    assert done.exit_code == 0, done.output
    assert others in done.output


def test_by_date_folder(tmp_path: Path):
    """And a late file for an old folder is told."""
    desk = taken_over(tmp_path)
    only_new(desk)
    desk.land("date=2024-01-02/late.ndjson", {"id": 5})
    desk.ingest()
    assert ids(desk.table) == [1, 2, 3, 4]
    desk.ends_well()
    balanced(desk)
    for name in (OLD[0], "late.ndjson"):
        assert "too_old" in desk.cli("why", name).output


def test_a_lookback_that_is_raised_afterwards_doubles_rows_as_the_page_warns(tmp_path: Path):
    desk = taken_over(tmp_path)
    only = only_new(desk)
    assert "Unless another program has already loaded it" in desk.cli("why", OLD[0]).output
    reads(desk, partition_filter=only | {"lookback": 100_000})
    desk.ends_well()
    desk.ingest()
    assert ids(desk.table) == [1, 1, 2, 2, 3, 4]
    balanced(desk)
    for page in ("migration.md", "sources.md"):
        assert re.search(r"\*\*(Never|Do not) raise it", (DOCS / page).read_text()), page


def test_by_a_pattern_of_folders(tmp_path: Path):
    desk = taken_over(tmp_path)
    reads(desk, path=f"{desk.landing.folder}/date=9999-12-3[0]/**")
    desk.ingest()
    assert ids(desk.table) == [1, 2, 3]
    reads(desk, path=f"{desk.landing.folder}/date=9999-12-*/**")
    desk.ends_well()
    desk.ingest()
    assert ids(desk.table) == [1, 2, 3, 4]
    balanced(desk)


def test_by_place(tmp_path: Path):
    desk = taken_over(tmp_path)
    for name in NEW:
        (desk.landing.folder / name).unlink()
    reads(desk, path=str(tmp_path / "landing-2"))
    for number, name in enumerate(NEW, 3):
        file = tmp_path / "landing-2" / name
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"id": number}) + "\n")
    desk.ingest()
    assert ids(desk.table) == [1, 2, 3, 4]
    balanced(desk)


def test_without_a_line_everything_is_read_again(tmp_path: Path):
    """What the page warns of."""
    desk = taken_over(tmp_path)
    desk.ingest()
    assert ids(desk.table) == [1, 1, 2, 2, 3, 4]


def test_no_configuration_on_the_page_reads_what_the_old_program_has_loaded():
    blocks = re.findall(r"```yaml[^\n]*\n(.*?)```", (DOCS / "migration.md").read_text(), re.DOTALL)
    sources = [yaml.safe_load(block)["source"] for block in blocks]
    assert len(sources) == 4
    for source in sources:
        assert source["path"] != "s3://my-bucket/landing" or source["partition_filter"]


def checkpoint(root: Path, landing: Path, *names: str) -> None:
    """Write what a stream of Spark 4 leaves in its checkpoint."""
    for folder in ("offsets", "commits", "sources/0"):
        (root / folder).mkdir(parents=True)
        (root / folder / ".0.crc").write_bytes(b"crc\x00")
    for number in (0, 1):
        (root / "offsets" / str(number)).write_text("v1\n{}\n")
        (root / "commits" / str(number)).write_text("v1\n{}\n")
    lines = [
        json.dumps({"path": (landing / name).as_uri(), "timestamp": 1, "batchId": number})
        for number, name in enumerate(names)
    ]
    (root / "sources/0/0").write_text("\n".join(["v1", *lines[:1]]))
    (root / "sources/0/1.compact").write_text("\n".join(["v1", *lines]))


def script(title: str, root: Path) -> subprocess.CompletedProcess[str]:
    code = chapter("migration.md", title, "python").replace("/data/", f"{root}/")
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_by_moving_files_that_spark_has_read(tmp_path: Path):
    desk = taken_over(tmp_path)
    desk.land("date=2024-01-02/with space.ndjson", {"id": 2})
    read = (*OLD, "date=2024-01-02/with space.ndjson")
    checkpoint(tmp_path / "checkpoint", desk.landing.folder, *read)
    done = script("Which files the stream has read", tmp_path)
    assert done.stdout == "3 files were read by the stream\n", done.stderr
    assert all((tmp_path / "archive" / name).exists() for name in read)
    desk.ingest()
    assert ids(desk.table) == [1, 2, 3, 4]
    balanced(desk)


def test_files_of_a_batch_that_is_not_finished_are_not_moved(tmp_path: Path):
    desk = taken_over(tmp_path)
    checkpoint(tmp_path / "checkpoint", desk.landing.folder, *OLD)
    (tmp_path / "checkpoint/commits/1").unlink()
    refused = script("Which files the stream has read", tmp_path)
    assert "the last batch is not finished" in refused.stderr
    assert (desk.landing.folder / OLD[0]).exists()


def test_a_folder_of_sparks_parquet_sink(tmp_path: Path):
    """The files that its log does not name go, the others are adopted, and blizzard goes on."""
    folder = ParquetFolder(tmp_path / "table")
    for number in (1, 2, 9):
        folder.file(f"part-0000{number}.snappy.parquet", [number])
    log = folder.root / "_spark_metadata"
    log.mkdir()
    lines = [
        json.dumps({"path": (folder.root / f"part-0000{number}.snappy.parquet").as_uri()})
        for number in (1, 2)
    ]
    (log / "0").write_text("\n".join(["v1", *lines]))
    leftover = script("A table of plain Parquet", tmp_path).stdout.split()
    assert leftover == [str(folder.root / "part-00009.snappy.parquet")]
    Path(leftover[0]).unlink()
    assert folder.adopt().totals.rows == 2
    fields = [*SCHEMA["fields"], {"name": "name", "type": "string"}]
    desk = OpenTable(tmp_path, {"fields": fields})
    desk.land("c.ndjson", {"id": 3, "name": "n3"})
    desk.ingest()
    assert ids(desk.table) == [1, 2, 3]
    balanced(desk, "of other programs, committed by penguin")
