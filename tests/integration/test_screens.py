"""What every command prints, on a narrow and a wide terminal: names whole, things counted."""

import re

import pytest

from tests.support.desk import Desk
from tests.support.screens import LONG, lake, screens
from tests.unit.test_plurals import ONE_OF_MANY

BLANK_END = re.compile(r"[ \t]$|\n\n\Z", re.MULTILINE)
DATA = re.compile(r"\d{4}-\d\d-\d\d \d\d:|error: |warning: |  \{")
"""The log, standard error, rows, and what is copied into a file: lines that are never folded."""
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    return lake(tmp_path_factory.mktemp("screens") / "lake")


def test_no_command_breaks_a_name_or_says_1_files(desk):
    """HOLES W42.

    On a terminal a line is no wider than that, unless a name at its end is. In a pipe sentences are
    left whole, so that they can be searched and copied.
    """
    narrow = dict(screens(desk, 80))
    wide = dict(screens(desk, 200))
    coloured = dict(screens(desk, 80, colour=True))
    named = 0
    for shown in (narrow, wide, coloured):
        for command, output in shown.items():
            plain = ANSI.sub("", output)
            assert "Traceback" not in plain, command
            assert not ONE_OF_MANY.search(plain), (command, plain)
            # A part of the name at the end of a line would be a name that is broken.
            assert plain.count("a-very-long-folder-name") == plain.count(LONG), command
            named += LONG in plain
            # A dry run leaves out the folders of long paths, and shows their names whole.
            assert "\u2026" not in plain.replace("\u2026/", ""), command
            assert not BLANK_END.search(plain), (command, plain)
        assert ("\x1b" in "".join(shown.values())) is (shown is coloured)
    assert named > 6
    for command, output in coloured.items():
        lines = ANSI.sub("", output).splitlines()
        assert [line for line in lines if not (fits(line, 80) or DATA.match(line))] == [], command
    # Only the lines differ in which sentences are.
    assert words(narrow["blizzard journal 1"]) == words(coloured["blizzard journal 1"])


def fits(line: str, width: int) -> bool:
    """Whether a line is no wider than that, or only as a name at its end is."""
    before, _blank, name = line.rpartition(" ")
    return len(line) <= width or (len(before) < width and len(name) > width // 4)


def words(shown: str) -> list[str]:
    return ANSI.sub("", shown).split()
