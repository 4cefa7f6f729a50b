"""What penguin asks of an S3, counted by a proxy in front of it.

Requests are money and, one after the other, time: a poll comes every ten seconds for every table.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakebed.clock import Clock
from lakebed.deltalog.tables import preview
from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT, log_version
from lakebed.storage.options import StorageOptions
from lakebed.storage.remote import for_delta
from penguin.model.settings import TableSettings
from penguin.pipeline import TableRun
from tests.support.faulty import Proxy, Request
from tests.support.s3 import options, store
from tests.support.tables import TableDirectory, rows_of

CHECKPOINT_EVERY = 3


@dataclass
class Bay:
    """A table on S3 that penguin reaches through a proxy; entries are written past it."""

    local: TableDirectory
    address: str
    bucket: str
    proxy: Proxy
    checkpoint_interval: int = 100
    uploaded: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.uri = f"s3://{self.bucket}/table"
        self.behind = store(self.address, self.uri)
        self.penguin = self.another()

    def another(self) -> TableRun:
        """Start a penguin."""
        return TableRun(
            settings=TableSettings(
                name="t",
                table_uri=self.uri,
                storage_options=StorageOptions(options(self.proxy.address)),
                checkpoint_interval=self.checkpoint_interval,
            ),
            emit=lambda _event: None,
            clock=Clock(),
            open_store=lambda: store(self.proxy.address, self.uri),
            pause=lambda _seconds: None,
        )

    def batch(self, number: int, pipeline: str = "events") -> None:
        """Journal an entry with one file."""
        self.local.journal(pipeline).batch(rows_of(number))
        for path in sorted(self.local.root.rglob("*")):
            if path.is_file() and path not in self.uploaded:
                self.behind.create(str(path.relative_to(self.local.root)), path.read_bytes())
                self.uploaded.add(path)

    def step(self) -> list[Request]:
        """Let penguin look once; give what it asked."""
        self.proxy.record.clear()
        self.worked = self.penguin.step()
        return list(self.proxy.record)

    def rows(self) -> int:
        return preview(self.uri, rows=1, options=StorageOptions(options(self.address))).rows

    def delta(self) -> DeltaTable:
        access = for_delta(options(self.address), uri=self.uri)
        return DeltaTable(self.uri, storage_options=access)


@pytest.fixture
def bay(s3, bucket, proxy, tmp_path):
    return Bay(TableDirectory(tmp_path / "table"), s3, bucket, proxy)


def kinds(asked):
    return Counter(request.kind for request in asked)


def of_the_log(asked):
    """Return the objects of the Delta log that were asked for, by name."""
    return Counter(
        request.path.rpartition("/")[2]
        for request in asked
        if DELTA_LOG in request.path and request.kind != "list"
    )


def name(version):
    return log_version(version).rpartition("/")[2]


def test_a_poll_that_finds_nothing_asks_a_handful_whatever_the_log_holds(bay):
    """Of the log it looks at the last version and for the one after it, and nothing else.

    The other requests are the directory's: the pipelines, the protocol and the next one, the held
    files; and, for each pipeline, the receipt, the first entry, the last, the next, and a listing
    that says that none is missing.
    """
    bay.checkpoint_interval = CHECKPOINT_EVERY
    bay.penguin = bay.another()
    counts = []
    for version in range(1, CHECKPOINT_EVERY + 2):
        bay.batch(version)
        bay.penguin.step()
        if version == 1:
            bay.penguin.step()  # A table that is new to it is read twice before it is recalled.
        asked = bay.step()
        assert bay.worked is False
        assert of_the_log(asked) == {name(version): 1, name(version + 1): 1}
        counts.append(kinds(asked))
    assert counts == [counts[0]] * len(counts)
    assert counts[0]["list"] <= 3
    assert counts[0]["get"] + counts[0]["head"] <= 8
    assert set(counts[0]) == {"list", "get", "head"}


def test_a_poll_asks_no_more_of_the_log_where_there_are_more_pipelines(bay):
    """Each of them has three transactions there."""
    for pipeline in ("one", "two", "three"):
        bay.batch(1, pipeline)
    while bay.penguin.step():
        pass
    bay.penguin.step()
    asked = bay.step()
    assert of_the_log(asked) == {name(1): 1, name(2): 1}


def test_a_commit_reads_each_version_a_few_times_however_long_the_log(bay):
    """The table is opened once, and the library reads each version twice when it does."""
    for number in range(1, 3):
        bay.batch(number)
        bay.penguin.step()
    for version in range(3, 6):
        bay.batch(version)
        asked = bay.step()
        log = of_the_log(asked)
        assert bay.worked is True
        assert all(log[name(each)] <= 2 for each in range(version - 1))
        # The last one is looked at to see that it is the last: before the plan, before and after
        # the table is opened, and when the commit is looked for. The new one is asked for as often.
        assert log[name(version - 1)] <= 2 + 4
        assert log[name(version)] <= 2 + 3 + 4
        assert log[name(version + 1)] <= 1
        assert log[LAST_CHECKPOINT.rpartition("/")[2]] <= 2
        # Three more are the library's: it lists the log when it opens it, and twice to commit.
        assert kinds(asked)["list"] <= 3 + 3
        # Two for each version that it opens with. The rest does not depend on the log: ten for
        # what a poll looks at, as many to see where the log ends, and a few to commit.
        assert kinds(asked)["get"] + kinds(asked)["head"] <= 2 * version + 25
    assert bay.rows() == 5


def test_what_another_penguin_commits_costs_the_new_versions_and_no_more(bay):
    """HOLES D08."""
    for number in (1, 2):
        bay.batch(number)
        bay.penguin.step()
    bay.step()
    other = bay.another()
    for number in (3, 4):
        bay.batch(number)
        assert other.step()
    asked = bay.step()
    assert bay.worked is False
    assert set(of_the_log(asked)) <= {name(2), name(3), name(4), name(5), "_last_checkpoint"}
    assert bay.penguin.totals.commits + other.totals.commits == 4
    assert bay.rows() == 4


@pytest.mark.unbalanced("receipt_ahead")
def test_what_happens_to_a_log_on_s3_between_two_looks_is_noticed(bay):
    """HOLES D16: OPTIMIZE changes nothing; another version in the last one's place stops it."""
    for number in (1, 2):
        bay.batch(number)
        bay.penguin.step()
    bay.step()
    assert bay.delta().optimize.compact()["numFilesRemoved"] == 2
    assert (bay.penguin.step(), bay.rows()) == (False, 2)
    bay.batch(3)
    assert (bay.penguin.step(), bay.rows()) == (True, 3)
    assert bay.penguin.step() is False
    last = log_version(4)
    body = bay.behind.get(last)
    bay.behind.replace(last, body.replace(b'"version":3', b'"version":2'))
    assert len(bay.behind.get(last)) == len(body)
    bay.penguin.step()
    assert [one.error.code for one in bay.penguin.stopped.values()] == ["log_rolled_back"]
    for facts in list(bay.behind.objects(DELTA_LOG)):
        bay.behind.delete(facts.path)
    bay.penguin.step()
    assert [one.error.code for one in bay.penguin.stopped.values()] == ["log_rolled_back"]
    assert list(bay.behind.objects(DELTA_LOG)) == []
