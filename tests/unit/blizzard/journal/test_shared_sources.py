"""A file that lies in the sources of two pipelines of a table is ingested once, or refused."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from blizzard.cli.run.dry_run import explain
from blizzard.journal.checkpoint import read_ledger
from blizzard.journal.journal import Journal
from lakebed.documents.entry import Entry
from lakebed.errors import JournalLost, StoreUnavailable
from lakebed.layout import journal_entry
from lakebed.storage.store import AlreadyThere, Created, Reader, Store
from tests.support.builders import (
    Bench,
    Hands,
    identity,
    ndjson,
    no_options,
    pipeline_settings,
    put,
    rows,
    source_settings,
)
from tests.support.stores import local
from tests.support.writers import lease, machine


def settings(tmp_path: Path, name: str, *uris: str):
    sources = tuple(
        source_settings(uri, name=f"s{number}" if number else "default")
        for number, uri in enumerate(uris)
    )
    return pipeline_settings(tmp_path, tmp_path / "table", name=name, sources=sources)


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    put(tmp_path / "in", "sub/b.ndjson", ndjson(rows(2, 2)))
    put(tmp_path / "more", "c.ndjson", ndjson(rows(2, 4)))
    (tmp_path / "link").symlink_to(tmp_path / "in")
    return tmp_path


SPELLINGS = ["{}/in", "{}/in/", "file://{}/in", "{}/link", "{}/more/../in"]
NESTED = ["{}/in/sub", "file://{}/in/sub/", "{}/link/sub", "{}"]


@pytest.mark.parametrize("spelled", [*SPELLINGS, *NESTED])
def test_a_second_pipeline_on_the_same_or_a_nested_folder_is_refused(landing, spelled):
    """HOLES D19: however its folder is spelled."""
    assert Bench(settings(landing, "first", f"{landing}/in")).pipeline().step()
    second = Bench(settings(landing, "second", spelled.format(landing)))
    with pytest.raises(
        JournalLost, match="pipeline 'first' of this table already reads"
    ) as refused:
        second.pipeline().step()
    assert second.entries() == []
    shown = explain(
        second.settings,
        lambda place: Reader(place.uri, place.options),
        parallelism=2,
        clock=Hands().clock,
    )
    assert str(shown.refusal) == str(refused.value)


def test_a_folder_beside_it_is_nobody_else_s(landing):
    """HOLES D19: and a name that only begins alike is another."""
    put(landing, "input/d.ndjson", ndjson(rows(2, 6)))
    assert Bench(settings(landing, "first", f"{landing}/in")).pipeline().step()
    assert Bench(settings(landing, "second", f"{landing}/more")).pipeline().step()
    assert Bench(settings(landing, "third", f"{landing}/input")).pipeline().step()


@pytest.mark.parametrize("then", [(), ("{}/in",)], ids=["still read", "not read any more"])
def test_what_another_pipeline_began_to_read_later_is_taken_too(landing, then):
    """HOLES D19: entry 0 is not all that a journal knows."""
    put(landing, "other/e.ndjson", ndjson(rows(1, 8)))
    first = Bench(settings(landing, "first", f"{landing}/in"))
    assert first.pipeline().step()
    both = settings(landing, "first", f"{landing}/in", f"{landing}/more")
    assert replace(first, settings=both, run_id="run-2").pipeline().step()
    if then:
        put(landing / "in", "x.ndjson", ndjson(rows(1, 9)))
        assert replace(first, run_id="run-3").pipeline().step()
    with pytest.raises(JournalLost, match=r"pipeline 'first' of this table already reads .*more"):
        Bench(settings(landing, "second", f"{landing}/more")).pipeline().step()


def test_a_source_that_is_added_later_is_held_against_the_other_pipelines(landing):
    """HOLES D19: not only a first start asks."""
    assert Bench(settings(landing, "first", f"{landing}/in")).pipeline().step()
    second = Bench(settings(landing, "second", f"{landing}/more"))
    assert second.pipeline().step()
    both = settings(landing, "second", f"{landing}/more", f"{landing}/in/sub")
    with pytest.raises(JournalLost, match="files in both"):
        replace(second, settings=both, run_id="run-2").pipeline().step()
    assert len(second.entries()) == 2


def test_a_source_of_a_new_name_in_a_known_folder_is_refused(landing):
    """HOLES D19: its files are known by the name of the other."""
    first = Bench(settings(landing, "first", f"{landing}/in"))
    assert first.pipeline().step()
    nested = settings(landing, "first", f"{landing}/more", f"{landing}/in/sub")
    renamed = replace(nested, sources=(replace(nested.sources[1], name="sub"),))
    with pytest.raises(JournalLost, match="has been read as 'default': files in both"):
        replace(first, settings=renamed, run_id="run-2").pipeline().step()


def test_pipelines_that_overlapped_before_go_on(landing):
    """A pipeline whose journal has read a source is not stopped by another that has, too."""
    first = Bench(settings(landing, "first", f"{landing}/in"))
    second = Bench(settings(landing, "second", f"{landing}/more"))
    assert first.pipeline().step()
    assert second.pipeline().step()
    path = landing / "table" / journal_entry("second", 1)
    text = path.read_text()
    path.write_text(text.replace(f"{landing}/more", f"{landing}/in/sub"))
    nested = settings(landing, "second", f"{landing}/in/sub")
    assert replace(second, settings=nested, run_id="run-2").pipeline().step()


def test_a_dry_run_tells_of_two_pipelines_of_which_none_has_begun(landing):
    """HOLES D19: one of them would be refused at a start."""
    shown = explain(
        settings(landing, "second", f"{landing}/in/sub"),
        lambda place: Reader(place.uri, place.options),
        parallelism=2,
        clock=Hands().clock,
        beside={"first": {"default": f"{landing}/in"}},
    )
    assert "pipeline 'first' of the same table is configured to read" in str(shown.refusal)


# ------------------------------------------------------------------- both begin at once


class Actor(threading.Thread):
    """A first start that waits for its turn before each look at the others and each entry."""

    def __init__(self, root: Path, name: str, hands: Hands, *, reads: str = "") -> None:
        """`reads` is a folder that the pipeline has read before."""
        super().__init__(daemon=True)
        uris = {"default": "/in" if name == "a" else "/in/sub"}
        if reads:
            before = identity(pipeline=name, source_uris={"before": reads})
            journal_of(local(root), before, hands).append((), ())
            uris["before"] = reads
        self.pipeline = name
        self.go, self.arrived = threading.Semaphore(0), threading.Semaphore(0)
        self.outcome: str = ""
        self.lease = lease(f"run-{name}", pipeline=name, on=machine("db7"))
        gate = self.gate

        class Waits(Store):
            def folders(self, prefix: str) -> list[str]:
                gate()
                return super().folders(prefix)

            def create(self, path: str, body: bytes) -> Created | AlreadyThere:
                if path in (journal_entry(name, 0), journal_entry(name, 2)):
                    gate()
                return super().create(path, body)

        store = Waits(str(root), no_options(), make_folder=True)
        self.lease.take(store)
        self.who = identity(pipeline=name, source_uris=uris)
        self.journal = Journal(
            store, self.who, read_ledger(store, name), hands.clock, guard=self.lease.check
        )

    def gate(self) -> None:
        self.arrived.release()
        self.go.acquire()

    def run(self) -> None:
        self.outcome = opened(partial(self.journal.open_with, lambda: False))
        self.arrived.release()

    def turn(self) -> None:
        """Let it take one step, to the next gate or to its end."""
        if not self.outcome:
            self.go.release()
            self.arrived.acquire()


def journal_of(store: Store, who: Entry, hands: Hands | None = None) -> Journal:
    history = read_ledger(store, who.pipeline)
    journal = Journal(store, who, history, (hands or Hands()).clock)
    journal.open_with(lambda: False)
    return journal


def opened(begin: Callable[[], object]) -> str:
    try:
        begin()
    except JournalLost:
        return "refused"
    return "goes on"


@pytest.mark.parametrize("reads", ["", "/before"], ids=["first starts", "b adds a source"])
@pytest.mark.parametrize("ahead", [0, 60, -60], ids=["alike", "b's clock ahead", "b's behind"])
def test_of_two_that_begin_to_read_a_folder_at_once_one_goes_on_at_most(tmp_path, ahead, reads):
    """HOLES D19: in whatever order they look and write, and whatever their clocks say."""
    for number, mine in enumerate(combinations(range(6), 3)):
        root = tmp_path / str(number)
        drawn = iter(range(10**6))
        actors = {
            "a": Actor(root, "a", Hands(drawn=drawn)),
            "b": Actor(root, "b", Hands(at=Hands().at + ahead, drawn=drawn), reads=reads),
        }
        for actor in actors.values():
            actor.start()
            actor.arrived.acquire()
        for place in range(6):
            actors["a" if place in mine else "b"].turn()
        for actor in actors.values():
            while not actor.outcome:
                actor.turn()
            actor.join()
        found = {name: actor.outcome for name, actor in actors.items()}
        assert list(found.values()).count("goes on") <= 1, (mine, found)
        for name in (name for name, outcome in found.items() if outcome == "refused"):
            known = read_ledger(local(root), name)
            assert "default" not in known.source_uris, "nothing is left of its wish"
            assert set(known.source_names) <= {"/before"}
            actors[name].lease.give_back(keep=False)
        for name, outcome in found.items():
            if outcome != "goes on":
                found[name] = opened(partial(journal_of, local(root), actors[name].who))
        assert list(found.values()).count("goes on") == 1, (mine, found)


def test_a_source_that_is_added_is_known_to_others_before_a_file_of_it_comes(landing):
    """HOLES D19: it may be quiet for days."""
    (landing / "quiet").mkdir()
    first = Bench(settings(landing, "first", f"{landing}/in"))
    assert first.pipeline().step()
    both = settings(landing, "first", f"{landing}/in", f"{landing}/quiet")
    assert not replace(first, settings=both, run_id="run-2").pipeline().step()
    with pytest.raises(JournalLost, match=r"pipeline 'first' of this table already reads .*quiet"):
        Bench(settings(landing, "second", f"{landing}/quiet")).pipeline().step()


def test_other_pipelines_are_asked_again_where_the_first_answer_did_not_come(landing):
    """HOLES D19: a source that is written down is not taken for one that was asked of."""

    class Forgets(Store):
        asked = 0

        def folders(self, prefix: str) -> list[str]:
            Forgets.asked += 1
            if Forgets.asked == 2:
                raise StoreUnavailable("no answer")
            return super().folders(prefix)

    first = Bench(settings(landing, "first", f"{landing}/in"))
    assert first.pipeline().step()
    both = settings(landing, "first", f"{landing}/in", f"{landing}/more")
    pipeline = replace(first, settings=both, run_id="run-2", store=Forgets).pipeline()
    with pytest.raises(StoreUnavailable):
        pipeline.step()
    assert pipeline.step()
    assert Forgets.asked == 3
