"""What status and the dead letter queue tell is the same from any snapshot as from all entries."""

from collections.abc import Callable
from typing import Any, get_args

from hypothesis import example, given, settings
from hypothesis import strategies as st

from blizzard.answers.bad_lines import quarantine_of
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status_reader import StatusReader, dead_letter_queue
from blizzard.journal.checkpoint import SnapshotWriter, read_ledger, refresh
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings, SinkSettings, SnapshotLimits
from blizzard.rewrite import replay
from lakebed import layout
from lakebed.documents.entry import Entry, Kind
from lakebed.errors import LakeError
from lakebed.storage.options import Location
from lakebed.storage.store import Reader
from tests.support.bucket import Bucket
from tests.support.builders import ID_AND_NAME, Hands, source_settings
from tests.support.failed import find_failed
from tests.support.histories import PATHS, SOURCES, STEPS, TABLE, Story

SMALL = SnapshotLimits(names=2, block=2)
EVERYTHING = [(step, choice) for choice in (0, 3, 5) for step in ("bad batch", "part", *STEPS)]
SETTINGS = PipelineSettings(
    sources=tuple(source_settings(uri, name=name) for name, uri in SOURCES.items()),
    sink=SinkSettings(table_uri=TABLE),
    schema=ID_AND_NAME,
)
HANDS = Hands()


def opener(table: Bucket) -> Callable[[Location], Reader]:
    """Return how the table, its folders and the sources are opened."""

    def open_reader(place: Location) -> Reader:
        below = place.uri.removeprefix(TABLE).strip("/")
        if place.uri == TABLE:
            return table
        found = Bucket(PATHS if below == place.uri else (), uri=place.uri)
        for name, body in table.bodies.items():
            if name.startswith(f"{below}/"):
                found.replace(name.removeprefix(f"{below}/"), body)
        return found

    return open_reader


def told(table: Bucket) -> dict[str, Any]:
    """Return all that commands tell of a journal, without what was derived being named."""
    history = read_ledger(table, "default")
    evidence = PipelineEvidence.read(SETTINGS, HANDS.clock, opening=opener(table))
    lookup = history.lookup()
    keys = [f"{source}:{path}" for source in SOURCES for path in PATHS]
    return {
        "dropped": places_of(table),
        "status": StatusReader(SETTINGS, HANDS.clock).read(opener(table))[1],
        "letters": dead_letter_queue(evidence),
        "quarantine": quarantine_of(evidence).files,
        "bad lines": or_error(lambda: replay.plan_replay(table, "default", ["c.ndjson"]).files),
        "retry": or_error(lambda: find_failed(table, "default", None)),
        "unfinished": dict(history.unfinished),
        "retractions": dict(history.books.retractions),
        "known": {key: lookup(key) for key in keys},
        "since": history.first_reads.since,
        "has files": [history.has_files(source) for source in (*SOURCES, "third")],
    }


def places_of(table: Bucket) -> dict[str, int]:
    """Return where values that were left out stood, and how many."""
    ledger = Ledger()
    refresh(ledger, table, "default")
    return dict(ledger.books.placed("dropped"))


def or_error(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except LakeError as refused:
        return str(refused)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 8)), max_size=14), st.integers(1, 5)
)
@example([step for step in EVERYTHING if step[0] != "closed"], 2)
@example(EVERYTHING, 3)
@example([("bad batch", 0), ("retry", 0)], 1)
@example([("batch", 0), ("clock back", 8), ("batch", 1), ("clock back", 5), ("gc", 0)], 1)
def test_a_snapshot_and_a_tail_tell_what_all_entries_tell(steps, restarts):
    story = Story().tell(steps)
    expected = told(story.table())
    check_against_plain_sums(story, expected["status"], expected["dropped"])
    assert [each.file.filename for each in expected["quarantine"]] == list(story.waiting)
    store = story.table(0)
    history = Ledger(store=store, pipeline="default")
    writer = SnapshotWriter(store=store, pipeline="default", clock=HANDS.clock, limits=SMALL)
    for number, (entry, body) in enumerate(story.entries):
        store.replace(layout.journal_entry("default", number), body)
        history.learn(entry, body)
        writer.write(history)
        whole = story.table()
        for name in store.names:
            whole.replace(name, store.bodies[name])
        assert told(whole) == expected
        if number % restarts == 0:
            history = read_ledger(store, "default")
            assert (history.rebuilt, history.kept) == (None, number)


def check_against_plain_sums(story: Story, status: Any, dropped: dict[str, int]) -> None:
    """Compare the books with sums over the entries that are written as simply as can be."""
    entries = [entry for entry, _body in story.entries]
    given_up = {name for entry in entries for name in entry.redone}
    counted = [one for one in entries if one.kind == "batch" and not is_given_up(one, given_up)]
    read = [record for one in counted for record in one.sources if record.failure is None]
    replayed = sum(each.rows for one in entries for each in one.resolved)
    assert status.totals.rows == sum(record.rows for record in read) + replayed
    assert status.totals.lines == sum(record.lines for record in read)
    assert status.totals.dropped == sum(sum(record.dropped.values()) for record in read)
    files = [
        file
        for one in entries
        for file in one.files
        if layout.file_name(file.filename) not in given_up
    ]
    assert (status.parquet_files, status.parquet_bytes) == (len(files), 100 * len(files))
    assert sum(one.totals.rows for one in status.sources) == status.totals.rows
    places = {path: 0 for record in read for path in record.dropped}
    for record in read:
        for path, count in record.dropped.items():
            places[path] += count
    assert dropped == places


def is_given_up(entry: Entry, names: set[str]) -> bool:
    return any(layout.file_name(file.filename) in names for file in entry.files)


def test_the_stories_tell_every_kind_of_entry():
    """One that is added is told here, too, before it can be forgotten in the books."""
    assert set(Story().tell(EVERYTHING).kinds()) == set(get_args(Kind))
