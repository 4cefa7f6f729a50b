"""The forms of files that docs/sources.md shows are read as it says."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from blizzard.config.load import load
from tests.support.builders import Bench, put

PAGE = (Path(__file__).parents[3] / "docs" / "sources.md").read_text()
SHOWN = re.findall(r"```yaml\n(source:\n.*?)```\s*```json\n(.*?)```", PAGE, re.DOTALL)
NAMES = {"*.txt": "a.txt"}


def bench_of(tmp_path: Path, shown: str, body: str, **given: Any) -> Bench:
    """Return a pipeline with the source that a page shows, and one file in it."""
    document = yaml.safe_load(shown)
    path = document["source"]["path"]
    last = path.rpartition("/")[2]
    is_pattern = "*" in last
    put(tmp_path / "in", NAMES.get(last, "a.json"), body.replace("␞", "\x1e").encode())
    document["source"]["path"] = str(tmp_path / "in" / last if is_pattern else tmp_path / "in")
    document["source"] |= given
    document["sink"] = {"path": str(tmp_path / "table")}
    document["schema"] = {"fields": [{"name": "eventName", "type": "string", "nullable": False}]}
    put(tmp_path, "pipeline.yaml", yaml.safe_dump(document).encode())
    (settings,) = load([tmp_path / "pipeline.yaml"], [], {}).pipelines
    return Bench(settings)


def test_the_page_shows_every_form():
    assert len(SHOWN) == 5


@pytest.mark.parametrize(("shown", "body"), SHOWN)
def test_what_the_page_shows_has_two_rows(tmp_path: Path, shown: str, body: str):
    bench = bench_of(tmp_path, shown, body)
    assert bench.pipeline().step()
    entry = bench.entries()[-1]
    (record,) = entry.sources
    assert record.failure is None
    assert record.lines == record.rows + record.blank + record.filtered
    rows = [
        row["eventName"]
        for file in entry.files
        for row in pq.read_table(bench.table / file.filename).to_pylist()
    ]
    assert rows == ["GetObject", "PutObject"]


@pytest.mark.parametrize(("shown", "body"), SHOWN)
def test_without_the_settings_the_same_files_fail(tmp_path: Path, shown: str, body: str):
    bench = bench_of(tmp_path, shown, body, format=None, records=None, skip_records=None)
    assert bench.pipeline().step()
    assert bench.entries()[-1].sources[0].failure is not None
