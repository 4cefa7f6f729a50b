"""Which files of a Delta log may be removed, and how far apart checkpoints are."""

from datetime import UTC, datetime, timedelta

import pytest

from lakebed.storage.options import ObjectFacts
from penguin.delta.maintenance import find_expired, log_retention, removes_expired, spacing

NOW = datetime(2026, 1, 31, tzinfo=UTC)
MONTH = timedelta(days=30)


def file(name, days_old, size=1):
    return ObjectFacts(
        path=f"_delta_log/{name}",
        size=size,
        etag=None,
        modified=NOW - timedelta(days=days_old),
    )


def version(number, days_old):
    return file(f"{number:020d}.json", days_old)


def checkpoint(number, days_old, size=1):
    return file(f"{number:020d}.checkpoint.parquet", days_old, size)


def part(number, days_old, which, of):
    return file(f"{number:020d}.checkpoint.{which:010d}.{of:010d}.parquet", days_old)


def names(found):
    return [path.removeprefix("_delta_log/").lstrip("0") or "0" for path in found.files]


def base_of(found):
    assert found.base is not None
    return found.base


OLD = [version(number, 40) for number in range(5)]
YOUNG = [version(number, 1) for number in range(5, 8)]


def test_what_is_older_than_the_table_keeps_goes_up_to_the_checkpoint():
    found = find_expired([*OLD, *YOUNG, checkpoint(2, 39), checkpoint(4, 35)], MONTH, NOW)
    assert names(found) == [".json", "1.json", "2.checkpoint.parquet", "2.json", "3.json"]
    assert (found.versions, found.first, base_of(found).version) == (4, 4, 4)


def test_every_version_that_stays_can_be_read():
    """HOLES L31: a younger checkpoint stands for nothing that an older version is read from."""
    assert find_expired([*OLD, *YOUNG, checkpoint(7, 1)], MONTH, NOW).files == ()
    found = find_expired([*OLD, *YOUNG, checkpoint(2, 39), checkpoint(7, 1)], MONTH, NOW)
    assert (base_of(found).version, found.first) == (2, 2)


def test_a_part_of_an_unfinished_checkpoint_stands_for_nothing():
    """HOLES L31"""
    begun = [part(4, 35, 1, 3), part(4, 35, 3, 3)]
    assert find_expired([*OLD, *YOUNG, *begun], MONTH, NOW).files == ()
    found = find_expired([*OLD, *YOUNG, *begun, part(4, 35, 2, 3)], MONTH, NOW)
    assert (base_of(found).version, found.versions) == (4, 4)
    assert [one.path[-29:-8] for one in base_of(found).parts] == [
        "0000000001.0000000003",
        "0000000002.0000000003",
        "0000000003.0000000003",
    ]


def test_parts_of_two_attempts_make_no_checkpoint():
    """HOLES L31"""
    mixed = [part(4, 35, 1, 2), part(4, 35, 2, 3), part(4, 35, 3, 3)]
    assert find_expired([*OLD, *YOUNG, *mixed], MONTH, NOW).files == ()


def test_an_empty_checkpoint_stands_for_nothing():
    """HOLES L30: this is what a power cut leaves of one."""
    assert find_expired([*OLD, *YOUNG, checkpoint(4, 35, size=0)], MONTH, NOW).files == ()


def test_a_version_that_looks_old_after_a_younger_one_stays():
    """HOLES L31: versions go from the oldest on, without gaps."""
    log = [version(0, 40), version(1, 1), version(2, 40), checkpoint(2, 1), version(3, 1)]
    assert find_expired(log, MONTH, NOW).files == ()


def test_the_last_version_stays_however_old_it_is():
    log = [*(version(number, 50 - number) for number in range(5)), checkpoint(4, 45)]
    found = find_expired(log, timedelta(), NOW)
    assert (found.first, found.versions) == (4, 4)


def test_what_is_derived_from_versions_goes_with_them_and_nothing_else_does():
    beside = [
        file(f"{3:020d}.crc", 40),
        file(f"{0:020d}.{3:020d}.compacted.json", 40),
        file(f"{2:020d}.{6:020d}.compacted.json", 40),
        file(f"{1:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet", 40),
        file("notes.txt", 400),
        file("_last_checkpoint", 400),
    ]
    found = find_expired([*OLD, *YOUNG, checkpoint(4, 35), *beside], MONTH, NOW)
    assert {path for path in found.files if not path.endswith("0.json")} >= {beside[0].path}
    assert beside[1].path in found.files
    assert not {one.path for one in beside[2:]} & set(found.files)


def test_a_clock_that_is_ahead_ages_nothing():
    """HOLES L31"""
    log = [*(version(number, 5 - number) for number in range(5)), checkpoint(4, 1)]
    assert find_expired(log, MONTH, NOW + timedelta(days=4000)).files == ()


def test_no_log_and_no_checkpoint_have_nothing_to_remove():
    assert find_expired([], MONTH, NOW).files == ()
    assert find_expired([*OLD, *YOUNG], MONTH, NOW).files == ()


@pytest.mark.parametrize(
    ("said", "cleans"), [("true", True), ("TRUE", True), ("false", False), ("No", False)]
)
def test_a_table_says_whether_its_log_is_cleaned_up(said, cleans):
    """HOLES L31"""
    assert removes_expired({"delta.enableExpiredLogCleanup": said}) is cleans
    assert removes_expired({}) is True


def test_a_table_that_does_not_say_keeps_versions_for_thirty_days():
    assert log_retention({}) == MONTH
    assert log_retention({"delta.logRetentionDuration": "26 weeks"}) == timedelta(days=182)
    assert log_retention({"delta.logRetentionDuration": "half a year"}) is None


@pytest.mark.parametrize(
    ("interval", "actions", "versions"),
    [
        (None, 0, 10), (None, 100_000, 10), (None, 500_000, 50), (None, 10_000_000, 100),
        (10, 10_000_000, 10), (300, 10**7, 300),
    ],
)  # fmt: skip
def test_a_large_table_has_fewer_checkpoints_unless_told_otherwise(interval, actions, versions):
    assert spacing(interval, actions) == versions
