"""Results that cannot be printed are an error of one line, in both programs."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


@pytest.mark.parametrize("program", ["blizzard", "penguin"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_a_full_disk_behind_standard_output_is_one_line_and_exit_1(
    program: str, arguments: list[str]
):
    """HOLES W42: no trace of the program's insides, whether it prints much or little."""
    with FULL.open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", program, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    told = "error: cannot write to standard output: No space left on device\n"
    assert ended.stderr == told
