"""A pipeline under another name would read everything again."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakebed.errors import JournalLost
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows, source_settings


def test_a_renamed_pipeline_is_noticed_before_it_ingests_anything_twice(tmp_path: Path) -> None:
    """L21: the message names the old name, which is the way out."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    Bench(settings).pipeline().step()
    renamed = Bench(replace(settings, name="other"))

    with pytest.raises(JournalLost, match="'default' of this table already reads"):
        renamed.pipeline().step()
    assert renamed.entries() == []


def test_a_second_pipeline_with_sources_of_its_own_may_join_a_table(tmp_path: Path) -> None:
    for name in ("in", "more"):
        put(tmp_path / name, "a.ndjson", ndjson(rows(2)))
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    Bench(settings).pipeline().step()
    second = replace(settings, name="other", sources=(source_settings(tmp_path / "more"),))

    assert Bench(second).pipeline().step()
