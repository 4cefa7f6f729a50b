"""What a batch, a poll and a commit ask of a store, counted in front of an S3 on loopback."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blizzard.model.settings import PipelineSettings, SinkSettings
from lakebed.clock import Clock
from lakebed.partition import Template
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from lakebed.units import mebibytes
from penguin.model.settings import TableSettings
from penguin.pipeline import TableRun
from tests.support.builders import ID_AND_NAME, gz, ndjson, rows, source_settings
from tests.support.faulty import Proxy, in_front_of
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner
from tests.support.s3 import make_bucket, moto, options

Asked = dict[str, float]
"""How many requests of each kind: get, head, list, put, delete; begin, part, complete."""

CYCLE = 10
"""Commits from one checkpoint to the next."""
SOURCES = 10
"""Source files by which two batches differ."""


class Lake:
    """A source, a pipeline and a table in one bucket, and the record of what they ask."""

    def __init__(self, proxy: Proxy, bucket: str) -> None:
        access = StorageOptions(options(proxy.address))
        self.proxy = proxy
        self.landing = Store(f"s3://{bucket}/in", access)
        self.table = Store(f"s3://{bucket}/table", access)
        settings = PipelineSettings(
            sources=(source_settings(self.landing.uri, storage_options=access),),
            sink=SinkSettings(
                table_uri=self.table.uri,
                storage_options=access,
                template=Template.parse("date=%Y-%m-%d"),
            ),
            schema=ID_AND_NAME,
        )
        self.pipeline = pipeline_of(settings, InProcessRunner())
        self.penguin = TableRun(
            settings=TableSettings(
                name="t", table_uri=self.table.uri, storage_options=access,
                checkpoint_interval=CYCLE,
            ),
            emit=lambda _event: None,
            clock=Clock(),
            open_store=lambda: self.table,
        )  # fmt: skip
        self._landed = 0

    def land(self, files: int, *, days: int = 1) -> None:
        """Let source files arrive, in the folders of so many days."""
        for number in range(files):
            day = 1 + number % days
            path = f"date=2026-01-{day:02d}/{self._landed:08d}.ndjson.gz"
            self.landing.replace(path, gz(ndjson(rows(3))))
            self._landed += 1

    def batch(self, files: int, *, days: int = 1) -> Asked:
        """Run a batch of so many files, and count what it asks; a data file for each day."""
        self.land(files, days=days)
        with self.counted() as asked:
            self.pipeline.step()
        return asked

    @contextmanager
    def counted(self) -> Iterator[Asked]:
        """Count what is asked inside of the block; the looks at the source are not."""
        found: Asked = {}
        self.proxy.record.clear()
        yield found
        found.update(
            Counter(
                # Objects are deleted by a POST that names them.
                "delete" if "delete" in request.query else request.kind
                for request in self.proxy.record
                if not (request.kind == "list" and request.query["prefix"][0].startswith("in"))
            )
        )


def requests() -> dict[str, Asked]:
    """Count the requests of everything that is done again and again."""
    with moto() as address, in_front_of(address) as proxy:
        lake = Lake(proxy, make_bucket(address))
        lake.batch(1)
        few = lake.batch(SOURCES)
        more = lake.batch(2 * SOURCES)
        two = lake.batch(2 * SOURCES, days=2)
        per_source = scaled(minus(more, few), 1 / SOURCES)
        per_data_file = minus(two, more)
        return {
            "batch": minus(minus(few, scaled(per_source, SOURCES)), per_data_file),
            "source_file": per_source,
            "data_file_in_one_piece": per_data_file,
            "data_file_of_three_parts": _upload(lake),
            **_penguin(lake),
        }


def _penguin(lake: Lake) -> dict[str, Asked]:
    """Count penguin's: a commit, a file, and a poll that finds nothing.

    What is read of the log depends on how many commits the last checkpoint is away. So each is an
    average over all commits from one checkpoint to the next, once there is a first checkpoint.
    """
    _cycle(lake, days=1)
    one, poll = _cycle(lake, days=1)
    two, _poll = _cycle(lake, days=2)
    per_file = scaled(minus(two, one), 1 / CYCLE)
    return {
        "penguin_poll": scaled(poll, 1 / CYCLE),
        "penguin_commit": minus(scaled(one, 1 / CYCLE), per_file),
        "penguin_file": per_file,
    }


def _cycle(lake: Lake, *, days: int) -> tuple[Asked, Asked]:
    """Count what as many commits ask as lie between two checkpoints, and a poll after each."""
    commits: Asked = {}
    polls: Asked = {}
    for _ in range(CYCLE):
        lake.batch(2, days=days)
        with lake.counted() as asked:
            lake.penguin.step()
        commits = plus(commits, asked)
        with lake.counted() as asked:
            lake.penguin.step()
        polls = plus(polls, asked)
    return commits, polls


def _upload(lake: Lake) -> Asked:
    """Count the upload of a file in parts."""
    with tempfile.TemporaryDirectory() as folder, lake.counted() as asked:
        file = Path(folder) / "file"
        file.write_bytes(os.urandom(mebibytes(12)))
        lake.table.upload(
            "probe.parquet", file, part_size=mebibytes(5), multipart=True, max_parts=4
        )
    return asked


def plus(one: Asked, other: Asked) -> Asked:
    """Return what two ask together."""
    return minus(one, scaled(other, -1))


def minus(one: Asked, other: Asked) -> Asked:
    """Return what one asks more than another."""
    kinds = sorted({*one, *other})
    left = {kind: round(one.get(kind, 0) - other.get(kind, 0), 3) for kind in kinds}
    return {kind: count for kind, count in left.items() if count}


def scaled(asked: Asked, times: float) -> Asked:
    """Return so many times the requests."""
    return {kind: round(count * times, 3) for kind, count in asked.items()}
