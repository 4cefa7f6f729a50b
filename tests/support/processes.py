"""The real programs in processes of their own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOOM = Path(__file__).parent / "doom"
PATIENCE = 600


@dataclass(frozen=True)
class Ended:
    """How a program ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def results(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


def printed(code: str, *arguments: object) -> list[Any]:
    """Run a program of a test in a process of its own; it prints a JSON document a line."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr[-4000:]}"
    return [json.loads(line) for line in ended.stdout.splitlines()]


def run(
    program: str,
    *arguments: object,
    doom: dict[str, object] | None = None,
    under: tuple[object, ...] = (),
) -> Ended:
    """Run a program to its end; with `doom`, it may die on the way."""
    process = start(program, *arguments, doom=doom, under=under)
    return finish(process)


def start(
    program: str,
    *arguments: object,
    doom: dict[str, object] | None = None,
    under: tuple[object, ...] = (),
) -> subprocess.Popen[str]:
    """Start a program, `under` another if so, in a process group of its own, as a shell would."""
    environment = dict(os.environ)
    if doom is not None:
        environment["DOOM"] = json.dumps(doom)
        environment["PYTHONPATH"] = str(DOOM)
    return subprocess.Popen(
        [*map(str, under), sys.executable, "-m", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    """Wait for the end, and leave nothing of its process group behind."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return Ended(process.returncode, out, err)
