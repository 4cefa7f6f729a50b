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
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from tests.support.answering import Asked, Given, answering, error
from tests.support.compactions import crowded, crowded_by_day
from tests.support.runner import InsideService

RECORD = '{"id": 1}\n'
LISTING = (
    "<ListBucketResult><Name>b</Name><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>"
    "<Contents><Key>in/a.ndjson</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
    f'<ETag>"1"</ETag><Size>{len(RECORD)}</Size></Contents></ListBucketResult>'
)


class Terminal(io.StringIO):
    """Standard error of a person who looks on."""

    def isatty(self) -> bool:
        return True

    def shows(self, text: str) -> bool:
        """Wait until a text is drawn; False where it never is."""
        for _ in range(3000):
            if text in self.getvalue():
                return True
            threading.Event().wait(0.1)
        return False


@dataclass
class WatchedRunner(InsideService):
    """Ends no group before it was shown that none has ended."""

    watch: Callable[[], None] = lambda: None

    def rewrite(
        self, groups: Sequence[FileGroup], work: Rewriting, **told: Any
    ) -> list[RewriteOutcome]:
        self.watch()
        return super().rewrite(groups, work, **told)


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
    assert desk.compact(progress=lambda done, groups: told.append((done, groups))).entry
    assert told == [(0, 2), (1, 2), (2, 2)]


@pytest.fixture(scope="module")
def some_files(tmp_path_factory) -> Any:
    return crowded(tmp_path_factory.mktemp("some"), files=2)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_look_is_shown_to_a_person_at_a_terminal_alone(some_files, terminal, output):
    for command in (
        *("--dry-run", "files", "retract 0.ndjson"),
        *("trace --where id=1", "erase --where id=1"),
    ):
        with pytest.raises(SystemExit), redirect_stderr(terminal):
            app([*command.split(), "-c", str(some_files.file), "--output", output])
        # The cursor is hidden as long as a line is drawn again and again, and is there at the end.
        drawn = terminal.getvalue()
        assert ("\x1b[?25l" in drawn) is (output == "text"), command
        assert drawn.rfind("\x1b[?25h") >= drawn.rfind("\x1b[?25l"), command
        terminal.seek(0)
        terminal.truncate()


def test_init_shows_that_it_reads(monkeypatch, terminal):
    seen: list[bool] = []

    def answer(asked: Asked) -> Given:
        if asked.method == "HEAD":
            return error(404, "NoSuchKey")
        if "list-type=2" in asked.path:
            return Given(body=LISTING)
        seen.append(terminal.shows("s3://b/in: reading"))
        facts = {"etag": '"1"', "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        return Given(body=RECORD, headers=facts)

    for name, value in (("ACCESS_KEY_ID", "k"), ("SECRET_ACCESS_KEY", "s"), ("REGION", "eu")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with answering() as store:
        store.answer = answer
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.address)
        with redirect_stderr(terminal):
            found, read = init.read_samples("s3://b/in", 1000)
    assert seen == [True]
    assert (found.names, len(read.records)) == (("a.ndjson",), 1)
