"""A pipeline whose name was changed: what is told before and after it takes its journal over."""

from pathlib import Path

import pytest

from tests.integration.blizzard.test_journal_new import a_past, renamed, step
from tests.support.builders import put
from tests.support.commands import Desk, told


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, sink="commit: inline")
    put(desk.landing, "bad.ndjson", b"{nope\n")
    a_past(desk, 2)
    return desk


def test_files_and_dlq_say_what_a_start_would_be_refused_for(desk: Desk) -> None:
    config = renamed(desk)

    for arguments in (("files", "--check"), ("files",), ("dlq", "list")):
        done = desk.run(*arguments, config=config)
        said = " ".join(done.output.split())
        assert done.exit_code == 1, arguments
        assert "pipeline 'default' of this table already reads" in said, arguments
        assert "waiting to be read" not in said
        assert "no failures" not in said


def test_what_the_earlier_journal_had_read_is_in_the_table(desk: Desk) -> None:
    config = renamed(desk)
    assert desk.run("journal", "new", "--from", "default", "--yes", config=config).exit_code == 0

    (found,) = told(desk.run("files", "--output", "json", config=config))
    (day,) = found["groups"]
    assert (day["in_table"], day["failed"], day["journaled"]) == (2, 1, 0)
    assert (day["uncounted"], day["rows"]) == (2, 0)
    assert "penguin" not in day["sentence"]
    listed = " ".join(desk.run("dlq", "list", config=config).output.split())
    assert "1 file failed under the earlier journal and is not listed here" in listed
    assert "no failures under this journal" in listed

    (desk.landing / "bad.ndjson").unlink()
    put(desk.landing, "bad.ndjson", b'{"id": 9, "name": "x"}\n')
    assert step(desk, "later", run="again")
    desk.commit()
    (found,) = told(desk.run("files", "--output", "json", config=config))
    (day,) = found["groups"]
    assert (day["complete"], day["rows"], day["uncounted"]) == (True, 1, 2)
    assert "1 row (2 read under an earlier journal, which counted their rows)" in day["sentence"]
    assert "earlier journal" not in desk.run("dlq", "list", config=config).output
