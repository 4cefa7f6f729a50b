"""What every command prints, on a narrow and a wide terminal: names whole, things counted."""

import re

import pytest

from tests.support.desk import Desk
from tests.support.screens import LONG, lake, screens
from tests.unit.test_completion import EVERY, ONE_OF_MANY

BLANK_END = re.compile(r"[ \t]$|\n\n\Z", re.MULTILINE)
DATA = re.compile(r"\d{4}-\d\d-\d\d \d\d:|error: |warning: |  \{")
"""The log, standard error, rows, and what is copied into a file: lines that are never folded."""
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    return lake(tmp_path_factory.mktemp("screens") / "lake")


@pytest.fixture(scope="module")
def piped(desk) -> dict[str, str]:
    return dict(screens(desk, None))


@pytest.mark.parametrize("width", [80, 200])
def test_no_command_breaks_a_name_on_a_terminal(desk, width):
    """HOLES W42: a line is no wider than the terminal, unless a name at its end is."""
    shown = dict(screens(desk, width, colour=True))
    assert "\x1b" in "".join(shown.values())
    for command, output in shown.items():
        plain = ANSI.sub("", output)
        check(command, plain)
        lines = plain.splitlines()
        wide = [line for line in lines if not (fits(line, width) or DATA.match(line))]
        assert wide == [], command


def test_a_pipe_gets_whole_lines_without_escapes(piped):
    for command, output in piped.items():
        assert "\x1b" not in output, command
        check(command, output)
    # A row is one line, and a sentence is not folded.
    (row,) = [line for line in piped["blizzard dlq list"].splitlines() if "decompress" in line]
    assert row.endswith("  0  cut.ndjson.gz"), row
    assert "\n  -> " in piped["blizzard why bad.ndjson"]
    assert max(map(len, piped["blizzard why bad.ndjson"].splitlines())) > 120


def test_every_command_is_among_them(piped):
    """Those that are not: a run of Spark's own, and the groups of commands."""
    groups = {words[:1] for _program, words in EVERY if len(words) > 1}
    left = {
        " ".join((program, *words))
        for program, words in EVERY
        if words not in {(), *groups, ("demo",), ("warm",)}
        and not any(f"{one} ".startswith(" ".join((program, *words, ""))) for one in piped)
    }
    assert left == set()


def check(command: str, plain: str) -> None:
    """Check what holds of all that is printed."""
    assert "Traceback" not in plain, command
    assert not ONE_OF_MANY.search(plain), (command, plain)
    # A part of the name at the end of a line would be a name that is broken.
    assert plain.count("a-very-long-folder-name") == plain.count(LONG), command
    # A dry run leaves out the folders of long paths, and shows their names whole.
    assert "\u2026" not in plain.replace("\u2026/", ""), command
    assert not BLANK_END.search(plain), (command, plain)


def fits(line: str, width: int) -> bool:
    """Whether a line is no wider than that, or only as a name at its end is."""
    before, _blank, name = line.rpartition(" ")
    return len(line) <= width or (len(before) < width and len(name) > width // 4)
