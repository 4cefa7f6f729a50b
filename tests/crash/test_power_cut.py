"""What a power cut leaves on a local disk: every object whole or absent, whenever it comes."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from blizzard.config import load as blizzard_config
from lakebed.clock import Clock
from penguin.model.settings import TableSettings
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.processes import run
from tests.support.readers import ids
from tests.support.runner import InProcessRunner
from tests.support.stores import local
from tests.support.tables import commit_table

HANDOFFS = pytest.mark.parametrize("handoff", ["staging", "direct"])
PUBLISHED = (
    r"_blizzard/protocol/\d+\.json",
    r"_blizzard/default/journal/\d{20}\.json",
    r"_blizzard/default/receipt\.json",
    r"_delta_log/0{20}\.json",
    r"_delta_log/0{19}1\.json",
    r"_delta_log/0{19}1\.checkpoint\.parquet",
    r"_delta_log/_last_checkpoint",
    r"[0-9a-f-]{36}\.parquet",
)
"""What both programs write into a table, whichever way files are handed over."""
META = r"_staging/pending/.*\.meta\.json"


def landed(folder: Path, handoff: str) -> tuple[Landing, Path]:
    landing = Landing(folder / "landing")
    landing.land("events.ndjson", 30)
    sink, table = f"handoff: {handoff}", "delta_checkpoint_interval: 1"
    return landing, config(folder, sink=sink, table=table)


# ------------------------------------------------------------------------ the real programs, traced

CALL = re.compile(r"(?P<name>fsync|link|rename)(?:at2?)?\((?P<given>.*)\)\s+= 0")
PATH = re.compile(r'<(/[^>]*)>|"(/[^"]*)"')


@pytest.mark.spark
@HANDOFFS
def test_every_object_is_synced_before_its_name_and_its_folder_after(tmp_path: Path, handoff: str):
    """L01: neither a program nor a library writes anything into a table in another order."""
    landing, file = landed(tmp_path, handoff)
    table = tmp_path / "table"
    calls = [*traced("blizzard", file), *traced("penguin", file)]
    named = set()
    for place, (call, *paths) in enumerate(calls):
        if call != "fsync" and paths[-1].startswith(f"{table}/"):
            source, target = paths[-2:]
            assert ("fsync", source) in calls[:place], f"{target} may lead to no bytes"
            assert ("fsync", str(Path(target).parent)) in calls[place:], f"{target} may be lost"
            named.add(os.path.relpath(target, table))
    left = {os.path.relpath(path, table) for path in table.rglob("*") if path.is_file()}
    assert left <= named, "nothing gets into a table in another way"
    for kind in (*PUBLISHED, *([META] if handoff == "staging" else [])):
        assert any(re.fullmatch(kind, path) for path in named), kind
    assert ids(table) == landing.ids


def traced(program: str, file: Path) -> list[tuple[str, ...]]:
    """Run a program, and return the calls by which files get on disk and get names, in order."""
    trace = file.with_name(f"{program}.trace")
    kinds = "trace=fsync,link,linkat,rename,renameat,renameat2"
    strace = ("strace", "-f", "--seccomp-bpf", "-y", "-s", "4096", "-e", kinds, "-o", trace)
    ended = run(program, "-c", file, "--once", under=strace)
    assert ended.code == 0, ended.err
    return list(_calls(trace.read_text()))


def _calls(trace: str) -> Iterator[tuple[str, ...]]:
    """Read a trace; a call that another thread interrupted is put together, and is at its end."""
    begun: dict[str, str] = {}
    for line in trace.splitlines():
        thread, _, text = line.partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>"):
            begun[thread] = text.removesuffix("<unfinished ...>")
            continue
        if text.startswith("<... "):
            text = begun.pop(thread) + text.partition("resumed>")[2]
        if found := CALL.match(text):
            given = (path or quoted for path, quoted in PATH.findall(found["given"]))
            yield (found["name"], *given)


# ----------------------------------------------------------------- an image, copied before the sync


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount an image of ext4, whose journal may know a name before its bytes are on disk."""
    if os.getuid() or not Path("/dev/loop-control").exists():
        pytest.skip("mounting an image needs root and loop devices")
    image = tmp_path / "image"
    image.touch()
    os.truncate(image, 32 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted(image, tmp_path / "disk") as folder:
        yield folder


@HANDOFFS
def test_an_image_taken_between_name_and_sync_holds_whole_objects(
    tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch, handoff: str
) -> None:
    """L01: the power is cut right after each name was given, with the disk's journal written."""
    landing, file = landed(disk, handoff)
    images: list[Path] = []

    def cut_after(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            answer = real(*given, **named)
            with (disk / "bystander").open("w") as other:
                other.write(str(len(images)))
                other.flush()
                os.fsync(other.fileno())  # It takes all names with it, but no bytes of others.
            images.append(tmp_path / f"image-{len(images)}")
            shutil.copyfile(tmp_path / "image", images[-1])
            return answer

        return call

    with monkeypatch.context() as patched:
        for name in ("link", "replace"):
            patched.setattr(os, name, cut_after(getattr(os, name)))
        (settings,) = blizzard_config.load([file], [], {}).pipelines
        pipeline = pipeline_of(settings, InProcessRunner())
        while pipeline.step():
            pass
        table = TableSettings(name="t", table_uri=str(disk / "table"), checkpoint_interval=1)
        commit_table(table, local(disk / "table"), lambda _event: None, Clock())
    assert ids(disk / "table") == landing.ids
    assert len(images) >= len(PUBLISHED)
    for image in images:
        with mounted(image, tmp_path / "after") as after:
            for path in (after / "table").rglob("*"):
                assert path.is_dir() or is_whole(path), path
        image.unlink()


def is_whole(path: Path) -> bool:
    if ".parquet" in path.name:
        return pq.read_metadata(path).num_rows > 0
    text = path.read_text()
    documents = text.splitlines() if path.parent.name == "_delta_log" else [text]
    return all(map(json.loads, documents)) and bool(documents)
