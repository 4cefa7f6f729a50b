"""The real programs, killed with SIGKILL at the worst moments, and started again."""

import gzip
import json
import signal
from pathlib import Path

import pytest

from blizzard.config import load as blizzard_config
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.processes import finish, run, start
from tests.support.readers import ids
from tests.support.runner import InProcessRunner
from tests.support.spark import shared_runner

pytestmark = pytest.mark.spark

ENTRY_1 = "journal/00000000000000000001.json"
HANDOFFS = pytest.mark.parametrize("handoff", ["journal", "staging", "direct"])


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    made = Landing(tmp_path / "landing")
    for number in range(4):
        made.land(f"events-{number}.ndjson.gz", 300)
    return made


def doom(tmp_path: Path, method: str, when: str, **more: object) -> dict[str, object]:
    return {
        "method": method,
        "when": when,
        "victim": "self",
        "spent": str(tmp_path / "spent"),
        **more,
    }


def journal(tmp_path: Path) -> list[str]:
    folder = tmp_path / "table/_blizzard/default/journal"
    return sorted(path.name for path in folder.glob("?" * 20 + ".json"))


def data_files(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "table").glob("*.parquet"))


def uploaded(tmp_path: Path) -> list[Path]:
    """Return the data files that the store holds, those that wait in an outbox included."""
    return list((tmp_path / "table").rglob("*.parquet"))


def recover(tmp_path: Path, file: Path) -> None:
    """Start both programs again, undisturbed. Spark runs in this process, once for all tests."""
    for settings in blizzard_config.load([file], [], {}).pipelines:
        pipeline = pipeline_of(settings, shared_runner())
        while pipeline.step():
            pass
    ended = run("penguin", "-c", file, "--once")
    assert ended.code == 0, ended.err


@HANDOFFS
def test_killed_during_an_upload_the_rows_appear_once(
    tmp_path: Path, landing: Landing, handoff: str
) -> None:
    """The driver dies while a worker uploads: nothing is journaled, so all is read (D02, L01).

    HOLES L25: files had been begun, so this start counts, and the note goes with the next entry.
    """
    file = config(tmp_path, sink=f"handoff: {handoff}")
    pid = tmp_path / "pid"
    process = start(
        "blizzard", "-c", file, "--once",
        doom=doom(tmp_path, "lakebed.storage.store:Store.upload", "before", victim=str(pid)),
    )  # fmt: skip
    pid.write_text(str(process.pid))
    ended = finish(process)

    assert ended.code == -signal.SIGKILL
    assert journal(tmp_path) == ["00000000000000000000.json"]
    (note,) = (tmp_path / "table").rglob("*.started.json")
    assert json.loads(note.read_text())["starts"] == 1
    recover(tmp_path, file)
    assert ids(tmp_path / "table") == landing.ids
    assert not note.exists()


@HANDOFFS
def test_killed_between_upload_and_entry_the_rows_appear_once(
    tmp_path: Path, landing: Landing, handoff: str
) -> None:
    """Data files that no entry names are never committed, wherever they wait (D02, L01)."""
    file = config(tmp_path, sink=f"handoff: {handoff}")
    ended = run(
        "blizzard", "-c", file, "--once",
        doom=doom(tmp_path, "lakebed.storage.store:Store.create", "before", match=ENTRY_1),
    )  # fmt: skip

    assert ended.code == -signal.SIGKILL
    orphans = uploaded(tmp_path)
    assert orphans, "the files were uploaded before the entry"
    assert handoff != "direct" or not data_files(tmp_path), "none has its final name"
    assert journal(tmp_path) == ["00000000000000000000.json"]
    recover(tmp_path, file)
    assert ids(tmp_path / "table") == landing.ids


@HANDOFFS
def test_killed_between_entry_and_hand_off_the_rows_appear_once(
    tmp_path: Path, landing: Landing, handoff: str
) -> None:
    """An entry is a promise: the next start keeps it, and reads nothing again (D01, D02)."""
    file = config(tmp_path, sink=f"commit: inline\n  handoff: {handoff}")
    ended = run(
        "blizzard", "-c", file, "--once",
        doom=doom(tmp_path, "lakebed.storage.store:Store.create", "after", match=ENTRY_1),
    )  # fmt: skip

    assert ended.code == -signal.SIGKILL
    assert ids(tmp_path / "table") == []
    again = run("blizzard", "-c", file, "--once", "--output", "json")
    assert again.code == 0, again.err
    assert again.results[0]["files_processed"] == 0
    assert again.results[0]["delta_commits"] == 1
    assert ids(tmp_path / "table") == landing.ids


@pytest.mark.parametrize("when", ["before", "after"])
def test_penguin_killed_in_its_commit_the_rows_appear_once(
    tmp_path: Path, landing: Landing, when: str
) -> None:
    """Whether the commit had landed is read from the log, not remembered (D06, D11)."""
    file = config(tmp_path)
    for settings in blizzard_config.load([file], [], {}).pipelines:
        # What blizzard does here is no part of the story, so it needs no Spark.
        pipeline_of(settings, InProcessRunner()).step()
    ended = run(
        "penguin",
        "-c",
        file,
        "--once",
        doom=doom(tmp_path, "penguin.delta.table:WritableTable.commit", when),
    )

    assert ended.code == -signal.SIGKILL
    assert ids(tmp_path / "table") == ([] if when == "before" else landing.ids)
    assert run("penguin", "-c", file, "--once").code == 0
    assert ids(tmp_path / "table") == landing.ids


