"""Looking at a source on S3: pages, requests, and a listing that breaks off between two pages."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from blizzard.discover.finding import Finding, Reason
from blizzard.discover.lister import SourceLister
from blizzard.discover.scan import DiscoveryContext
from blizzard.journal.ledger import Ledger
from blizzard.model.source.file import IngestedFile
from lakebed.errors import NameUnusable, StoreUnavailable
from lakebed.storage.store import Reader
from tests.support.builders import source_settings
from tests.support.faulty import Cut, Refuse
from tests.support.s3 import put_key, store

NAMES = [f"date=2024-01-0{1 + number // 600}/{number:05d}.ndjson" for number in range(1100)]
"""More than one page of a listing holds."""


def put_all(address: str, bucket: str, names: list[str], *, above: str = "in/") -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: put_key(address, bucket, f"{above}{name}", b"{}\n"), names))


class Site:
    """A source on S3 behind a proxy, and one who looks at it."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.history = Ledger()
        self.now = datetime.now(UTC) + timedelta(hours=2)
        self.lister = SourceLister(source=source_settings("in"), template=None, partition_fields={})

    def finding(self) -> Finding:
        self.now += timedelta(seconds=1)
        lookup = self.history.lookup()
        context = DiscoveryContext(store=self.reader, lookup=lookup, unfinished={}, now=self.now)
        return self.lister.discover(context)

    def look(self) -> list[str]:
        finding = self.finding()
        for file in finding.take:
            self.history.recent[file.key] = IngestedFile(
                key=file.key, size=file.size, etag=file.etag
            )
        return [file.path for file in finding.take]


def test_a_listing_that_breaks_off_between_pages_fails_whole_and_then_costs_one_request_a_poll(
    s3, bucket, proxy
):
    """L10, L08: no mark moves; the poll is retried; an idle one lists from the mark on.

    W23: a name that cannot be used, behind many pages, costs a request for each name on its page;
    a quick look behind it costs nothing more.
    """
    put_all(s3, bucket, NAMES)
    site = Site(store(proxy.address, f"s3://{bucket}/in"))
    before = site.lister._cursor
    for fault in (Refuse(503), Cut(400)):
        proxy.rule = lambda request, fault=fault: (
            fault if "continuation-token" in request.query else None
        )
        with pytest.raises(StoreUnavailable):
            site.look()
        with pytest.raises(StoreUnavailable):
            list(site.reader.objects())
        assert site.lister._cursor is before
        assert site.history.recent == {}

    proxy.rule = lambda _request: None
    assert site.look() == NAMES
    site.now += timedelta(hours=2)
    assert site.look() == []
    proxy.record.clear()
    assert site.look() == []
    (request,) = proxy.record
    assert request.kind == "list"
    assert request.query["start-after"] == [f"in/{NAMES[-1]}"]

    late = ["date=2024-01-03/99999.ndjson", "date=2024-02-01/00000.ndjson"]
    put_all(s3, bucket, late)
    assert site.look() == late

    put_all(s3, bucket, ["date=2024-01-02/00999\t.ndjson"])
    proxy.record.clear()
    assert taken(look_at(site.reader)) == [*NAMES, *late]
    assert len(proxy.record) < 1020
    listed = list(site.reader.in_order(after=NAMES[1050]))
    assert [facts.path for facts in listed] == [*NAMES[1051:], *late]


# ------------------------------------------------------------------------------ folder markers


BESIDE = ["a-1/x.ndjson", "a/x.ndjson", "b.ndjson/part-0.json", "c.ndjson"]


def markers(site: Site) -> list[str]:
    finding = site.finding()
    return [one.path for one in finding.passed if one.reason is Reason.FOLDER_MARKER]


def test_markers_of_folders_are_no_files_and_make_no_listing_unordered(s3, bucket):
    """W47: such as a bucket's console makes them; no sweep has to hold all names for them."""
    put_all(s3, bucket, ["-.ndjson", *BESIDE])
    for marker in ("", "a/", "b.ndjson/", "z/"):
        put_key(s3, bucket, f"in/{marker}")
    site = Site(store(s3, f"s3://{bucket}/in"))
    assert markers(site) == ["a/", "b.ndjson/"]
    assert not site.lister.lister.sorts
    assert site.look() == ["-.ndjson", *BESIDE]
    assert site.look() == []


# ------------------------------------------------------------------------------ odd names

GOOD = [
    *("!first.ndjson", "-dash.ndjson", "0.ndjson", "a b.ndjson", "a.ndjson", "date=1/0.ndjson"),
    *("date=1/!x.ndjson", "date=1/1.ndjson", "date=1/deep/a.ndjson", "date=1/z.ndjson"),
    *("date=2/.-hidden.ndjson", "date=2/a.ndjson", "date=2/t .ndjson", "date=2/tz.ndjson"),
    *("date=3/a.ndjson", "z.ndjson", "é.ndjson"),
]
ODD = {
    "/q.ndjson": "/",
    "a\tb.ndjson": r"a\x09b.ndjson",
    "date=1//x.ndjson": "date=1//",
    "date=1/./x.ndjson": "date=1/./",
    "date=1/../x.ndjson": "date=1/../",
    "date=1/deep//a/b.ndjson": "date=1/deep//",
    "date=2/t\x01.ndjson": r"date=2/t\x01.ndjson",
    "date=2/t\x7f.ndjson": r"date=2/t\x7f.ndjson",
    "date=3/.": "date=3/.",
    "a//b": "a//",
}


def taken(found: Finding) -> list[str]:
    return [file.path for file in found.take]


def look_at(reader: Reader) -> Finding:
    lister = SourceLister(source=source_settings("in"), template=None, partition_fields={})
    now = datetime.now(UTC) + timedelta(hours=2)
    context = DiscoveryContext(store=reader, lookup=Ledger().lookup(), unfinished={}, now=now)
    return lister.discover(context)


@pytest.mark.parametrize("inside", ["in", ""])
def test_names_that_cannot_be_used_are_told_and_all_others_are_found(s3, bucket, inside):
    """W23: one such name on a page of a listing fails the whole page, and every look."""
    above = "in/" if inside else ""
    odd = [name for name in ODD if inside or not name.startswith("/")]
    put_all(s3, bucket, [*GOOD, *odd], above=above)
    finding = look_at(store(s3, f"s3://{bucket}/{inside}"))
    hidden = {"date=2/.-hidden.ndjson"}
    assert taken(finding) == sorted({*GOOD} - hidden)
    (amiss,) = finding.amiss
    assert (amiss.reason, amiss.files) == (Reason.UNUSABLE_NAME, len(odd))
    shown = {one.path for one in finding.passed if one.reason is Reason.UNUSABLE_NAME}
    assert shown == {ODD[name] for name in odd}


def test_a_listing_of_which_nobody_is_told_what_it_leaves_out_fails_by_name(s3, bucket):
    """W23: unknown is never taken for empty."""
    put_all(s3, bucket, ["a.ndjson", "b//x\t.ndjson"])
    with pytest.raises(NameUnusable, match="rename or remove it") as failed:
        list(store(s3, f"s3://{bucket}/in").in_order())
    assert r"in/b//x\x09.ndjson" in str(failed.value)
