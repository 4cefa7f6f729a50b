"""A long look at a store shows how far it is, to a person at a terminal."""

import io
from pathlib import Path

from rich.console import Console

from lakebed.terminal.progress import (
    AT_ONCE_SECS,
    CountedReader,
    CountedStore,
    store_progress,
)
from tests.support.builders import no_options, put
from tests.support.waits import until


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_names_and_documents_are_counted_once(tmp_path: Path):
    for name in ("a", "b/c"):
        put(tmp_path, name, b"x")
    with store_progress("web", is_shown=False) as looked:
        reader = CountedReader(str(tmp_path), no_options(), looked)
        assert len(list(reader.objects())) == len(list(reader.in_order())) == 2
        assert reader.get("a") == b"x"
        store = CountedStore(str(tmp_path), no_options(), looked)
        assert store.get_range("a", start=0, length=1) == b"x"
        assert list(reader.stream("a", size=1, etag=None)) == [b"x"]
    assert looked.sentence("web") == "web: 4 names listed, 3 documents read"


def test_a_look_is_shown_only_where_it_takes_long():
    now = [0.0]
    console = terminal()
    with store_progress("web", is_shown=True, to=console, seconds=lambda: now[0]) as looked:
        looked.names = 1
        assert "listed" not in shown(console)
        now[0] += AT_ONCE_SECS
        looked.names = 12_345
        until(lambda: "web: 12,345 names listed, 0 documents read" in shown(console))


def test_what_is_rewritten_after_a_look_is_shown_with_log_lines_above_it():
    now = [0.0]
    console = terminal()
    with store_progress("web", is_shown=True, to=console, seconds=lambda: now[0]) as looked:
        now[0] += AT_ONCE_SECS
        looked.rewritten(0, 12)
        until(lambda: "web: 0 of 12 groups of files rewritten" in shown(console))
        assert looked.write is not None
        looked.write("spark is starting")
        looked.rewritten(3, 12)
        until(lambda: "web: 3 of 12 groups of files rewritten" in shown(console))
    assert "spark is starting\n" in shown(console)
