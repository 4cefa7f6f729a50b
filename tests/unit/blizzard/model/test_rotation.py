"""Names of logs that are rotated."""

import pytest

from blizzard.discover.names import why_not_ours
from blizzard.discover.skip_reason import Reason
from blizzard.model.source.glob import SourcePattern, renamed, unrotated
from tests.support.builders import source_settings


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("access.log", "access.log"),
        ("a/b/access.log.1", "access.log"),
        ("access.log.2.gz", "access.log"),
        ("access.log.gz.3", "access.log"),
        ("access.log-20240511.gz", "access.log"),
        ("access.log.2024-05-11_13", "access.log"),
        ("access.log.2024-05-11T13Z.4.zst", "access.log"),
        ("access_log.1715299200", "access_log"),
        ("x.json.1.bz2", "x.json"),
        ("app.2024-05-11.log", "app.2024-05-11.log"),
        ("2024-05-11", "2024"),
        (".1", ".1"),
        ("access.log.bak", "access.log.bak"),
        ("part-00000", "part"),
    ],
)
def test_a_number_or_a_date_at_the_end_is_no_part_of_the_name(path: str, expected: str) -> None:
    assert unrotated(path) == expected


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        (
            "**.log*",
            ["a.log", "b/a.log.gz", "a.log.1", "a.log.1.gz", "a.json.log-20240511.gz"],
            ["a.log.bak", "a.logs", "a.log.1.tmp", "a.log.csv", "a.log~", "a.log.swp"],
        ),
        ("a.log-*", ["a.log-20240511", "a.log-20240511.gz"], ["a.log-old.txt"]),
        ("a.log.*", ["a.log.1", "a.log.2024-05-11"], ["a.log.txt", "a.log.tmp"]),
        ("**.json*", ["a.json", "a.json.1.gz", "a.jsonl"], ["a.json.md", "a.json5"]),
        ("access_log*", ["access_log", "access_log.1", "access_log-2024.gz"], ["access_log.md"]),
        ("app-1.2-*", ["app-1.2-x.json"], ["app-1.2-x.csv", "app-1.2-x"]),
    ],
)
def test_a_pattern_that_spells_out_a_suffix_and_goes_on_takes_rotated_names(
    pattern: str, taken: list[str], left: list[str]
) -> None:
    source = source_settings(pattern=SourcePattern(pattern))
    assert {name: why_not_ours(name, source) for name in taken} == dict.fromkeys(taken)
    reasons = {name: why_not_ours(name, source) for name in left}
    assert set(reasons.values()) <= {Reason.NOT_NDJSON, Reason.TEMPORARY}, reasons


def test_names_that_the_next_rotation_changes_are_known() -> None:
    dated = ["in/a.log-20240511.gz", "in/a.log-20240512"]
    assert renamed([*dated, "other/a.log", "b.log"]) == ()
    assert renamed([*dated, "in/a.log"]) == ("in/a.log",)
    assert renamed(["a.log", "a.log.1", "a.log.2.gz"]) == ("a.log", "a.log.1", "a.log.2.gz")
    assert renamed(["part-00000", "part-00001"]) == ()
