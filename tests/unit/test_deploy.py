"""What is in deploy/ starts the programs as they are, and lets them end in order."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import blizzard.config.load
import penguin.config.load
from blizzard.cli.app import app as blizzard_app
from penguin.cli.app import app as penguin_app
from tests.support.commands import WIDTH

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
IMAGES = sorted(DEPLOY.glob("Dockerfile*"))
APPS = {"blizzard": blizzard_app, "penguin": penguin_app}


def unit(file: Path) -> configparser.SectionProxy:
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment]
    read.read(file)
    return read["Service"]


def takes(program: str, words: list[str]) -> bool:
    """Whether a program knows these options; the configuration itself is on another machine."""
    answer = CliRunner().invoke(APPS[program], [*words, "--help"], env={"COLUMNS": str(WIDTH)})
    return answer.exit_code == 0


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_a_unit_starts_a_program_that_knows_its_options(file: Path) -> None:
    command, *words = unit(file)["ExecStart"].split()
    assert takes(Path(command).name, words)
    assert Path(command).name == file.stem


def test_blizzard_gets_the_signal_alone_and_has_time() -> None:
    service = unit(DEPLOY / "systemd" / "blizzard.service")
    assert service["KillMode"] == "mixed"
    assert service["TimeoutStopSec"].endswith("min")


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_systemd_finds_no_fault(file: Path, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("only where there is systemd")
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", file.read_text(), flags=re.MULTILINE)
    (tmp_path / file.name).write_text(text.replace("User=blizzard", "User=root"))
    done = subprocess.run(
        [verify, "verify", tmp_path / file.name], capture_output=True, text=True, check=False
    )
    about = [line for line in done.stderr.splitlines() if file.name in line]
    assert about == []


@pytest.mark.parametrize("file", IMAGES, ids=lambda file: file.name)
def test_an_image_starts_a_program_as_a_user_without_rights(file: Path) -> None:
    text = file.read_text()
    entry = yaml.safe_load(re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[-1])
    words = yaml.safe_load(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[-1])
    assert takes(entry[-1], words)
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1] == "10001"


def test_compose_mounts_a_configuration_that_both_programs_take() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert set(services) == set(APPS)
    assert services["blizzard"]["stop_grace_period"] == "15m"
    file = DEPLOY / "pipeline.yaml"
    assert blizzard.config.load.load([file], [], {}).metrics_address == "0.0.0.0:9090"
    assert penguin.config.load.load([file], [], {}).metrics_address == "0.0.0.0:9091"
