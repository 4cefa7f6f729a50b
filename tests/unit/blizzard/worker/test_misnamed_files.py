"""Files whose names do not say how they are compressed come in right, whatever their size."""

import bz2
import gzip
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blizzard.cli.run.dry_run import explain
from blizzard.model.settings import Sizing
from lakebed.clock import Clock
from lakebed.errors import StoreUnavailable
from lakebed.storage.options import Location
from lakebed.storage.store import Reader
from lakebed.types import Compression
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows

TEXT = ndjson(rows(2000))
BODIES = {
    "gzip.json": gzip.compress(TEXT, mtime=0),
    "bzip2.ndjson": bz2.compress(TEXT),
    "bzip2.ndjson.gz": bz2.compress(TEXT),
    "plain.ndjson.gz": TEXT,
    "plain.json": TEXT,
}


@dataclass
class Asked:
    """Opens sources, and remembers which bytes the driver has asked for."""

    parts: list[tuple[str, int, int]] = field(default_factory=list)
    fails: bool = False

    def open(self, place: Location) -> Reader:
        asked = self

        class Asking(Reader):
            def part(self, path: str, start: int, end: int, *, etag: str | None) -> bytes:
                asked.parts.append((path, start, end))
                if asked.fails:
                    raise StoreUnavailable("no answer", path=path)
                return super().part(path, start, end, etag=etag)

        return Asking(place.uri, place.options)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for name, body in BODIES.items():
        put(tmp_path / "in", name, body)
    return Bench(pipeline_settings(tmp_path / "in", tmp_path / "table"))


@pytest.fixture
def asked() -> Asked:
    return Asked()


def run(bench: Bench, asked: Asked) -> dict[str, int | str]:
    """Ingest everything; give the rows of each file, or why it failed."""
    pipeline = replace(bench.pipeline(), open_source=asked.open)
    assert pipeline.step()
    assert not pipeline.step()
    return {
        record.path: record.failure.code if record.failure else record.rows
        for entry in bench.entries()
        for record in entry.sources
    }


def test_small_files_are_recognised_by_bytes_that_are_read_anyway(bench, asked):
    """L35: no request is made for it."""
    assert run(bench, asked) == dict.fromkeys(BODIES, 2000)
    assert asked.parts == []


@pytest.fixture
def large(bench):
    """Let files of a few kilobytes be large enough to be cut."""
    bench.settings = replace(bench.settings, sizing=Sizing(smallest_unit=4096))


def only(bench: Bench, body: bytes) -> None:
    """Let one file be all there is: then two cores share it, if they can."""
    folder = Path(bench.settings.sources[0].uri)
    for name in BODIES:
        (folder / name).unlink()
    put(folder, "large.json", body)


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_file_that_would_be_cut_is_asked_for_its_first_bytes_once(bench, asked, large, is_plain):
    """L35: a plain one is read in parts, a compressed one whole."""
    text = ndjson(rows(20_000))
    only(bench, text if is_plain else gzip.compress(text, mtime=0))
    found = explain(bench.settings, asked.open, parallelism=2, clock=Clock())
    assert (len(found.units) > 1) is is_plain
    assert asked.parts == [("large.json", 0, 16)]
    asked.parts.clear()
    assert run(bench, asked) == {"large.json": 20_000}
    assert asked.parts == [("large.json", 0, 16)]


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_file_that_does_not_answer_is_read_whole(bench, asked, large, is_plain):
    """L35: whoever reads it sees what it is."""
    asked.fails = True
    text = ndjson(rows(20_000))
    only(bench, text if is_plain else gzip.compress(text, mtime=0))
    assert run(bench, asked) == {"large.json": 20_000}
    assert len(asked.parts) == 1


def test_a_compression_that_is_configured_is_not_asked_for(bench, asked, large):
    """L35: it says what all files are."""
    source = replace(bench.settings.sources[0], compression=Compression.NONE)
    bench.settings = replace(bench.settings, sources=(source,))
    assert run(bench, asked)["gzip.json"] == "not_utf8"
    assert asked.parts == []
