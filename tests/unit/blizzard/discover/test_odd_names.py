"""Names, links and folders that would stop a source: named, counted, and the rest goes on."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from blizzard import events
from blizzard.answers.answer import CommandPrefix
from blizzard.answers.status_reader import StatusReader
from blizzard.cli.run.dry_run import explain
from blizzard.cli.status import ShownStatus, status_lines
from blizzard.model.source.form import SourcePattern
from lakebed.clock import Clock
from lakebed.errors import StoreDenied
from lakebed.storage.store import Reader
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows

NOT_UTF8 = b"caf\xe9.ndjson"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", "2024-01-01/a.ndjson", ndjson(rows(1)))
    return tmp_path / "in"


@pytest.fixture
def bench(folder: Path) -> Bench:
    return Bench(pipeline_settings(folder, folder.parent / "table"))


def ingested(bench: Bench) -> list[str]:
    """Drain the source, and name what came into the table."""
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    return sorted(
        record.path
        for entry in bench.entries()
        for record in entry.sources
        if record.failure is None
    )


def passed(bench: Bench) -> dict[str, list[str]]:
    """Return what a dry run says of the files that are not taken, by the reason."""
    found = explain(
        bench.settings, lambda at: Reader(at.uri, at.options), parallelism=1, clock=Clock()
    )
    (finding,) = found.findings.values()
    told: dict[str, list[str]] = {}
    for one in finding.passed:
        told.setdefault(one.reason.value, []).append(one.path)
    return told


def warned(bench: Bench) -> list[tuple[str, int, str]]:
    told = [one for one in bench.events if isinstance(one, events.NamesSkipped)]
    return [(one.reason, one.names, one.example) for one in told]


def refuse(monkeypatch: pytest.MonkeyPatch, refused: str, error: OSError) -> None:
    """Let one folder be refused by the system: the tests may run as root, who may read all."""
    real = os.scandir

    def scandir(path):
        if str(path).endswith(refused):
            raise error
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


# ------------------------------------------------------------------------------ names


def test_a_local_name_that_is_not_utf8_is_named_and_the_rest_goes_on(bench, folder):
    """W23: nothing is written for it, run after run."""
    with open(os.path.join(os.fsencode(folder), NOT_UTF8), "wb") as file:  # noqa: PTH118, PTH123
        file.write(ndjson(rows(1)))
    inner = os.path.join(os.fsencode(folder), b"d\xff")  # noqa: PTH118
    os.mkdir(inner)  # noqa: PTH102
    assert ingested(bench) == ["2024-01-01/a.ndjson"]
    assert passed(bench) == {"unusable_name": [r"caf\xe9.ndjson", r"d\xff/"]}
    assert warned(bench) == [("unusable_name", 2, r"caf\xe9.ndjson")]
    parquet = list(bench.table.rglob("*.parquet"))
    assert ingested(bench.again(run_id="run-2")) == ["2024-01-01/a.ndjson"]
    assert list(bench.table.rglob("*.parquet")) == parquet
    assert len(bench.entries()) == 2


def test_a_local_name_with_control_characters_is_a_name(bench, folder):
    """W23: a local disk has no quarrel with it."""
    put(folder, "a\tb\nc.ndjson", ndjson(rows(1)))
    assert ingested(bench) == ["2024-01-01/a.ndjson", "a\tb\nc.ndjson"]


def test_what_is_skipped_is_told_once_and_shown_by_the_status(bench, folder, capsys):
    """W23."""
    (folder / "latest").symlink_to("2024-01-01")
    pipeline = bench.pipeline()
    for _ in range(3):
        pipeline.step()
    assert warned(bench) == [("link", 1, "latest/")]
    listed = bench.said(events.SourcesListed)[-1]
    gauges = {
        measure.labels["reason"]: measure.value
        for measure in listed.measures()
        if measure.name == "blizzard_names_skipped"
    }
    assert gauges == {"link": 1, "unreadable": 0, "unusable_name": 0}
    _asked, found = StatusReader(bench.settings, Clock()).read()
    assert [one.files for one in found.sources[0].skipped_names] == [1]
    shown = ShownStatus(bench.settings, found, CommandPrefix())
    lines = map(str, status_lines(shown, found, Clock()))
    assert "1 name ignored: a link to a folder" in " ".join(lines)


# ------------------------------------------------------------------------------ links


def test_a_link_to_a_folder_is_not_followed(bench, folder):
    """D20: its files would be ingested twice; a link to itself would never end."""
    (folder / "latest").symlink_to("2024-01-01")
    (folder / "self").symlink_to(".")
    (folder / "loop").symlink_to("loop")
    assert ingested(bench) == ["2024-01-01/a.ndjson"]
    assert passed(bench)["link"] == ["latest/", "loop/", "self/"]


def test_a_link_to_a_file_elsewhere_is_read_and_one_to_a_file_of_the_source_is_not(bench, folder):
    """D20."""
    put(folder.parent, "elsewhere/b.ndjson", ndjson(rows(1)))
    put(folder, ".store/c.ndjson", ndjson(rows(1)))
    (folder / "b.ndjson").symlink_to(folder.parent / "elsewhere/b.ndjson")
    (folder / "c.ndjson").symlink_to(".store/c.ndjson")
    (folder / "newest.ndjson").symlink_to("2024-01-01/a.ndjson")
    (folder / "nowhere.ndjson").symlink_to("gone")
    assert ingested(bench) == ["2024-01-01/a.ndjson", "b.ndjson", "c.ndjson"]
    assert passed(bench)["link"] == ["newest.ndjson"]


# ------------------------------------------------------------------------------ folders


@pytest.mark.parametrize("name", ["_temporary", "lost+found", ".snapshot"])
def test_a_folder_of_which_nothing_is_taken_is_not_walked(bench, folder, monkeypatch, name):
    """W23."""
    put(folder, f"{name}/x/a.ndjson", ndjson(rows(1)))
    refuse(monkeypatch, f"/{name}", PermissionError(13, "Permission denied"))
    assert ingested(bench) == ["2024-01-01/a.ndjson"]
    assert passed(bench) == {"hidden": [f"{name}/"]}
    assert warned(bench) == []


def test_a_folder_that_the_pattern_does_not_mean_is_not_walked(bench, folder, monkeypatch):
    """W23."""
    put(folder, "top.ndjson", ndjson(rows(1)))
    refuse(monkeypatch, "/2024-01-01", PermissionError(13, "Permission denied"))
    source = replace(bench.settings.sources[0], pattern=SourcePattern("*.ndjson"))
    bench.settings = replace(bench.settings, sources=(source,))
    assert ingested(bench) == ["top.ndjson"]
    assert passed(bench) == {"not_matched": ["2024-01-01/"]}


def test_a_folder_that_may_not_be_read_is_told_and_the_others_go_on(bench, folder, monkeypatch):
    """W23: and it is read as soon as it may be."""
    put(folder, "closed/deep/b.ndjson", ndjson(rows(1)))
    put(folder, "open/c.ndjson", ndjson(rows(1)))
    with monkeypatch.context() as patch:
        refuse(patch, "/closed", PermissionError(13, "Permission denied"))
        assert ingested(bench) == ["2024-01-01/a.ndjson", "open/c.ndjson"]
        assert warned(bench) == [("unreadable", 1, "closed/")]
        assert passed(bench) == {"unreadable": ["closed/"]}
    assert "closed/deep/b.ndjson" in ingested(bench.again(run_id="run-2"))


def test_a_source_whose_own_folder_may_not_be_read_is_an_error(bench, folder, monkeypatch):
    """W23, D05: unknown is never taken for empty."""
    pipeline = bench.pipeline()
    refuse(monkeypatch, "/in", PermissionError(13, "Permission denied"))
    with pytest.raises(StoreDenied):
        pipeline.step()


def test_a_file_that_may_not_be_looked_at_is_told_and_the_others_go_on(bench, folder, monkeypatch):
    """W23: a folder whose names may be read, and nothing more."""
    put(folder, "b.ndjson", ndjson(rows(1)))
    real = os.stat

    def refused(path, **how):
        if str(path).endswith("b.ndjson"):
            raise PermissionError(13, "Permission denied")
        return real(path, **how)

    monkeypatch.setattr(os, "stat", refused)
    assert ingested(bench) == ["2024-01-01/a.ndjson"]
    assert warned(bench) == [("unreadable", 1, "b.ndjson")]


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), NotADirectoryError(20, "a file")])
def test_a_folder_that_vanishes_while_the_source_is_listed_is_no_error(
    bench, folder, monkeypatch, error
):
    """W23: whoever writes there renames folders when they are whole."""
    put(folder, "b.work/x.ndjson", ndjson(rows(1)))
    refuse(monkeypatch, "/b.work", error)
    assert ingested(bench) == ["2024-01-01/a.ndjson"]
    assert passed(bench) == {}


@pytest.mark.parametrize(
    ("pattern", "folder", "may"),
    [
        ("*.log", "a", False),
        ("*/*.log", "a", True),
        ("*/*.log", "a/b", False),
        ("app-*/*.log", "web-1", False),
        ("app-**", "app-1/x", True),
        ("**/x.log", "a/b/c", True),
        ("a/**/x.log", "b/c", False),
        ("a/**/x.log", "a/b/c", True),
        ("day=0[1-3]/*", "day=04", False),
    ],
)
def test_a_pattern_says_which_folders_cannot_hold_its_names(pattern, folder, may):
    assert SourcePattern(pattern).may_hold(folder) is may
