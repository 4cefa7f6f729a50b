"""penguin from Python: what waits is committed, and what was done comes back as a value."""

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import penguin
from tests.support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


def test_a_commit_says_what_it_did(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.landing.land("a.ndjson", 5)
    desk.blizzard()
    with caplog.at_level(logging.INFO, "penguin"):
        done = penguin.commit(str(desk.table))
    assert (done.table_uri, done.entries, done.files, done.rows) == (str(desk.table), 1, 1, 5)
    assert done.version == DeltaTable(str(desk.table)).version()
    assert any(record.name == "penguin" for record in caplog.records)
    again = penguin.commit(str(desk.table))
    assert (again.version, again.commits, again.rows) == (done.version, 0, 0)


def test_a_table_of_which_nothing_waits_has_its_version(tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    assert penguin.commit(place).version is None
    for _ in range(2):
        write_deltalake(place, pa.table({"id": [1]}), mode="append")
    done = penguin.commit(place)
    assert (done.version, done.commits) == (1, 0)


def test_held_files_are_counted_and_no_error(desk: Desk) -> None:
    desk.holds_a_file()
    done = penguin.commit(str(desk.table), schema_evolution="merge")
    assert (done.held_files, done.held_rows) == (1, 5)


def test_settings_are_those_of_a_configuration(desk: Desk) -> None:
    with pytest.raises(penguin.ConfigInvalid) as invalid:
        penguin.commit(str(desk.table), poll_intervall_secs=1, schema_evolution="loose")
    assert sorted(invalid.value.faults) == [
        (
            "tables.table.poll_intervall_secs: unknown key; did you mean poll_interval_secs?  "
            "(given in Python)"
        ),
        (
            "tables.table.schema_evolution: must be strict, merge or overwrite, not 'loose'  "
            "(given in Python)"
        ),
    ]


@pytest.mark.unbalanced("unreadable")
def test_a_table_that_cannot_be_committed_to_is_an_error(desk: Desk) -> None:
    desk.landing.land("a.ndjson", 5)
    desk.blizzard()
    desk.penguin()
    (version,) = desk.table.glob("_delta_log/*1.json")
    version.write_text("{")
    desk.landing.land("b.ndjson", 5)
    desk.blizzard()
    with pytest.raises(penguin.CommitFailed) as failed:
        penguin.commit(str(desk.table))
    assert failed.value.result.commits == 0


def test_the_version_is_that_of_the_package() -> None:
    assert penguin.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="has no attribute 'comit'"):
        penguin.comit  # noqa: B018
