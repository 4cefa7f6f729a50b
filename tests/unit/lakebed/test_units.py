"""Quantities."""

import pytest

from lakebed.units import in_words, mebibytes


def test_a_megabyte_of_a_setting_is_1048576_bytes():
    assert mebibytes(128) == 134_217_728
    assert mebibytes(0.5) == 524_288


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (134_217_728, "128.0 MiB"),
        (5 * 1024**5, "5120.0 TiB"),
    ],
)
def test_a_size_is_shown_as_a_person_says_it(size, words):
    assert in_words(size) == words
