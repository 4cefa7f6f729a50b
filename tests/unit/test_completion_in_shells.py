"""Shells themselves complete, from their first Tab on, once completion is installed in them.

bash is everywhere; zsh and fish take part where they are installed.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

INSTALLED = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
PATIENCE = 240
LINES = [
    ("blizzard dlq repl", "blizzard dlq replay"),
    ("penguin vacuum --ye", "penguin vacuum --yes"),
    ("blizzard -c ev", "blizzard -c events.yaml"),
    ("blizzard -c events.yaml status -p we", "blizzard -c events.yaml status -p web"),
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a person who has both programs, in a folder with a configuration."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("blizzard", "penguin"):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {name} "$@"\n')
        (programs / name).chmod(0o755)
    (tmp_path / "events.yaml").write_text("pipelines: {web: {}, app: {}}\n")
    # Where it is not there, fish reads all pages of the manual, in a process that outlives it.
    (tmp_path / ".local/share/fish/generated_completions").mkdir(parents=True)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }


def typed(shell: str, line: str, wanted: str, environment: dict[str, str]) -> str:
    """Type a line and Tab in a new shell; return what is on the terminal once it is completed."""
    # Without what the machine's owner has every shell do.
    options = {"bash": "--noprofile", "zsh": "-d"}
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(environment["HOME"])
        os.execvpe(shell, [shell, options[shell], "-i"], environment)  # noqa: S606
    shown = b""
    try:
        os.write(terminal, b"echo is-$((1 + 1))ready\r")
        asked, until = False, time.monotonic() + PATIENCE
        while time.monotonic() < until and not (asked and wanted in plain(shown)):
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536)
            if not asked and b"is-2ready" in shown:
                asked, shown = True, b""
                os.write(terminal, line.encode() + b"\t")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
    return plain(shown)


def plain(shown: bytes) -> str:
    """Return what was shown without the terminal's own signs."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\x08]", "", shown.decode(errors="replace"))


def install(shell: str, environment: dict[str, str]) -> None:
    """Do what the page tells, in the shell: it is known by the process that asks."""
    for program in ("blizzard", "penguin"):
        done = subprocess.run(
            [shell, "-c", f"{program} --install-completion; true"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        assert f"{shell} completion installed in {environment['HOME']}" in done.stdout, done.stderr


def by_fish(line: str, environment: dict[str, str]) -> list[str]:
    """Return what fish offers for a line; it can be asked without a terminal."""
    asked = ["fish", "-c", f"complete --do-complete '{line}'"]
    done = subprocess.run(
        asked,
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return [each.split("\t")[0] for each in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", INSTALLED)
def test_the_first_tab_in_a_new_shell_completes(shell: str, environment: dict[str, str]):
    install(shell, environment)
    for line, wanted in LINES:
        if shell == "fish":
            assert by_fish(line, environment) == [wanted.split(" ")[-1]]
        else:
            assert wanted in typed(shell, line, wanted, environment)
