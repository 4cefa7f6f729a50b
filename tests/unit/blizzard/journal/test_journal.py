"""The journal: one write is the commit."""

import json
from pathlib import Path

import pytest

from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.checks import agree_on_protocol
from blizzard.journal.journal import Journal
from lakebed import layout
from lakebed.documents.entry import DirectoryProtocol, Receipt, decode_entry, digest, encode
from lakebed.errors import (
    DocumentUnreadable,
    JournalConflict,
    JournalLost,
    StoreDenied,
    StoreUnavailable,
)
from lakebed.storage.store import Store
from lakebed.types import Handoff
from tests.support.builders import (
    Hands,
    entries,
    failure,
    finished_file,
    identity,
    no_options,
    record,
)
from tests.support.stores import DropsWrites, LosesAnswers, local, refusing

FILES = (finished_file(),)


def opened(store: Store, *, run: str = "run-1", hands: Hands | None = None, **given) -> Journal:
    history = read_ledger(store, "default")
    wait = given.pop("wait", None)
    journal = Journal(store, identity(run=run, **given), history, (hands or Hands()).clock, wait)
    journal.open_with(lambda: False)
    return journal


def path_of(root: Path, sequence: int) -> Path:
    return root / layout.journal_entry("default", sequence)


# ------------------------------------------------------------------------------ appending


def test_each_entry_repeats_the_digest_of_the_one_before(tmp_path):
    journal = opened(local(tmp_path))
    journal.append((record("a"),), FILES)
    journal.append((record("b"),), ())
    bodies = [path_of(tmp_path, number).read_bytes() for number in range(3)]
    found = [decode_entry(body, "") for body in bodies]
    assert [each.previous for each in found] == [None, digest(bodies[0]), digest(bodies[1])]
    assert [each.kind for each in found] == ["open", "batch", "batch"]
    assert found[1].files == FILES


def test_a_failure_is_counted_over_batches_and_runs(tmp_path):
    """L04."""
    bad = record("a", failure=failure(retryable=True))
    opened(local(tmp_path)).append((bad,), ())
    again = opened(local(tmp_path), run="run-2")
    entry = again.append((bad, record("b", failure=failure())), ())
    assert [each.failure and each.failure.attempts for each in entry.sources] == [2, 1]


# ------------------------------------------------------------------------------ unknown outcomes


def test_a_lost_answer_is_taken_for_our_own_write(tmp_path):
    """L24: of the first entry, and of a later one."""
    store = LosesAnswers(str(tmp_path), no_options(), make_folder=True)
    journal = opened(store)
    store.lost = 1
    journal.append((record("a"),), FILES)
    journal.append((record("b"),), ())
    assert [(entry.sequence, entry.journal) for entry in entries(tmp_path)] == [
        (number, journal.id) for number in range(3)
    ]


def test_a_write_that_never_arrived_is_repeated_with_the_same_bytes(tmp_path):
    """L24."""
    store = DropsWrites(str(tmp_path), no_options(), make_folder=True)
    store.dropped = 0
    waits: list[float] = []
    hands = Hands()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        hands.at += seconds

    journal = opened(store, wait=wait, hands=hands)
    store.dropped = 3
    store.bodies.clear()
    journal.append((record("a"),), FILES)
    assert len(store.bodies) == 4
    assert len(set(store.bodies)) == 1
    assert len(waits) == 3
    assert len(entries(tmp_path)) == 2


def test_one_run_never_tries_two_bodies_for_one_entry(tmp_path):
    """L24, D06: after tries without an answer, the same bytes are written later."""
    store = DropsWrites(str(tmp_path), no_options(), make_folder=True)
    store.dropped = 0
    hands = Hands()
    journal = opened(store, hands=hands)
    store.bodies.clear()
    store.dropped = 6
    with pytest.raises(StoreUnavailable):
        journal.append((record("a"),), FILES)
    hands.at += 3600
    settled = journal.settle()
    assert settled is not None
    assert settled.sequence == journal.sequence == 1
    assert len(set(store.bodies)) == 1
    assert journal.settle() is None
    assert journal.ledger.lookup()("default:a").finished is not None


def test_a_refused_write_stays_in_doubt_until_it_is_settled(tmp_path):
    """W16."""
    read_only = refusing(path_of(Path(), 1).name, StoreDenied("read-only"), times=1)
    journal = opened(read_only(str(tmp_path), no_options(), make_folder=True))
    with pytest.raises(StoreDenied):
        journal.append((record("a"),), FILES)
    assert journal.sequence == 0
    assert journal.settle() is not None
    assert len(entries(tmp_path)) == 2


# ------------------------------------------------------------------------------ two runs


def test_of_two_runs_one_stops_for_good_and_says_who_the_other_is(tmp_path):
    """D07."""
    one, other = opened(local(tmp_path)), opened(local(tmp_path), run="run-2")
    one.append((record("a"),), FILES)
    with pytest.raises(JournalConflict) as caught:
        other.append((record("a"),), (finished_file("mine.parquet"),))
    assert "run run-1" in str(caught.value)
    assert "entry 1" in str(caught.value)
    assert not caught.value.retryable
    with pytest.raises(JournalConflict):
        other.settle()
    with pytest.raises(JournalConflict):
        other.append((record("a"),), ())
    assert [file.filename for entry in entries(tmp_path) for file in entry.files] == ["x.parquet"]


