"""blizzard says what is missing where only penguin is installed."""

import subprocess
import sys

from blizzard.cli.app import missing

WITHOUT = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "{}" else found(name, *more)
sys.argv = ["blizzard", *{}]
from blizzard.__main__ import main
main()
"""


def without(package: str, *typed: str) -> "subprocess.CompletedProcess[str]":
    script = WITHOUT.format(package, typed)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_nothing_is_missing_here() -> None:
    assert missing() == []


def test_without_spark_every_command_says_what_to_install() -> None:
    done = without("pyspark", "--version")
    assert done.returncode == 2
    assert "pyspark is missing" in done.stderr
    assert "pip install 'blizzard-penguin[blizzard]'" in done.stderr


def test_a_run_looks_for_every_package_of_the_extra() -> None:
    for package in ("isal", "numba", "pandas"):
        done = without(package, "--once", "-c", "pipeline.yaml")
        assert done.returncode == 2
        assert f"{package} is missing" in done.stderr
