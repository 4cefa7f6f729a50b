"""What docs/answers.md says of `blizzard why` is what the program has."""

import re
from dataclasses import fields
from pathlib import Path

from blizzard.answers.answer import LANDED, Answer, FileState
from blizzard.answers.wording.words import SAYS, WAYS
from blizzard.discover.finding import Reason

PAGE = (Path(__file__).parents[4] / "docs/answers.md").read_text()
STATES = (*LANDED, FileState.ALTERED, FileState.SKIPPED, FileState.MISSING, FileState.ELSEWHERE)
"""The states of a source file."""


def test_every_state_is_on_the_page():
    first, _, rest = PAGE.partition("## Why is it not there?")[2].partition(
        "### The states of a data file"
    )
    second = rest.partition("### What it costs")[0]
    rows = [set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) for part in (first, second)]
    of_a_source, of_a_data_file = (names - {"state"} for names in rows)
    assert of_a_source == set(STATES)
    assert of_a_data_file == set(FileState) - set(STATES) | {FileState.MISSING}


def test_every_key_is_on_the_page():
    assert all(f"`{each.name}`" in PAGE for each in fields(Answer))


def test_every_state_of_a_source_file_has_its_words():
    assert {state for state, _reason in SAYS} == set(STATES) - {FileState.ELSEWHERE}


def test_every_reason_that_somebody_can_do_something_about_says_what():
    passing = {Reason.INGESTED, Reason.CHANGED, Reason.PARTIAL_FILE_CHANGED, Reason.RESTING}
    passing |= {Reason.FAILED, Reason.BEYOND_BATCH, Reason.TOO_YOUNG, Reason.FOLDER_MARKER}
    assert set(WAYS) == set(Reason) - passing - {Reason.MISPLACED}
