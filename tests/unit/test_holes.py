"""The page of known holes is complete."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_holes_matches_the_tests_and_every_hole_has_one() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts/holes"], capture_output=True, text=True, check=True
    )
    assert (ROOT / "tests/HOLES.md").read_text() == made.stdout, "run scripts/holes --write"
    bare = [hole for hole in made.stdout.split("\n### ")[1:] if "\n- `" not in hole]
    assert not bare, "holes without a test"
