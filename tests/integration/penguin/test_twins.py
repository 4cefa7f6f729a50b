"""Several penguins on one table at once, in processes of their own."""

import multiprocessing
from collections import Counter

import pyarrow as pa

from lakebed.clock import Clock
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Store
from penguin.model.settings import TableSettings
from tests.support.tables import Penguin, commit_table, rows_of

# deltalake's threads do not survive a fork.
SPAWN = multiprocessing.get_context("spawn")


def commit_all(uri, gate, answers):
    """Commit what waits, as soon as everybody is ready."""
    settings = TableSettings(name="events", table_uri=uri, max_files_per_commit=2)
    store = Store(uri, StorageOptions())
    gate.wait(200)
    answers.put(commit_table(settings, store, lambda _event: None, Clock()))


def race(table, penguins):
    gate = SPAWN.Barrier(penguins)
    answers = SPAWN.Queue()
    twins = [
        SPAWN.Process(target=commit_all, args=(str(table.root), gate, answers))
        for _ in range(penguins)
    ]
    for twin in twins:
        twin.start()
    commits = [answers.get(timeout=250) for _ in twins]
    for twin in twins:
        twin.join(300)
        assert twin.exitcode == 0
    return commits


def test_penguins_at_once_commit_each_file_once(table):
    """D08, W12: they also race to create the table."""
    for name in ("one", "two"):
        journal = table.journal(name)
        for number in range(6):
            journal.batch(rows_of(number if name == "one" else 100 + number))
    commits = race(table, 3)
    paths = Counter(pa.table(table.delta().get_add_actions())["path"].to_pylist())
    assert len(paths) == 12
    assert set(paths.values()) == {1}
    assert table.ids() == [*range(6), *range(100, 106)]
    # Every version but the first is one penguin's commit, and each is counted once.
    assert sum(commits) == table.versions() - 1
    told = [line for n in range(table.versions()) for line in table.commit_text(n).splitlines()]
    assert sum('"add"' in line[:6] for line in told) == 12
    assert Penguin(table).drain().run.totals.commits == 0
