"""Whatever becomes of a log between two looks, what is recalled is what a stranger would read."""

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.snapshot import LogCache
from lakebed.layout import DELTA_LOG, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.delta.table import Log
from tests.support.tables import opened

NOW = datetime(2026, 1, 1, tzinfo=UTC)
APPS = ("a", "b", "c")
FIELD = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
EMPTY = TableFacts(
    version=None,
    schema={"type": "struct", "fields": [FIELD]},
    partition_columns=(),
    configuration={},
)


class World:
    """A log that all kinds of programs and people have their hands on."""

    def __init__(self, root: Path) -> None:
        self.root = root / "table"
        self.root.mkdir()
        self.backup = root / "backup"
        self.store = Store(str(self.root), StorageOptions())
        self.log = self.root / DELTA_LOG
        self.count = 0
        self.replace()

    def replace(self) -> None:
        """Drop the table and make another one of as many versions."""
        versions = len(list(self.log.glob("*.json"))) if self.log.exists() else 1
        shutil.rmtree(self.log, ignore_errors=True)
        Log(self.store).create(EMPTY, {})
        for _ in range(versions - 1):
            self.commit()

    def commit(self) -> None:
        self.count += 1
        pair = (APPS[self.count % len(APPS)], self.count)
        opened(Log(self.store)).commit((), (pair,), {}, NOW)

    def many(self) -> None:
        for _ in range(12):
            self.commit()

    def column(self) -> None:
        self.count += 1
        now = opened(Log(self.store))
        fields = [*now.facts.schema["fields"], {**FIELD, "name": f"c{self.count}"}]
        after = replace(now.facts, schema={"type": "struct", "fields": fields})
        now.evolve(after, (("b", self.count),), {}, NOW)

    def checkpoint(self) -> None:
        opened(Log(self.store)).checkpoint()

    def clean_up(self) -> None:
        """Remove the versions that a checkpoint makes needless."""
        self.checkpoint()
        for file in sorted(self.log.glob("*.json"))[:-1]:
            file.unlink()

    def roll_back(self) -> None:
        """Take the last version away, if the log can still be read then."""
        last = opened(Log(self.store)).version
        if last > 0 and not list(self.log.glob("*.checkpoint.parquet")):
            (self.root / log_version(last)).unlink()

    def rewrite(self) -> None:
        """Put another version in the place of the last."""
        self.roll_back()
        self.commit()

    def back_up(self) -> None:
        shutil.rmtree(self.backup, ignore_errors=True)
        shutil.copytree(self.log, self.backup)

    def restore(self) -> None:
        if self.backup.exists():
            shutil.rmtree(self.log)
            shutil.copytree(self.backup, self.log)


ACTIONS = (
    World.commit,
    World.many,
    World.column,
    World.checkpoint,
    World.clean_up,
    World.roll_back,
    World.rewrite,
    World.replace,
    World.back_up,
    World.restore,
)


@settings(max_examples=25, deadline=None)
@given(
    turns=st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(min_value=0, max_value=2)), max_size=12
    )
)
def test_what_is_recalled_is_what_is_there(turns):
    """HOLES D16: with some looks in between, so that there is something to recall."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        memory = LogCache()
        for act, looks in [(World.commit, 2), *turns, (World.commit, 1)]:
            act(world)
            for _ in range(looks):
                mine, there = opened(Log(world.store, memory)), opened(Log(world.store))
                assert (mine.id, mine.version, mine.facts) == (there.id, there.version, there.facts)
                answers = [there.transaction(app_id) for app_id in APPS]
                assert [mine.transaction(app_id) for app_id in APPS] == answers
