"""A pipeline under another name would read everything again."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakebed.errors import JournalLost
from tests.support.builders import Bench, ndjson, pipeline_settings, put, rows


def test_a_renamed_pipeline_is_noticed_before_it_ingests_anything_twice(tmp_path: Path) -> None:
    """L21: the message names the old name, which is the way out."""
    put(tmp_path / "in", "a.ndjson", ndjson(rows(2)))
    settings = pipeline_settings(tmp_path / "in", tmp_path / "table")
    Bench(settings).pipeline().step()
    renamed = Bench(replace(settings, name="other"))

    with pytest.raises(JournalLost, match="'default' of this table already reads"):
        renamed.pipeline().step()
    assert renamed.entries() == []
