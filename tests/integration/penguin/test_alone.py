"""penguin and the live page where only the packages that penguin declares are installed."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.live_lake import LiveLake

ROOT = Path(__file__).parents[3]


def undeclared() -> set[str]:
    """Return the packages in this environment that `pip install` does not bring for penguin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(each) for each in project["dependencies"]]
    found: set[tuple[str, str]] = set()
    while wanted:
        each = wanted.pop()
        for extra in ("", *each.extras):
            if (key := (canonicalize_name(each.name), extra)) not in found:
                found.add(key)
                needs = map(Requirement, distribution(each.name).requires or ())
                wanted += [
                    one for one in needs if not one.marker or one.marker.evaluate({"extra": extra})
                ]
    names = {name for name, _extra in found} | {canonicalize_name(project["name"])}
    return {
        module
        for module, brought_by in packages_distributions().items()
        if not names & set(map(canonicalize_name, brought_by))
    }


def test_every_command_and_the_page_need_only_what_penguin_declares(tmp_path: Path):
    """Nothing else can be imported while every command, function and route is used."""
    packages = undeclared()
    assert packages > {"pyspark", "numba", "pandas", "isal", "zstandard", "botocore", "pytest"}
    lake = LiveLake(tmp_path, ("orders",))
    lake.fill()
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/use-penguin", lake.file, json.dumps(sorted(packages))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "penguin can be used\n", done.stderr
