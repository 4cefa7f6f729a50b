"""docs/answers.md shows what the commands print, and tells an operator's morning as it is."""

import gzip
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable

from blizzard.inspect.audit.findings import FindingKind
from tests.support.audits import Damage
from tests.support.desk import Desk
from tests.support.open_table import ID, OpenTable

PAGE = (Path(__file__).parents[3] / "docs" / "answers.md").read_text()
BLOCKS = re.findall(r"^```\n(table .*?)```$", PAGE, re.MULTILINE | re.DOTALL)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def printed(desk: Desk) -> str:
    """Return what the command prints, with names that are the same each time."""
    text = desk.cli("audit").output.replace(str(desk.table), "/data/table")
    return re.sub(r"delta-rs:py-[\d.]+", "delta-rs", UUID.sub("0192…", text))


def batch(desk: Desk, name: str, count: int) -> list[int]:
    """Ingest one file; return the ids of its rows."""
    landed = [row["id"] for row in desk.landing.land(f"{name}.ndjson", count)]
    with (desk.landing.folder / f"{name}.ndjson").open("ab") as file:
        file.write(b"\n" if name == "c" else b"")
    desk.blizzard()
    return landed


@pytest.mark.unbalanced("entry_missing", "rows_removed", "file_unnamed")
def test_what_an_audit_prints_is_as_the_page_shows_it(tmp_path):
    desk = Desk(tmp_path)
    rewritten = batch(desk, "a", 5)
    desk.penguin()
    rewritten += batch(desk, "b", 4)
    desk.penguin()
    DeltaTable(str(desk.table)).optimize.compact()
    batch(desk, "c", 7)
    desk.penguin()
    batch(desk, "d", 3)
    shown = [printed(desk)]
    Damage(desk.table).entry_path(3).unlink()
    DeltaTable(str(desk.table)).delete(f"id IN ({', '.join(map(str, rewritten))})")
    shown.append(printed(desk))
    assert shown == BLOCKS


def test_every_difference_is_on_the_page():
    assert set(FindingKind) <= set(re.findall(r"`([a-z_]+)`", PAGE))


CONFIG = " -c pipeline.yaml"
PRICE = {"name": "price", "type": "float64"}
SAME = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "0192…"),
    (r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d", r"2024-05-01\g<1>06:00:00"),
    (r"-c /data/\S+\.yaml", "-c pipeline.yaml"),
    (r"\d+ s ago", "9 s ago"),
    (r'e-tag "[^"]+"', 'e-tag "98444d"'),
    (r"\b[1-9][\d.]* (B|KiB)\b", "1.2 KiB"),
)
"""What is another thing each time, and what stands for it on the page."""


def shown(page: str) -> list[str]:
    """Return the commands of the morning, each with what is printed after it."""
    story = page.partition("## A morning")[2].partition("\n## ")[0]
    return re.findall(r"^```\n(\$ blizzard .*?)```$", story, re.MULTILINE | re.DOTALL)


class Morning:
    """A table on which something went wrong in the night."""

    def __init__(self, folder: Path) -> None:
        self.desk = OpenTable(
            folder, {"fields": [ID, PRICE]}, error_handling={"on_bad_record": "quarantine"}
        )
        self.packed = gzip.compress(b'{"id": 6, "price": 1.25}\n', mtime=0)
        self.desk.land("a.ndjson", {"id": 1, "price": 9.5}, {"id": 2, "price": "12.50"})
        self.desk.land("b.ndjson", {"id": 4, "price": "3.75"}, '{"id": 5, "pri')
        self.lands(self.packed[:-9])
        self.runs()

    def lands(self, body: bytes) -> None:
        (self.desk.landing.folder / "c.ndjson.gz").write_bytes(body)

    def runs(self) -> None:
        self.desk.ingest()
        self.desk.ends_well()

    def coerces(self) -> None:
        """Change the setting that the list names, and land the broken file again, complete."""
        document = yaml.safe_load(self.desk.file.read_text())
        document["schema"]["coerce"] = True
        self.desk.file.write_text(yaml.safe_dump(document))
        self.lands(self.packed)

    def prints(self, command: str) -> str:
        """Return what a command prints, with names and times that are the same each time."""
        program, *words = shlex.split(command.replace(CONFIG, ""))
        assert program == "blizzard"
        text = str(self.desk.cli(*words).output).replace(str(self.desk.folder), "/data")
        for pattern, instead in SAME:
            text = re.sub(pattern, instead, text)
        return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def test_a_morning_is_as_the_page_tells_it(tmp_path: Path) -> None:
    morning = Morning(tmp_path)
    before: dict[str, Callable[[], None]] = {
        "blizzard dlq replay": morning.coerces,
        "blizzard why": morning.runs,
    }
    blocks = shown(PAGE)
    assert len(blocks) > len(before)
    for block in blocks:
        command = block.partition("\n")[0].removeprefix("$ ")
        for words in [words for words in before if command.startswith(words)]:
            before.pop(words)()
        assert f"$ {command}\n{morning.prints(command)}" == block
    assert not before
