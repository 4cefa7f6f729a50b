"""Names of files and lengths of intervals in a Delta log."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from lakebed.deltalog.file_names import linked_name, path_resolver
from lakebed.deltalog.log_contents import FOR_EVER, parse_interval
from tests.support.intervals import INTERVALS, length, strange


@dataclass
class Place:
    uri: str
    local_root: Path | None = None


INSIDE = "date=2024-01-01/a b#1?.parquet"


@pytest.mark.parametrize(
    ("root", "prefix"),
    [
        ("s3://bucket/lake/events", "s3://bucket/lake/events/"),
        ("s3://bucket/lake/events/", "s3a://bucket/lake/events/"),
        ("s3a://bucket/lake/events", "s3n://bucket/lake/events/"),
        ("s3://bucket", "s3://bucket/"),
        ("gs://bucket/events", "gs://bucket/events/"),
        ("az://container/events", "az://container/events/"),
        ("az://container/events", "abfss://container@account.dfs.core.windows.net/events/"),
        (
            "abfss://container@account.dfs.core.windows.net/events",
            "wasbs://container@account.blob.core.windows.net/events/",
        ),
    ],
)
def test_a_uri_of_the_table_is_a_name_in_it(root, prefix):
    """HOLES D21"""
    named = path_resolver(Place(root))
    assert named(prefix + INSIDE) == INSIDE
    assert named(INSIDE) == INSIDE


@pytest.mark.parametrize(
    "name",
    [
        "s3://other/lake/events/x.parquet",
        "s3://bucket/lake/events2/x.parquet",
        "gs://bucket/lake/events/x.parquet",
        "hdfs://bucket/lake/events/x.parquet",
        "a:b=1/x.parquet",
        "a:/x.parquet",
    ],
)
def test_what_lies_elsewhere_keeps_its_name(name):
    """HOLES D21: a file of another place is no file of this one."""
    assert path_resolver(Place("s3://bucket/lake/events"))(name) == name


def test_another_account_is_another_place():
    """HOLES D21"""
    root = "abfss://c@one.dfs.core.windows.net/events"
    name = "abfss://c@two.dfs.core.windows.net/events/x.parquet"
    assert path_resolver(Place(root))(name) == name


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}", "{}"])
def test_a_path_of_a_local_table_is_a_name_in_it(tmp_path: Path, form: str) -> None:
    """HOLES D21: by its own path, by a link to it, and by what a link to it stands for."""
    root, link = tmp_path / "table", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)
    for given in (root, link):
        named = path_resolver(Place(str(given), given))
        for way in (root, link):
            assert named(form.format(f"{way}/{INSIDE}")) == INSIDE
        beside = form.format(f"{tmp_path}/table2/x.parquet")
        assert named(beside) == beside


def test_links_within_a_table(tmp_path: Path) -> None:
    """HOLES D21"""
    (tmp_path / "real/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "away").symlink_to(tmp_path.parent)
    store = Place(str(tmp_path), tmp_path)
    named = linked_name(store)
    assert named("link/below/x.parquet") == "real/below/x.parquet"
    assert named("real/x.parquet") is None
    assert named("away/x.parquet") is None
    assert linked_name(Place("s3://b"))("link/x") is None


@pytest.mark.parametrize(("text", "microseconds"), INTERVALS)
def test_an_interval_is_as_long_as_delta_says(text, microseconds):
    """HOLES L31: signs and fractions are not understood."""
    is_strange = any(sign in text for sign in "+-.")
    assert parse_interval(text) == (None if is_strange else length(microseconds))


def test_an_interval_beyond_every_calendar_is_for_ever_or_none():
    """HOLES L31: neither removes anything."""
    assert parse_interval("interval 99999999 weeks") == FOR_EVER
    assert parse_interval(f"{'9' * 18} days") == FOR_EVER
    assert parse_interval(f"{'9' * 40} days") is None


def test_anything_at_all_is_a_length_or_none():
    """HOLES L31: it is read at every clean-up, and must never end one with an error."""
    found = [parse_interval(text) for text in strange(3000, seed=7)]
    assert sum(one is not None for one in found) < 2900
