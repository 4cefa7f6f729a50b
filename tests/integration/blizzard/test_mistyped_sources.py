"""A source of which no file was ever read may simply be pointed elsewhere."""

from pathlib import Path

import pytest

from blizzard.journal.checkpoint import SnapshotWriter, read_ledger
from blizzard.model.settings import PipelineSettings
from lakebed.clock import Clock
from lakebed.errors import LakeError, ObjectMissing, SourceMoved
from lakebed.storage.store import Reader
from tests.support.builders import (
    Bench,
    entries,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    rows,
    source_settings,
)
from tests.support.commands import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    return Desk(tmp_path)


def at(desk: Desk, **places: object) -> PipelineSettings:
    sources = tuple(source_settings(str(uri), name=name) for name, uri in places.items())
    return pipeline_settings(desk.landing, desk.table, sources=sources)


def ingest(settings: PipelineSettings) -> bool:
    return Bench(settings, run_id=str(Clock().fresh_id())).pipeline().step()


def mistyped(desk: Desk, **places: object) -> None:
    with pytest.raises(ObjectMissing):
        ingest(at(desk, **places or {"default": desk.root / "typo"}))


def history(desk: Desk):
    return read_ledger(Reader(str(desk.table), no_options()), "default")


def test_a_mistyped_path_is_simply_corrected(desk):
    """HOLES L26: no file was read there, so none can be taken for another."""
    mistyped(desk)
    assert desk.run("--dry-run").exit_code == 0
    shown = desk.run("status")
    assert "has been read from" not in shown.stdout
    assert ingest(desk.settings())
    noted = next(entry for entry in entries(desk.table) if entry.moved == "default")
    assert noted.source_uris == {"default": str(desk.landing)}
    assert history(desk).source_names == {str(desk.landing): "default"}
    assert [each.path for each in entries(desk.table)[-1].sources] == ["a.ndjson"]
    assert desk.run("journal", str(noted.sequence)).exit_code == 0
    (desk.root / "typo").mkdir()
    with pytest.raises(SourceMoved):
        ingest(at(desk, default=desk.root / "typo"))


def test_two_sources_whose_paths_were_exchanged_are_corrected(desk):
    """HOLES L26: what one of them was called does not bind the other."""
    one, two = desk.root / "one", desk.root / "two"
    mistyped(desk, a=one, b=two)
    put(one, "x.ndjson", ndjson(rows(1)))
    put(two, "x.ndjson", ndjson(rows(1)))
    assert ingest(at(desk, a=two, b=one))
    assert history(desk).source_names == {str(two): "a", str(one): "b"}
    assert history(desk).source_uris == {"a": str(two), "b": str(one)}


def test_a_file_that_failed_there_keeps_the_source_where_it_is(desk):
    """HOLES L26: the journal knows its name."""
    put(desk.root / "typo", "bad.ndjson", b"{nope\n")
    ingest(at(desk, default=desk.root / "typo"))
    with pytest.raises(SourceMoved):
        ingest(desk.settings())


def test_a_snapshot_says_of_which_sources_files_are_known(desk):
    """HOLES L26: the names themselves are not read for this."""
    mistyped(desk)
    store = desk.store
    writer = SnapshotWriter(store=store, pipeline="default", clock=Clock())
    writer.write(history(desk))
    assert not history(desk).has_files("default")
    put(desk.root / "typo", "a.ndjson", ndjson(rows(1)))
    assert ingest(at(desk, default=desk.root / "typo"))
    writer.write(history(desk))
    found = history(desk)
    assert (found.segments and found.kept, found.has_files("default")) == (found.sequence, True)
    assert not found.has_files("other")


def test_the_corrected_folder_must_not_be_another_pipelines(desk):
    """HOLES L26, D19: whoever was begun first elsewhere does not come first here."""
    mistyped(desk)
    other = pipeline_settings(desk.landing, desk.table, name="other")
    assert ingest(other)
    with pytest.raises(LakeError, match="'other' of this table already reads"):
        ingest(desk.settings())
