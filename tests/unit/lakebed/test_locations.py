"""Spellings of one location are one place, and nested ones are told from neighbours."""

from pathlib import Path

import pytest

from lakebed.locations import ByPlace, place_of, written_out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/x", "/x/"),
        ("/x", "file:///x"),
        ("/x y", "file:///x%20y/"),
        ("/x", "file://localhost/x"),
        ("/x#1", "file:///x#1"),
        ("/x", "/y/../x/./"),
        ("~/x", str(Path("~/x").expanduser())),
        ("s3://b/in", "s3://b/in/"),
        ("s3://b/in", "s3a://b/in"),
        ("s3://b", "S3://b/"),
        ("s3://b/a b", "s3://b/a%20b"),
        ("abfs://c@acc.dfs.core.windows.net/in", "abfss://c@acc.dfs.core.windows.net/in/"),
        ("az://c/in", "abfss://c@acc.dfs.core.windows.net/in"),
        ("az://c/in", "https://acc.blob.core.windows.net/c/in"),
        ("wasbs://c@acc.blob.core.windows.net/in", "abfss://c@acc.dfs.core.windows.net/in"),
        ("s3n://b/in", "https://b.s3.amazonaws.com/in"),
        ("gs://b/in", "gcs://b/in"),
    ],
)
def test_spellings_of_one_place_are_the_same(one: str, other: str) -> None:
    """HOLES L26, D19: a spelling is no other folder."""
    assert place_of(one).same(place_of(other))
    assert place_of(other).meets(place_of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/x", "/xy"),
        ("/x", "s3://x"),
        ("s3://b/in", "s3://b2/in"),
        ("s3://b/in", "gs://b/in"),
        ("s3://b/in", "s3://b/input"),
        ("s3://b/a", "s3://b/A"),
        ("https://one.blob.core.windows.net/c/in", "abfss://c@two.dfs.core.windows.net/in"),
        ("abfss://c@one.dfs.core.windows.net/in", "abfss://c@two.dfs.core.windows.net/in"),
    ],
)
def test_other_places_have_nothing_in_common(one: str, other: str) -> None:
    """HOLES D19: a common beginning of names is no common folder."""
    assert not place_of(one).meets(place_of(other))
    assert not place_of(other).meets(place_of(one))


def test_a_folder_holds_itself_and_what_lies_in_it() -> None:
    """HOLES D19: nested folders share files; neighbours do not."""
    outer, inner = place_of("s3://b/in"), place_of("s3a://b/in/2024/")
    assert outer.holds(inner)
    assert outer.holds(outer)
    assert not inner.holds(outer)
    assert inner.meets(outer)
    assert place_of("s3://b").holds(outer)
    assert place_of("/").holds(place_of("/x"))


def test_a_link_and_a_relative_path_are_the_folder_that_they_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOLES L26: the same folder, reached another way."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    assert place_of("link").same(place_of(str(tmp_path / "real")))
    assert place_of("./real").same(place_of(f"file://{tmp_path}/link/"))
    assert written_out("real") == str(tmp_path / "real")
    assert written_out("s3://b/in") == "s3://b/in"
    assert written_out("/x/../y") == "/x/../y"


def test_values_by_place_know_one_place_by_all_its_names() -> None:
    held: ByPlace[str] = ByPlace()
    assert held.setdefault(place_of("az://c/in", account="lake"), "first") == "first"
    assert held.setdefault(place_of("abfss://c@lake.dfs.core.windows.net/in"), "x") == "first"
    assert held.setdefault(place_of("az://c/in", account="other"), "second") == "second"
    assert held.get(place_of("https://other.blob.core.windows.net/c/in")) == "second"
    assert held.get(place_of("az://d/in")) is None
    assert list(held.values()) == ["first", "second"]
