"""The benchmark's data are what they claim to be, and its page says what its figures say."""

import json
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from bench import page, race, tree
from bench.workloads import WORKLOADS, Workload, generated, plain_bytes
from blizzard.model.limits import MAX_LINE_BYTES
from blizzard.model.source.codec import codec_of
from blizzard.worker.compression import decompress
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.lines import blocks

SMALL = 0.0005

each_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())


@each_workload
def test_every_record_fits_the_schema_on_the_fast_path(workload: Workload):
    """A figure that was measured on the exact path would be the wrong one."""
    lines = list(islice(workload.lines(random.Random(0), 0, 300), 300))
    data = "".join(f"{line}\n" for line in lines).encode()
    (block,) = blocks([data])
    decoded = FastPath(workload.schema, max_line_bytes=MAX_LINE_BYTES).read(block)
    assert decoded is not None
    assert decoded.batch.num_rows == 300
    assert not decoded.dropped


@each_workload
def test_files_are_made_once_and_the_same_for_everybody(workload: Workload, tmp_path: Path):
    folder = generated(workload, SMALL, tmp_path / "first")
    again = generated(workload, SMALL, tmp_path / "second")
    scaled = workload.at(SMALL)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert contents == {path.name: path.read_bytes() for path in again.iterdir()}
    plain = [b"".join(decompress([body], codec_of(name))) for name, body in contents.items()]
    assert sum(body.count(b"\n") for body in plain) == scaled.rows
    assert plain_bytes(workload, SMALL, tmp_path / "first") == sum(map(len, plain))


def test_the_page_says_what_the_figures_say():
    figures = json.loads(race.FIGURES.read_text())
    written = page.SECTION.read()
    for line in (*page.table(figures), *page.memory(figures)):
        assert line in written


def test_a_contestant_that_cannot_do_it_says_why():
    took = {"seconds": [], "cpu": [], "error": "No | codec"}
    figures = {
        "workloads": {
            "a": {"title": "t", "scale": 1, "rows": 1, "bytes": 1, "contestants": {"Spark": took}}
        }
    }
    assert list(page.table(figures))[-1] == "| **(a)** t | Spark | cannot: No / codec |||||||"


def test_what_a_child_used_counts_also_when_it_has_ended():
    busy = "sum(n * n for n in range(3_000_000)); import time; print(time.process_time())"
    script = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); "
        "import time; print(time.process_time(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        of_child, own = (float(process.stdout.readline()) for _ in range(2))
        used = tree.cpu_seconds(process.pid)
        process.stdin.close()
    assert used > own + of_child / 2, "all of it, but for the kernel's ticks"
