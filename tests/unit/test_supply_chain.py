"""What is installed is what was locked: every package pinned, every file known by its hash."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def blocks() -> list[str]:
    """Return the lock, a package each: its line, and the lines that are indented below it."""
    return [one for one in re.split(r"\n(?=\S)", LOCK) if not one.startswith("#")]


def locked_names() -> set[str]:
    return {re.split(r"==", one)[0].strip().lower() for one in blocks()}


def test_every_package_is_pinned_with_the_hashes_of_its_files():
    assert len(blocks()) > 50
    for one in blocks():
        assert re.match(r"[a-z0-9._-]+==[^\s;*]+( ; [^\\]+)? \\\n", one), one[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", one), one[:80]


def test_nothing_in_the_lock_is_fetched_from_anywhere_else():
    """No URL, no path, no index: whoever installs says where packages come from."""
    assert not re.search(r"://|^-|^\.|@ ", LOCK, re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    ["bench/peers.lock", "docs/requirements.lock", "scripts/uv.lock", "scripts/pip-audit.lock"],
)
def test_what_only_tools_need_is_locked_in_the_same_way(name: str):
    text = (ROOT / name).read_text()
    packages = re.findall(
        r"^[a-z0-9._-]+==[^\s;*]+(?: ; [^\\]+)? \\\n((?:    --hash=sha256:.*\n)+)",
        text,
        re.MULTILINE,
    )
    assert len(packages) == len(re.findall(r"^\S", text, re.MULTILINE)) > 0
    assert not re.search(r"://|^-|^\.|@ ", text, re.MULTILINE)
    assert re.search(
        rf"--require-hashes (?:\\\n\s+)?--requirements? {name}", (ROOT / "Makefile").read_text()
    )


def test_whatever_the_project_needs_is_in_the_lock():
    groups = PROJECT["dependency-groups"]
    wanted = [*PROJECT["project"]["dependencies"], *groups["dev"], *groups["executor"]]
    names = {re.split(r"[^A-Za-z0-9._-]", one)[0].lower() for one in wanted}
    assert names <= locked_names()


def test_an_audit_that_cannot_ask_its_service_says_so_and_does_not_pass(tmp_path: Path):
    asked = tmp_path / "pip-audit"
    asked.write_text("#!/bin/sh\necho 'x: could not be audited' >&2\nexit 1\n")
    asked.chmod(0o755)
    done = subprocess.run(
        ["make", "-s", "-o", ".tools/audit/.ready", "audit-deps", f"PIP_AUDIT={asked}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode != 0
    assert "not passed. 'could not be audited' is no finding" in done.stderr


def test_what_is_installed_by_make_is_checked_against_the_hashes():
    makefile = (ROOT / "Makefile").read_text()
    assert "pip sync" in makefile
    assert "--generate-hashes" in makefile
    assert re.search(r"--require-hashes.*\\?\n?.*executor.lock", makefile)


@pytest.mark.parametrize("program", ["blizzard", "penguin"])
def test_images_install_what_is_checked_against_hashes(program: str):
    image = "Dockerfile" if program == "blizzard" else "Dockerfile.penguin"
    text = (ROOT / "deploy" / image).read_text()
    bases = re.findall(r"^(?:FROM|ARG \w+=)(.*)$", text, re.MULTILINE)
    assert [one.strip() for one in bases][1:] == ["${PYTHON_IMAGE}"]
    assert re.fullmatch(r"python:3\.11\S*@sha256:[0-9a-f]{64}", bases[0])
    installs = re.findall(r"pip install (.*)", text)
    assert len(installs) == 2
    assert f"--require-hashes --requirement /tmp/install/{program}.lock" in installs[0]
    assert all("--no-deps" in one for one in installs)
    assert "--no-index" in installs[1]


def test_the_wheel_asks_for_the_spark_that_is_locked():
    (pyspark,) = [
        one
        for one in PROJECT["project"]["optional-dependencies"]["blizzard"]
        if one.startswith("pyspark")
    ]
    assert re.search(rf"^{re.escape(pyspark)} ", LOCK, re.MULTILINE)


def test_the_sbom_names_every_package_of_the_lock_with_its_hashes():
    program = ROOT / "scripts/sbom"
    done = subprocess.run(
        [sys.executable, program], capture_output=True, check=True, text=True, timeout=300
    )
    bom = json.loads(done.stdout)
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    components = {one["name"]: one for one in bom["components"]}
    assert {name.replace("_", "-").replace(".", "-") for name in locked_names()} == set(components)
    assert all(one["hashes"] and one["version"] for one in components.values())
    required = {name for name, one in components.items() if one["scope"] == "required"}
    assert {"deltalake", "obstore", "pyarrow", "pyspark", "pydantic-core"} <= required
    assert required.isdisjoint({"pytest", "ruff", "moto", "mypy", "hypothesis"})
    references = {one["ref"] for one in bom["dependencies"]}
    assert all(each in references for one in bom["dependencies"] for each in one["dependsOn"])


def test_a_package_without_a_hash_shows():
    """The reader of the lock is not content with less."""
    loader = SourceFileLoader("sbom", str(ROOT / "scripts/sbom"))
    spec = importlib.util.spec_from_loader("sbom", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert module.locked("a==1 \\\n    --hash=sha256:" + "0" * 64 + "\nb==2\n") == {
        "a": ("1", ["0" * 64]),
        "b": ("2", []),
    }
