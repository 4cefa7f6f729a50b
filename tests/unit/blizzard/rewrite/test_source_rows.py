"""Which rows of which data files came from source files, by what journals say."""

from dataclasses import replace

from blizzard.model.rewriting import ActiveFile, RowRanges, RowsWhere
from blizzard.rewrite.source_rows import (
    FILE,
    JournaledFiles,
    SelectedSources,
    find_rows,
    follow_journals,
)
from lakebed.deltalog.lineage import Active, Lineage
from lakebed.documents.data_file import ColumnStatistics, Replacement, Run
from lakebed.documents.entry import decode_entry
from lakebed.layout import TablePath
from tests.support.builders import entry_body, finished_file

ENTRY = decode_entry(entry_body(1), "e")
MEANT = SelectedSources(journal=ENTRY.journal, keys=frozenset({"in:b"}), uris={"/in/b": "in:b"})


def data_file(name, *sources, runs=(), told=False):
    statistics = {FILE: ColumnStatistics(null_count=0)} if told else {}
    return replace(
        finished_file(name),
        record_count=sum(run.rows for run in runs) or 4,
        partition_values={},
        source_files=sources,
        runs=tuple(runs),
        statistics=statistics,
    )


def batch(*files):
    return replace(ENTRY, files=files, sources=())


def replacing(old, new, kind="promote", left_out=0):
    one = Replacement(old=TablePath(old), old_size=1, new=new, left_out=left_out)
    return replace(ENTRY, kind=kind, files=(), sources=(), replaced=(one,))


def found(active, *entries, in_effect=True, aside=()):
    journals = JournaledFiles(meant=MEANT)
    for entry in entries:
        journals.take(entry)
    journals.finish()
    files = {
        name: ActiveFile(path=TablePath(name), size=1, rows=None, partition_values={})
        for name in active
    }
    lineage = follow_journals(Lineage(first=1), journals, lambda _entry: in_effect)
    lineage.active |= dict.fromkeys(active, Active("", 1, None, 0, (), -1, of_others=False))

    def holders(path):
        trace = lineage.trace(path)
        return None if trace.is_unknown else trace.active

    return find_rows(journals, files, holders=holders, aside=aside)


MIXED = data_file("m", "in:a", "in:b", runs=(Run(0, 1, 2, 2), Run(1, 1, 3, 3), Run(0, 3, 1, 1)))


def test_a_file_with_no_other_rows_goes_whole():
    rows = found(["w"], batch(data_file("w", "in:b")))
    assert [one.path for one in rows.whole] == ["w"]
    assert (rows.mixed, rows.unnamed, rows.untold) == ((), (), {})
    assert rows.rows == {"in:b": 4}


def test_of_a_file_with_others_the_places_of_the_rows_are_known():
    (one,) = found(["m"], batch(MIXED)).mixed
    assert one.without == RowRanges(((2, 5),))
    assert one.source_files == ("in:a", "in:b")


def test_a_file_without_runs_is_told_apart_by_its_column_or_not_at_all():
    (one,) = found(["m"], batch(data_file("m", "in:a", "in:b", told=True))).mixed
    assert isinstance(one.without, RowsWhere)
    rows = found(["m"], batch(data_file("m", "in:a", "in:b")))
    assert rows.untold == {"m": frozenset({"in:b"})}


def test_a_file_in_the_place_of_another_has_its_rows():
    rows = found(["n"], replacing("m", data_file("n")), batch(MIXED))
    assert [(one.path, one.without) for one in rows.mixed] == [("n", RowRanges(((2, 5),)))]


def test_what_an_earlier_retraction_left_says_itself_what_it_is():
    rest = data_file("n", "in:b", runs=(Run(0, 1, 3, 3),))
    rows = found(["n"], batch(MIXED), replacing("m", rest, "retract", 3))
    assert [one.path for one in rows.whole] == ["n"]
    other = data_file("n", "in:a", runs=(Run(0, 1, 3, 3),))
    rows = found(["n"], batch(MIXED), replacing("m", other, "retract", 3))
    assert rows.files == ()


def test_rows_that_were_taken_out_on_purpose_are_not_looked_for():
    gone = replacing("m", None, "retract", 6)
    assert found(["x"], batch(MIXED), gone).untold == {}
    assert found(["x"], batch(MIXED), gone, in_effect=False).untold == {"m": frozenset({"in:b"})}


def test_files_of_other_writers_are_looked_into_only_where_rows_are_missing():
    told = data_file("m", "in:a", "in:b", told=True)
    assert found(["m", "x"], batch(told)).unnamed == ()
    (one,) = found(["x"], batch(told)).unnamed
    assert (one.path, isinstance(one.without, RowsWhere)) == ("x", True)
    assert found(["x"], batch(told), aside={"m"}).unnamed == ()
    assert found([], batch(data_file("m", "in:b"))).untold == {}


def test_what_took_the_place_of_another_writers_file_is_looked_into():
    told = data_file("m", "in:a", "in:b", told=True)
    rest = replacing("x", data_file("y"), "retract", 1)
    assert [one.path for one in found(["y"], batch(told), rest).unnamed] == ["y"]


def test_another_journal_names_a_source_file_by_its_place():
    other = replace(
        batch(data_file("w", "old:b")), journal="other", source_uris={"old": "/in/", "in": "/else"}
    )
    assert [one.path for one in found(["w"], other).whole] == ["w"]
    elsewhere = replace(other, source_uris={"old": "/else"})
    assert found(["w"], elsewhere).files == ()


def test_a_file_names_source_files_as_the_one_does_whose_place_it_takes():
    theirs = replace(batch(MIXED), journal="another", source_uris={"in": "/elsewhere"})
    left = data_file("n", "in:a", "in:b", runs=(Run(0, 1, 1, 1), Run(1, 1, 3, 3)))
    ours = replacing("m", left, kind="erase", left_out=2)
    rows = found(["n"], theirs, ours)
    assert rows.files == ()
    (one,) = found(["n"], batch(MIXED), replace(ours, journal="another")).mixed
    assert one.without == RowRanges(((1, 4),))
