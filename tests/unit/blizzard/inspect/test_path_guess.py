"""The pattern that names of files suggest."""

import pytest

from blizzard.inspect.sample import pattern_for, taken


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["a.ndjson", "b.json.gz"], None),
        (["a.json", "b.log", "c.log"], None),
        (["a.log", "b/c.log"], "**.log"),
        (["a.log.gz", "b.log.gz", "c.md"], "**.log.gz"),
        (["a.log", "b.log.gz"], "**.log*"),
        (["access.log", "access.log.1", "access.log.2.gz"], "**.log*"),
        (["access.json.log", "access.json.log-20240511.gz"], "**.log*"),
        (["app.log.2024-05-10", "app.log.2024-05-11"], "**.log*"),
        (["app.2024-05-10.log", "app.2024-05-11.log"], "**.log"),
        (["x.json", "x.json.1.gz"], "**.json*"),
        (["x.json.1.gz"], "**.json*"),
        (["a.jsonl", "a.jsonl-20240511.zst", "b.jsonl.gz"], "**.jsonl*"),
        (["a.json", "a.json.tmp", "_a.json.1"], None),
        (["a.ndjson", "x.json.1"], None),
        (["access_log", "access_log-20240511", "error.md"], "**/access_log*"),
        (["part-00000", "part-00001", "README"], "**/part*"),
        (["a.txt", "b.txt", "c.log", "d.csv", "e.csv", "f.csv"], "**.txt"),
        (["a.parquet", "b.parquet.1", "README"], None),
        ([], None),
    ],
)
def test_most_files_are_taken_by_the_narrowest_pattern(
    names: list[str], pattern: str | None
) -> None:
    found = pattern_for(names)
    assert (found.text if found else None) == pattern
    assert not found or taken(names, found)
    assert set(taken(names, None)) <= set(taken(names, found))