def test_a_dead_python_worker_is_replaced_and_the_rows_appear_once(
    tmp_path: Path, landing: Landing
) -> None:
    """Spark tries the task again; what the dead attempt uploaded is named by nobody (D03)."""
    file = config(tmp_path)
    ended = run(
        "blizzard", "-c", file, "--once",
        doom=doom(tmp_path, "lakebed.storage.store:Store.upload", "after"),
    )  # fmt: skip

    assert ended.code == 0, ended.err
    assert (tmp_path / "spent").exists(), "a worker was killed"
    assert len(data_files(tmp_path)) == 2, "the dead attempt's file is there, unnamed"
    assert run("penguin", "-c", file, "--once").code == 0
    assert ids(tmp_path / "table") == landing.ids


def test_a_file_that_kills_its_worker_every_time_is_named_and_the_rest_goes_on(
    tmp_path: Path, landing: Landing
) -> None:
    """Spark gives the job up; it is run again in halves, down to the file (W19)."""
    landing.write("poison.ndjson", b'{"id": 1}\n')
    file = config(tmp_path)
    ended = run(
        "blizzard", "-c", file, "--once", "--output", "json",
        doom=doom(
            tmp_path, "lakebed.storage.store:Reader.at_once", "before", match="poison", always=True
        ),
    )  # fmt: skip

    assert ended.code == 3, ended.err
    assert ended.results[0]["files_failed"] == 1
    assert "worker_died" in ended.err
    assert "poison.ndjson" in ended.err
    assert run("penguin", "-c", file, "--once").code == 0
    assert ids(tmp_path / "table") == landing.ids


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_finishes_the_batch_and_hands_it_off(
    tmp_path: Path, landing: Landing, number: signal.Signals
) -> None:
    """Ctrl-C reaches the whole process group in the middle of an upload (L02)."""
    file = config(tmp_path, sink="commit: inline\n  inactivity_timeout_secs: 1")
    pid = tmp_path / "pid"
    to_all = number is signal.SIGINT
    process = start(
        "blizzard", "-c", file, "--output", "json",
        doom=doom(
            tmp_path, "lakebed.storage.store:Store.upload", "before",
            victim=str(pid), signal=number.name, group=to_all,
        ),
    )  # fmt: skip
    pid.write_text(str(process.pid))
    ended = finish(process)

    assert ended.code == 0, ended.err
    assert f"{number.name} received" in ended.err
    assert ended.results[0]["records_processed"] == len(landing.ids)
    assert ids(tmp_path / "table") == landing.ids


def test_a_stop_in_a_very_large_file_is_prompt_and_the_next_run_goes_on_from_there(tmp_path: Path):
    """What was read is journaled, the rest comes with the next run, once (L02)."""
    (tmp_path / "landing").mkdir()
    block = b"".join(b'{"id": %d, "name": "%s"}\n' % (n, b"x" * 990) for n in range(1000))
    with gzip.open(tmp_path / "landing/large.ndjson.gz", "wb", compresslevel=1) as large:
        for _ in range(300):
            large.write(block)
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"""
source: {{path: {tmp_path}/landing}}
sink: {{path: {tmp_path}/table, commit: inline, inactivity_timeout_secs: 1}}
schema: {{fields: [{{name: id, type: int64}}, {{name: name, type: string}}]}}
spark: {{master: "local[2,4]"}}
"""
    )
    pid = tmp_path / "pid"
    process = start(
        "blizzard", "-c", file, "--output", "json",
        doom=doom(
            tmp_path, "blizzard.worker.output.origins:KeptRows.add", "before",
            victim=str(pid), signal="SIGTERM",
            # However fast the machine reads: the stop is known long before the file's end.
            constants={"blizzard.worker.progress:BEAT_SECS": 0.02},
        ),
    )  # fmt: skip
    pid.write_text(str(process.pid))
    ended = finish(process)

    assert ended.code == 0, ended.err
    first = ended.results[0]["records_processed"]
    assert isinstance(first, int)
    assert 0 < first < 300_000, "it stopped inside the file"
    assert ended.results[0]["files_processed"] == 0
    rest = run("blizzard", "-c", file, "--once", "--output", "json")
    assert rest.code == 0, rest.err
    assert rest.results[0]["records_processed"] == 300_000 - first
    assert ids(tmp_path / "table") == sorted(list(range(1000)) * 300)


def test_the_second_signal_leaves_at_once_and_the_next_start_recovers(
    tmp_path: Path, landing: Landing
) -> None:
    """Leaving at once is the same to the next start as being killed."""
    file = config(tmp_path)
    pid = tmp_path / "pid"
    process = start(
        "blizzard", "-c", file, "--once",
        doom=doom(
            tmp_path, "lakebed.storage.store:Store.upload", "before",
            victim=str(pid), signal="SIGTERM", insist=True,
        ),
    )  # fmt: skip
    pid.write_text(str(process.pid))
    ended = finish(process)

    assert ended.code == 130, ended.err
    assert journal(tmp_path) == ["00000000000000000000.json"]
    recover(tmp_path, file)
    assert ids(tmp_path / "table") == landing.ids
