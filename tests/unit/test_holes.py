"""The list of known holes is complete."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_list_of_holes_says_what_the_tests_say() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts/holes"], capture_output=True, text=True, check=True
    )
    assert (ROOT / "tests/HOLES.md").read_text() == made.stdout, "run scripts/holes --write"
