"""Which names are those of source files."""

import pytest

from blizzard.discover.names import SUFFIXES, why_not_ours
from tests.support.builders import source_settings


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_of_ndjson_is_a_source_file(suffix):
    """L17."""
    assert why_not_ours(f"2024/a{suffix}", source_settings()) is None


def test_the_suffixes_are_those_that_people_use():
    """L17."""
    assert set(SUFFIXES) >= {".ndjson", ".ndjson.zst", ".ndjson.gz", ".jsonl", ".json.gz"}
