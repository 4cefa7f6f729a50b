"""The arithmetic of docs/scaling.md, against what a person can check and against the code."""

import json
from datetime import timedelta

import pytest

from bench import figures, scaling
from bench.arithmetic import (
    ROLLING,
    TB,
    Limits,
    Load,
    batches_of,
    upload_of,
)
from bench.figures import Assumptions, Prices
from blizzard.model.settings import RollingPolicy
from blizzard.plan.recognise import plan
from blizzard.plan.trigger import WaitingFiles, should_start
from lakebed.types import Codec
from lakebed.units import mebibytes
from tests.support.builders import NOON, source_file

GIVEN = Assumptions()


def test_the_page_says_what_the_figures_give() -> None:
    page = scaling.PAGE.read_text()
    found = scaling.tables(figures.read_costs(), Prices(), GIVEN)
    assert scaling.filled(page, found) == page, "run python -m bench.scaling --write"


def test_a_batch_is_cut_as_the_plan_cuts_it_and_starts_when_the_trigger_says() -> None:
    """The arithmetic repeats rules of the code; here they are asked."""
    cores, size = 4, 10**6
    load = Load(plain=10 * TB, file_size=size)
    found = batches_of(load, cores, Limits(), GIVEN)

    def starts(count: int) -> bool:
        waiting = WaitingFiles(files=files[:count], oldest=NOON, newest=NOON, more=False)
        soon = NOON + timedelta(seconds=1)
        return should_start(waiting, RollingPolicy(), parallelism=cores, now=soon)

    files = [
        source_file(f"{number:06d}.ndjson.gz", size=size, codec=Codec.GZIP)
        for number in range(int(found.files) + 2)
    ]
    assert starts(int(found.files) + 1)
    assert not starts(int(found.files))
    units = plan(files[: int(found.files)], parallelism=cores, file_size=ROLLING.file_size)
    written = found.plain * GIVEN.parquet_ratio / found.data_file_size
    assert len(units) == pytest.approx(written, abs=1.5)


def test_uploads_ask_what_was_counted() -> None:
    counted = json.loads((figures.HERE / "sizes.json").read_text())["requests"]
    assert upload_of(mebibytes(12), part_size=mebibytes(5)) == counted["data_file_of_three_parts"]
    assert upload_of(mebibytes(4)) == counted["data_file_in_one_piece"]
    assert upload_of(mebibytes(128))["part"] == 4
