"""The benchmark's data are what they claim to be, and its page says what its figures say."""

import json
import random
from itertools import islice

import pytest

from bench import page, race
from bench.workloads import WORKLOADS, Workload
from blizzard.model.limits import MAX_LINE_BYTES
from blizzard.worker.ndjson.compiled.fast import FastPath
from blizzard.worker.ndjson.lines import blocks

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


def test_the_page_says_what_the_figures_say():
    figures = json.loads(race.FIGURES.read_text())
    written = page.SECTION.read()
    for line in (*page.table(figures), *page.memory(figures)):
        assert line in written
