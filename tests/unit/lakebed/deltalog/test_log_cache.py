"""What a version that follows leaves of what is known of a log."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakebed.deltalog import latest as log_cache
from lakebed.deltalog.delta_types import TableFacts
from lakebed.deltalog.latest import CachedVersion, LogCache
from lakebed.layout import log_version
from lakebed.storage.store import ObjectFacts
from tests.support.bucket import Bucket

FACTS = TableFacts(version=7, schema={"fields": []}, partition_columns=(), configuration={})


def the_object(version, etag="e"):
    return ObjectFacts(
        path=log_version(version), size=10, etag=etag, modified=datetime(2026, 1, 1, tzinfo=UTC)
    )


def known(**answers):
    return CachedVersion(version=7, id="table", facts=FACTS, answers=answers, last=the_object(7))


def body(*actions):
    return "\n".join(map(json.dumps, actions)).encode()


COMMIT = {"commitInfo": {"operation": "WRITE"}}
ADD = {"add": {"path": "txn", "stats": '{"metaData": 1}'}}
REMOVE = {"remove": {"path": "a", "dataChange": False}}


def txn(app_id, version):
    return {"txn": {"appId": app_id, "version": version}}


def test_a_version_that_only_touches_files_leaves_the_table_what_it_is():
    after = known(a=1, b=None).after(body(COMMIT, ADD, REMOVE), the_object(8))
    assert after == replace(
        known(a=1, b=None), version=8, facts=replace(FACTS, version=8), last=the_object(8)
    )


def test_transactions_of_the_version_replace_those_that_are_known():
    before = known(a=1, b=None, c=3)
    after = before.after(body(COMMIT, txn("a", 2), txn("b", 5)), the_object(8))
    assert after is not None
    assert (after.answers, before.answers) == (
        {"a": 2, "b": 5, "c": 3},
        {"a": 1, "b": None, "c": 3},
    )


def test_transactions_that_nobody_asked_for_are_not_kept():
    """A table with files of other programs has one for each of them."""
    after = known(a=1).after(body(*(txn(f"penguin/{n}", 1) for n in range(100))), the_object(8))
    assert after is not None
    assert after.answers == {"a": 1}


def test_where_all_transactions_are_known_new_ones_are_kept_but_those_of_single_files():
    before = replace(known(a=1), complete=True)
    single = "penguin/file/x.parquet"
    after = before.after(body(txn("b", 2), txn("penguin/scan", 3), txn(single, 1)), the_object(8))
    assert after is not None
    assert after.answers == {"a": 1, "b": 2, "penguin/scan": 3}
    assert after.answers_for("c")
    assert not after.answers_for(single)
    assert not known(a=1).answers_for("c")


def test_a_single_file_that_was_asked_for_is_kept_up_to_date():
    single = "penguin/file/x.parquet"
    before = replace(known(**{single: None}), complete=True)
    after = before.after(body(txn(single, 1)), the_object(8))
    assert after is not None
    assert after.answers == {single: 1}


def domain(name, configuration="{}", *, removed=False):
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def test_domains_of_metadata_are_those_of_the_last_version_that_names_them():
    before = replace(known(), domains={"a": "1", "b": "2", "c": "3"})
    after = before.after(body(domain("b", "4"), domain("c", removed=True)), the_object(8))
    assert after is not None
    assert after.domains == {"a": "1", "b": "4"}
    unread = known().after(body(domain("b", "4")), the_object(8))
    assert unread is not None
    assert unread.domains is None


def test_a_timestamp_is_that_of_the_last_version():
    before = replace(known(), in_commit_timestamp=5)
    after = before.after(body({"commitInfo": {"inCommitTimestamp": 7}}), the_object(8))
    assert after is not None
    assert after.in_commit_timestamp == 7
    without = before.after(body(COMMIT), the_object(8))
    assert without is not None
    assert without.in_commit_timestamp is None


@pytest.mark.parametrize(
    "text",
    [
        body(COMMIT, {"metaData": {"id": "table"}}),
        body(COMMIT, {"protocol": {"minReaderVersion": 1}}),
        body(COMMIT) + b'\n{"add":',
        body({"txn": {"appId": "a"}}),
        body({"txn": {"appId": "a", "version": "2"}}),
        body({"domainMetadata": {"configuration": "{}"}}),
        b"\xff\xfe",
        b"",
        b"\n\n",
    ],
)
def test_a_version_that_makes_another_table_or_cannot_be_read_leaves_nothing(text):
    """W14: the library reads the log anew then, and says what is wrong with it."""
    assert known(a=1).after(text, the_object(8)) is None


def test_a_table_that_is_asked_for_too_many_transactions_is_read_anew():
    assert known(a=1, b=2).after(body(COMMIT), the_object(8), most_answers=2) is not None
    assert known(a=1, b=2, c=3).after(body(COMMIT), the_object(8), most_answers=2) is None


class Versions(Bucket):
    """A log in memory."""

    def __init__(self, *numbers):
        super().__init__()
        for number in numbers:
            self.write(number)

    def write(self, number):
        self.add(log_version(number), body=body(COMMIT, txn("a", number)))

    def fetch(self, path):
        facts = self.head(path)
        return None if facts is None else (self.bodies[path], facts)


def remembering(store, version):
    last = store.head(log_version(version))
    facts = replace(FACTS, version=version)
    return LogCache(
        CachedVersion(version=version, id="t", facts=facts, answers={"a": 0}, last=last)
    )


def test_many_versions_that_follow_are_not_read_one_by_one():
    store = Versions(*range(8))
    memory = remembering(store, 7)
    for number in range(8, 8 + log_cache.MOST_VERSIONS - 1):
        store.write(number)
    caught_up = memory.catch_up(store)
    assert caught_up is not None
    assert (caught_up.version, caught_up.answers) == (16, {"a": 16})
    for number in range(17, 17 + log_cache.MOST_VERSIONS):
        store.write(number)
    assert memory.catch_up(store) is None


def test_a_store_without_e_tags_is_never_believed():
    """Two objects of one size may be written within one tick of a clock."""
    store = Versions(7)
    read = CachedVersion(version=7, id="t", facts=FACTS)
    memory = LogCache(_likely=7)
    memory.learn(store, read, memory.before(store))
    assert memory.catch_up(store) is not None

    class Bare(Versions):
        def head(self, path):
            facts = super().head(path)
            return None if facts is None else replace(facts, etag=None)

    store = Bare(7)
    memory = LogCache(_likely=7)
    memory.learn(store, read, memory.before(store))
    assert memory.catch_up(store) is None
    assert LogCache(replace(read, last=store.head(log_version(7)))).catch_up(store) is None


def test_what_was_read_is_not_kept_without_a_look_at_its_object_before():
    """The object that is there after the reading may be another one than was read."""
    store = Versions(7)
    memory = LogCache()
    memory.learn(store, CachedVersion(version=7, id="t", facts=FACTS), memory.before(store))
    assert memory.known is None
    memory.learn(store, CachedVersion(version=7, id="t", facts=FACTS), memory.before(store))
    assert memory.known is not None


def test_a_log_that_grew_while_it_was_read_is_kept_only_as_far_as_it_was_looked_at():
    store = Versions(7, 8)
    memory = LogCache(_likely=7)
    memory.learn(store, CachedVersion(version=8, id="t", facts=FACTS), memory.before(store))
    assert memory.known is None
