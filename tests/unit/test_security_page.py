"""Every threat on the security page has a protection, and a test that exists."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from blizzard.execute.spark import session
from penguin.foreign.footer import TRIAL

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
THREATS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for section in PAGE.split("| threat | what protects | proved by |")[1:]
    for line in section.partition("\n\n")[0].splitlines()
    if line.startswith("|") and not line.startswith("|--")
]


@cache
def functions_in(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in found if isinstance(node, ast.FunctionDef)}


def test_every_threat_names_a_protection_and_a_test_that_exists():
    assert len(THREATS) > 25
    for cells in THREATS:
        threat, protection, proof = cells
        assert threat, cells
        assert protection, cells
        named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", proof)
        assert named, cells
        for path, name in named:
            assert (ROOT / "tests" / path).exists(), path
            assert not name or name in functions_in(ROOT / "tests" / path), name


def test_the_security_rules_are_on():
    """`make check` runs them; each rule that a folder is excused from has its reason beside it."""
    text = (ROOT / "pyproject.toml").read_text()
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    assert not [rule for rule in lint["ignore"] if rule.startswith("S1")]
    for rules in lint["per-file-ignores"].values():
        assert "S" not in rules
    for line in text.splitlines():
        if re.search(r'^\s+"S\d', line):
            assert "#" in line, line
    for path in (ROOT / "src").rglob("*.py"):
        for line in path.read_text().splitlines():
            if re.search(r"noqa:.*\bS\d{3}\b", line):
                assert re.search(r"\bS\d{3}\s+(-|#)", line), (path, line)


def test_no_process_of_ours_searches_the_working_directory():
    """HOLES W27."""
    assert "-P" in TRIAL.command
    assert '"spark.executorEnv.PYTHONSAFEPATH": "1"' in Path(session.__file__).read_text()
