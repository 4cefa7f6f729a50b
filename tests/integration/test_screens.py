"""What every command prints, on a narrow and a wide terminal: names whole, things counted."""

import re

import pytest

from tests.support.desk import Desk
from tests.support.screens import LONG, lake, screens
from tests.unit.test_plurals import ONE_OF_MANY

BLANK_END = re.compile(r"[ \t]$|\n\n\Z", re.MULTILINE)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    return lake(tmp_path_factory.mktemp("screens") / "lake")


def test_no_command_breaks_a_name_or_says_1_files(desk):
    """HOLES W42.

    Lines are not held to the terminal's width: sentences are left to the terminal to wrap, so that
    they can be searched and copied whole, and a table is as wide as the longest name in it.
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
    assert narrow["blizzard journal 1"] == ANSI.sub("", coloured["blizzard journal 1"])
