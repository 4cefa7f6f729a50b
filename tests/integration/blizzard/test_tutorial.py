"""docs/tutorial.md can be followed word for word, and what is printed is what it shows."""

import tempfile
from pathlib import Path

import pytest

from tests.support.tutorial import PAGE, Step, done, same, steps, typed_page


@pytest.mark.spark
def test_the_first_hour_is_as_the_page_tells_it():
    # A short path: tables on a terminal are cut where it is too narrow for them.
    with tempfile.TemporaryDirectory() as name:
        for written, came_out in typed_page(PAGE.read_text(), Path(name)):
            assert came_out == written, "if that is right, run make tutorial"


def test_the_page_has_files_edits_and_commands():
    kinds = [step.kind for step in steps(PAGE.read_text())]
    assert kinds.count("console") > 10
    assert {"json", "python", "diff", "console"} == set(kinds)


def test_an_edit_is_made_once_and_where_its_lines_are(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("x:\n  b: 1\ny:\n  b: 1\n")
    done(Step("diff", "a.yaml", " y:\n-  b: 1\n+  c: 2\n+  d: 3\n"), tmp_path)
    assert (tmp_path / "a.yaml").read_text() == "x:\n  b: 1\ny:\n  c: 2\n  d: 3\n"
    with pytest.raises(AssertionError, match="has not these lines once"):
        done(Step("diff", "a.yaml", "-z:\n"), tmp_path)


def test_a_command_that_prints_something_else_shows(tmp_path: Path):
    step = Step("console", "", "$ echo 2\n1\n")
    assert done(step, tmp_path) == "$ echo 2\n2\n" != step.body


def test_only_what_is_another_thing_each_time_is_made_the_same(tmp_path: Path):
    text = "2031-01-02 03:04:05 3 rows from 2 files in 17.2 s, 2024-05-06 08:00:00\n"
    made = same(text, tmp_path)
    assert made == "2026-05-10 09:00:00 3 rows from 2 files in 9.2 s, 2024-05-06 08:00:00\n"
    assert same(made, tmp_path) == made
