"""blizzard says what is missing where only penguin is installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

from blizzard.__main__ import NEEDED, missing

WITHOUT_NUMBA = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "numba" else found(name, *more)
sys.argv = ["blizzard", "--version"]
from blizzard.__main__ import main
main()
"""


def test_what_is_missing_is_named() -> None:
    assert missing() == []
    assert missing(("json", "no_such_package")) == ["no_such_package"]


def test_the_program_ends_with_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "numba is missing" in done.stderr
    assert "pip install 'blizzard-penguin[blizzard]'" in done.stderr


def test_every_package_of_the_extra_is_looked_for() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["blizzard"]
    assert {each.partition("=")[0].partition(">")[0] for each in extra} == set(NEEDED)
