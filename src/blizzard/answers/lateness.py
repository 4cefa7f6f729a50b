"""Data that has waited too long: source files to be read, and entries to be committed. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from blizzard.answers.status import PipelineStatus
from blizzard.model.settings import PipelineSettings
from lakebed.types import CommitMode
from lakebed.units import plural

POLLS = 3
"""Polls that a program may need before what waits for it is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateStep:
    """A step that data has waited for too long."""

    severity: Literal["warning", "error"]
    code: Literal["files_late", "commit_late"]
    message: str
    way_out: str
    """The command that takes the step."""
    since: datetime


def late_steps(
    settings: PipelineSettings,
    status: PipelineStatus | None,
    now: datetime,
    *,
    files: int | None,
    files_since: datetime | None,
    options: str = "",
) -> Iterator[LateStep]:
    """Yield what has waited too long in a pipeline, as far as it is known.

    `files` wait in the sources, the oldest since `files_since`. `options` name the configuration
    in a command.
    """
    sink = settings.sink
    if files and files_since is not None:
        # A batch waits for more files up to the rollover.
        patience = sink.rolling.rollover + POLLS * settings.poll_interval
        severity = _severity(settings, now, files_since, patience)
        if severity is not None:
            wait = plural(files, "source file waits", "source files wait")
            yield LateStep(
                severity=severity,
                code="files_late",
                message=f"{wait} to be read, the oldest since {minute(files_since, now)}",
                way_out=f"blizzard{options}",
                since=files_since,
            )
    since = None if status is None else status.uncommitted_since
    if status is not None and since is not None:
        is_inline = sink.commit is CommitMode.INLINE
        poll = settings.poll_interval if is_inline else sink.commit_poll
        severity = _severity(settings, now, since, POLLS * poll)
        if severity is not None:
            yield LateStep(
                severity=severity,
                code="commit_late",
                message=f"nothing journaled since {minute(since, now)} is committed: "
                + waiting_words(status.uncommitted_entries, status.uncommitted_rows),
                way_out=f"{sink.committer}{options}",
                since=since,
            )


def waiting_words(entries: int, rows: int | None) -> str:
    """Return how many entries wait for their commit, with how many rows."""
    many = "entry" if entries == 1 else "entries"
    counted = "" if rows is None else f", {plural(rows, 'row')}"
    verb = "waits" if entries == 1 and not counted else "wait"
    return f"{entries:,} {many}{counted} {verb}"


def minute(at: datetime, now: datetime) -> str:
    """Return a time in UTC, with its day unless that is today."""
    return f"{at:{'' if at.date() == now.date() else '%Y-%m-%d '}%H:%M} UTC"


def _severity(
    settings: PipelineSettings, now: datetime, since: datetime, patience: float
) -> Literal["warning", "error"] | None:
    waited = (now - since).total_seconds()
    if waited > settings.sink.late_after:
        return "error"
    return "warning" if waited > patience else None
