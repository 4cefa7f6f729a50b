"""An audit of tables with bad lines in quarantine: they wait, were replayed or discarded, once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from blizzard.inspect.audit.findings import AuditTotals
from blizzard.inspect.audit.journal_books import JournalBooks, QuarantineBooks
from blizzard.inspect.audit.log_books import LogBooks
from lakebed.documents.entry import Entry
from lakebed.types import Handoff
from tests.support.audits import audited, told
from tests.support.builders import entries
from tests.support.dying import Fate
from tests.support.replays import FIRST, SECOND, Replayed


@pytest.fixture
def desk(tmp_path: Path) -> Replayed:
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    desk.begin()
    return desk


def books(desk: Replayed) -> tuple[int, int, int, int, int]:
    found = audited(desk.table)
    assert told(found) == []
    totals = found.totals
    return (
        totals.rows,
        totals.quarantined,
        totals.bad_lines_waiting,
        totals.replayed,
        totals.discarded,
    )


def test_lines_that_wait_that_were_replayed_and_that_were_discarded_are_balanced(
    desk: Replayed,
) -> None:
    assert books(desk) == (1, 3, 3, 0, 0)
    assert desk.replay().lines == 2
    assert books(desk) == (1, 3, 1, 2, 0)
    desk.live(Fate.none())
    assert books(desk) == (1, 3, 1, 2, 0)
    assert audited(desk.table).active.rows == 3
    assert desk.discard(None).lines == 1
    assert books(desk) == (1, 3, 0, 2, 1)


@pytest.mark.unbalanced("quarantine_gone")
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (Path.unlink, "is gone"),
        (lambda path: path.write_bytes(b"PAR1"), "has 4 bytes, but the entry says"),
    ],
)
def test_a_quarantine_file_that_is_gone_or_another_is_told(
    desk: Replayed, damage: Callable[[Path], object], words: str
) -> None:
    (named,) = [one for one in entries(desk.table)[1].quarantine if SECOND in one.sources[0].source]
    damage(desk.table / named.filename)
    (difference,) = told(audited(desk.table))
    assert difference.startswith(
        f"quarantine_gone: {named.filename} of entry 1 with 1 bad line {words}"
    )


def differences(of: list[Entry]) -> list[str]:
    found = QuarantineBooks(AuditTotals())
    return [one.message for entry in of for one in found.take(entry)]


def test_lines_that_the_books_do_not_have_are_told(desk: Replayed) -> None:
    """Each as the entry would be told whose digest somebody has made right."""
    desk.replay()
    opened, batch, replayed = entries(desk.table)
    assert differences([opened, batch, replayed]) == []
    first = batch.sources[0]
    more = replace(first, quarantined=first.quarantined + 1)
    assert differences([opened, replace(batch, sources=(more, *batch.sources[1:]))]) == [
        (
            f"entry 1: {first.key} has {first.quarantined + 1} bad lines, but its quarantine files "
            f"hold {first.quarantined}"
        )
    ]
    assert differences([opened, replace(batch, sources=batch.sources[1:])]) == [
        (
            f"entry 1: quarantine files hold {first.quarantined} bad lines of {first.key}, which "
            "the entry has not read"
        )
    ]
    one = replayed.resolved[0]
    again = replace(replayed, sequence=3, resolved=(one,))
    assert differences([opened, batch, replayed, again]) == [
        f"entry 3 (replay) deals with 1 bad line of {one.old}, which no longer waits"
    ]
    fewer = replace(replayed, resolved=(replace(one, lines=0), *replayed.resolved[1:]))
    assert len(differences([opened, batch, fewer])) == 1
    wrong = replace(batch.quarantine[0], record_count=9)
    assert (
        f"{wrong.filename} holds 9 bad lines, but"
        in (differences([opened, replace(batch, quarantine=(wrong, *batch.quarantine[1:]))])[0])
    )


def test_a_replay_with_other_rows_than_lines_is_told(desk: Replayed) -> None:
    desk.replay()
    replayed = entries(desk.table)[2]
    whole = JournalBooks("default", None, LogBooks())
    found = whole._check_books(2, replace(replayed, files=replayed.files[1:]))
    assert [one.message for one in found] == [
        "the bad lines of entry 2 gave 2 rows, but its data files hold 1"
    ]


def test_a_record_of_a_document_is_named_by_its_number(tmp_path: Path) -> None:
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    document = yaml.safe_load(desk.file.read_text())
    document["schema"]["provenance"] = ["line"]
    document["source"]["format"] = "json"
    desk.file.write_text(yaml.safe_dump(document))
    desk.landing.write("date=2024-01-01/a.json", b'[{"id":1},{"id":"2"},\n\n{"id":3}]')
    desk.live(Fate.none())
    document["schema"]["coerce"] = True
    desk.file.write_text(yaml.safe_dump(document))
    desk.replay()
    desk.live(Fate.none())
    assert sorted((row["id"], row["_line"]) for row in desk.rows()) == [(1, 1), (2, 2), (3, 3)]


def test_columns_of_provenance_name_the_line_that_was_quarantined(tmp_path: Path) -> None:
    desk = Replayed(tmp_path / "desk", handoff=Handoff.JOURNAL, inlined=False)
    document = yaml.safe_load(desk.file.read_text())
    document["schema"]["provenance"] = ["file", "line"]
    desk.file.write_text(yaml.safe_dump(document))
    desk.begin()
    desk.replay()
    found = {
        (file.source_files[run.source], run.first, run.rows)
        for file in entries(desk.table)[2].files
        for run in file.runs
    }
    assert found == {(f"default:{FIRST}/a.ndjson", 2, 1), (f"default:{SECOND}/b.ndjson", 1, 1)}
    desk.live(Fate.none())
    landing = desk.settings.sources[0].uri
    assert [(row["id"], row["_file"], row["_line"]) for row in desk.rows()] == [
        (1, f"{landing}/{FIRST}/a.ndjson", 1),
        (2, f"{landing}/{FIRST}/a.ndjson", 2),
        (3, f"{landing}/{SECOND}/b.ndjson", 1),
    ]