def test_two_runs_that_open_a_new_journal_do_not_both_have_it(tmp_path):
    """D07."""
    store = local(tmp_path)
    late = Journal(store, identity(run="run-2"), read_ledger(store, "default"), Hands().clock)
    opened(local(tmp_path))
    with pytest.raises(JournalConflict, match="run-1"):
        late.open_with(lambda: False)


# ------------------------------------------------------------------------------ a damaged journal


def three_entries(root: Path) -> None:
    journal = opened(local(root))
    journal.append((record("a"),), FILES)
    journal.append((record("b"),), FILES)


def test_a_journal_without_its_beginning_stops_the_run(tmp_path):
    """L21."""
    three_entries(tmp_path)
    path_of(tmp_path, 0).unlink()
    with pytest.raises(DocumentUnreadable, match="00000000000000000001"):
        read_ledger(local(tmp_path), "default")


def test_an_entry_patched_by_hand_stops_the_run_at_the_next_one(tmp_path):
    """L21."""
    three_entries(tmp_path)
    path = path_of(tmp_path, 1)
    path.write_bytes(path.read_bytes().replace(b'"path":"a"', b'"path":"z"'))
    with pytest.raises(DocumentUnreadable, match="00000000000000000002"):
        read_ledger(local(tmp_path), "default")


def test_an_entry_of_another_journal_stops_the_run(tmp_path):
    """L21."""
    three_entries(tmp_path)
    body = path_of(tmp_path, 2).read_bytes()
    document = json.loads(body) | {"journal": "another"}
    path_of(tmp_path, 2).write_text(json.dumps(document))
    with pytest.raises(DocumentUnreadable, match="another journal"):
        read_ledger(local(tmp_path), "default")


@pytest.mark.parametrize("body", [b"", b"{", b"\0" * 64])
@pytest.mark.parametrize("sequence", [0, 1, 2])
def test_an_entry_that_cannot_be_read_stops_the_run_and_nothing_starts_fresh(
    tmp_path, body, sequence
):
    """D05."""
    three_entries(tmp_path)
    path_of(tmp_path, sequence).write_bytes(body)
    with pytest.raises(DocumentUnreadable, match=f"{sequence:020}"):
        opened(local(tmp_path), run="run-2")
    assert path_of(tmp_path, sequence).read_bytes() == body


# ------------------------------------------------------------------------------ lost journals


def receipt(root: Path, sequence: int, journal: str) -> None:
    body = encode(Receipt(journal=journal, sequence=sequence, digest="ab"))
    local(root).replace(layout.receipt("default"), body)


@pytest.mark.parametrize(
    ("sequence", "journal", "gone", "says"),
    [
        (2, None, (2,), "entry 2"),
        (2, "j", (0, 1, 2), "journal"),
        (1, "another", (), "another"),
    ],
    ids=["rolled back", "deleted", "of another journal"],
)
def test_a_journal_that_is_not_that_of_its_receipt_is_noticed(
    tmp_path, sequence, journal, gone, says
):
    """L21."""
    three_entries(tmp_path)
    before = entries(tmp_path)
    receipt(tmp_path, sequence, journal or before[0].journal)
    for number in gone:
        path_of(tmp_path, number).unlink()
    with pytest.raises(JournalLost, match=says):
        opened(local(tmp_path), run="run-2")
    assert entries(tmp_path) == before[: len(before) - len(gone)]


def test_a_receipt_that_cannot_be_read_stops_the_run(tmp_path):
    """D05."""
    three_entries(tmp_path)
    local(tmp_path).replace(layout.receipt("default"), b"{")
    with pytest.raises(DocumentUnreadable, match="receipt"):
        opened(local(tmp_path), run="run-2")


def test_a_journal_that_the_delta_log_remembers_is_not_begun_anew(tmp_path):
    """L21."""
    store = local(tmp_path)
    journal = Journal(store, identity(), read_ledger(store, "default"), Hands().clock)
    with pytest.raises(JournalLost, match="Delta log"):
        journal.open_with(lambda: True)
    assert entries(tmp_path) == []


# ------------------------------------------------------------------------------ the protocol


def test_the_protocol_is_written_before_anything_else(tmp_path):
    store = DropsWrites(str(tmp_path), no_options(), make_folder=True)
    store.dropped = 0
    opened(store)
    assert store.bodies[0] == (
        layout.protocol(1),
        encode(DirectoryProtocol(handoff=Handoff.JOURNAL)),
    )


def test_a_protocol_that_cannot_be_read_stops_the_run(tmp_path):
    """D05."""
    local(tmp_path).create(layout.protocol(1), b"{")
    with pytest.raises(DocumentUnreadable, match=r"protocol/1\.json"):
        agree_on_protocol(local(tmp_path), Handoff.JOURNAL)
