"""Commands that take long show a person at a terminal how far they are."""

import io
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any

import pytest

from blizzard.cli import init
from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.inspect.sample import NothingToLookAt
from blizzard.model.rewriting import FileGroup, MergeOutcome, Merging
from tests.support.answering import Asked, Given, answering, error
from tests.support.compactions import crowded, crowded_by_day
from tests.support.runner import InsideService

EMPTY = "<ListBucketResult><Name>b</Name><KeyCount>0</KeyCount></ListBucketResult>"


class Terminal(io.StringIO):
    """Standard error of a person who looks on."""

    def isatty(self) -> bool:
        return True

    def shows(self, text: str) -> bool:
        """Wait until a text is drawn; False where it never is."""
        for _ in range(300):
            if text in self.getvalue():
                return True
            threading.Event().wait(0.1)
        return False


@dataclass
class WatchedRunner(InsideService):
    """Ends no group before it was shown that none has ended."""

    watch: Callable[[], None] = lambda: None

    def merge(self, groups: Sequence[FileGroup], work: Merging, **told: Any) -> list[MergeOutcome]:
        self.watch()
        return super().merge(groups, work, **told)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal to take the place of standard error."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def compacted(desk: Any, terminal: Terminal, watch: Callable[[], None], *arguments: str) -> int:
    """Run `blizzard compact --yes` on a terminal."""
    around = Surroundings(make_runner=lambda *_settings, **_told: WatchedRunner(watch=watch))
    with pytest.raises(SystemExit) as ended, redirect_stderr(terminal):
        app(["compact", "--yes", "-c", str(desk.file), *arguments], obj=around)
    return int(str(ended.value.code))


def test_a_compaction_shows_how_many_groups_are_rewritten(tmp_path, terminal):
    desk = crowded(tmp_path)
    seen: list[bool] = []

    def watch() -> None:
        seen.append(terminal.shows("default: 0 of 1 group of files rewritten"))

    assert compacted(desk, terminal, watch) == 0
    assert seen == [True]


def test_a_compaction_whose_output_is_json_shows_nothing_else(tmp_path, terminal):
    desk = crowded(tmp_path)
    assert compacted(desk, terminal, lambda: None, "--output", "json") == 0
    assert terminal.getvalue() == ""


def test_a_compaction_tells_of_every_group_that_is_done(tmp_path):
    told: list[tuple[int, int]] = []
    desk = crowded_by_day(tmp_path)
    assert desk.compact(rewritten=lambda done, groups: told.append((done, groups))).entry
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_init_shows_how_much_it_has_listed(monkeypatch, terminal):
    seen: list[bool] = []

    def answer(asked: Asked) -> Given:
        if asked.method == "HEAD":
            return error(404, "NoSuchKey")
        seen.append(terminal.shows("s3://b/in: 0 names listed, 0 documents read"))
        return Given(body=EMPTY)

    for name, value in (("ACCESS_KEY_ID", "k"), ("SECRET_ACCESS_KEY", "s"), ("REGION", "eu")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with answering() as store:
        store.answer = answer
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.address)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        with pytest.raises(NothingToLookAt), redirect_stderr(terminal):
            init.look("s3://b/in", 1000)
    assert seen
    assert all(seen)
