"""docs/tutorial.md, typed word for word: files written, edits made, commands run in a shell.

`python -m tests.support.tutorial` (make tutorial) does it and writes what the commands printed
into the page.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
HOME = "/data/first"
"""Where the reader is, as the page has it."""


def _of_a_kibibyte(table: re.Match[str]) -> str:
    """Return the table at the end of a run with another size of its data files."""
    files, size_column, rule, row, size = table.groups()
    width = len("1.0 KiB")
    line = rule + "─" * (width - max(len(size), len("bytes")))
    return f"{files}    {size_column}{line}{row}  1.0 KiB"


SAME = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "0192…"),
    (r"20(?!24)\d\d-\d\d-\d\d([ T])\d\d:\d\d:\d\d", r"2026-05-10\g<1>09:00:00"),
    (r"failures-\d{8}-\d{6}-", "failures-20260510-090000-"),
    (r"(\d+ min )?\d+ (s|min) ago", "3 s ago"),
    (r"in (\d+ min )?\d+(\.\d)? s\b", "in 9.2 s"),
    (r'e-tag "[^"]+"', 'e-tag "98444d"'),
    (r"(Parquet files?) \([\d.]+ (?:B|KiB)\)", r"\g<1> (1.0 KiB)"),
    (r"(data file .* )[\d.]+ (?:B|KiB)", r"\g<1>1.0 KiB"),
    (r"(Parquet files) +(bytes.*\n)(─+)(\n.*\d) +([\d.]+ (?:B|KiB))", _of_a_kibibyte),
)
"""What is another thing each time, and what stands for it on the page."""


@dataclass(frozen=True)
class Step:
    """A block of the page: what the reader types, writes or edits."""

    kind: str
    title: str
    body: str

    def commands(self) -> list[str]:
        return [line[2:] for line in self.body.splitlines() if line.startswith("$ ")]


def steps(page: str) -> Iterator[Step]:
    for kind, title, body in BLOCK.findall(page):
        if title or kind == "console":
            yield Step(kind, title, body)


def done(step: Step, folder: Path) -> str:
    """Do what a step says; return the block as it looks then."""
    match step.kind:
        case "console":
            return "".join(_typed(command, folder) for command in step.commands())
        case "diff":
            file = folder / step.title
            old, new = (_side(step.body, mark).replace(HOME, str(folder)) for mark in "-+")
            text = file.read_text()
            assert text.count(old) == 1, f"{step.title} has not these lines once:\n{old}"
            file.write_text(text.replace(old, new))
        case _:
            file = folder / step.title
            file.parent.mkdir(exist_ok=True)
            file.write_text(step.body)
    return step.body


def _side(diff: str, mark: str) -> str:
    """Return the lines of a diff before (-) or after (+) the change."""
    lines = diff.splitlines(keepends=True)
    return "".join(line[1:] for line in lines if line[0] in (" ", mark))


def _typed(command: str, folder: Path) -> str:
    """Run a command in a shell; return the prompt with it and what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    return f"$ {command}\n{same(ran.stdout, folder)}"


def same(printed: str, folder: Path) -> str:
    """Return what was printed with names and times that are the same each time."""
    text = printed.replace(str(folder), HOME)
    for pattern, instead in SAME:
        text = re.sub(pattern, instead, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def typed_page(page: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Do all that the page says, in its order; yield each block as written and as it came out."""
    for step in steps(page):
        yield step.body, done(step, folder)


if __name__ == "__main__":
    text = PAGE.read_text()
    with tempfile.TemporaryDirectory() as name:
        for block, came_out in typed_page(text, Path(name)):
            assert text.count(f"\n{block}```") >= 1
            text = text.replace(f"\n{block}```", f"\n{came_out}```", 1)
    PAGE.write_text(text)
