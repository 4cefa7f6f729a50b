"""A penguin that recalls the log of its table, and logs to put in its place."""

import shutil

from lakebed.layout import DELTA_LOG
from tests.support.tables import Penguin, TableDirectory, rows_of


def running(table, *ids, **options):
    """Start a penguin, let it commit an entry for each id, and look until it recalls the log."""
    penguin = Penguin(table, **options)
    for number in ids:
        table.journal().batch(rows_of(number))
        penguin.drain()
    for _ in range(2):
        assert penguin.step() is False
    known = penguin.run._log_cache.known
    assert known is not None
    assert known.version == table.delta().version()
    return penguin


def log_of(table):
    return table.root / DELTA_LOG


def another_log(tmp_path, versions):
    """Make a log of another table with as many versions, the last a commit of a foreign file."""
    other = TableDirectory(tmp_path / "other")
    for number in range(versions - 1):
        other.journal().batch(rows_of(1000 + number))
        Penguin(other).drain()
    assert other.versions() == versions
    return log_of(other)


def put(table, log):
    """Put another log in the place of a table's."""
    shutil.rmtree(log_of(table))
    shutil.copytree(log, log_of(table))


def loses(table, happens):
    """Let something happen, and put the log back as it was before."""
    backup = table.root.parent / "backup"
    shutil.copytree(log_of(table), backup)
    happens()
    put(table, backup)
