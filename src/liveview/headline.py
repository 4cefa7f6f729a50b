"""The overview: a headline for all pipelines and tables, and their problems by cause. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from blizzard.answers.answer import Problem, WayOut
from blizzard.answers.problems import COMMITS_LATE, LATE, minute, urgency
from lakebed.units import is_are, plural
from liveview.model import (
    Headline,
    Overview,
    PipelineSummary,
    Program,
    SharedProblem,
    TableSummary,
)

Summary = PipelineSummary | TableSummary
FEW = 3
"""The most commands shown for a problem of several pipelines, unless one command serves all."""
OF_ONE = re.compile(r" -p \S+(?= (--dry-run|dlq list|files)\b)")
"""The pipeline option in a command that also works for all pipelines without it."""
UP_TO_DATE = (
    "Nothing failed, nothing is held, and nothing waits for longer than `sink.late_after_secs` "
    "allows. Rows are not compared with the table: `blizzard audit` does that."
)
NO_PROBLEMS = (
    "No pipeline is stopped and nothing is held. Whether source files wait is not known here: this "
    "configuration has no pipelines. Rows are not compared: `blizzard audit` does that."
)
BEING_READ = "being_read"


def overview_of(
    at: str,
    programs: Sequence[Program],
    pipelines: Sequence[PipelineSummary],
    tables: Sequence[TableSummary],
) -> Overview:
    """Return all pipelines and tables with the headline and the shared problems."""
    shared = _shared([*pipelines, *tables])
    return Overview(
        at=at,
        headline=headline(datetime.fromisoformat(at), programs, pipelines, tables, shared),
        problems=shared,
        programs=list(programs),
        pipelines=list(pipelines),
        tables=list(tables),
    )


def _shared(items: Iterable[Summary]) -> list[SharedProblem]:
    """Merge problems with the same cause, adding up their counts.

    A table's problem with one of its pipelines repeats what that pipeline says of the same code.
    """
    found: dict[tuple[str, str, str], list[tuple[Summary, Problem]]] = {}
    of_pipelines: dict[tuple[str | None, str], tuple[str, str, str]] = {}
    for item in items:
        for one in item.problems:
            if one.code != BEING_READ:
                key: tuple[str, str, str] = (one.severity, one.code, one.many or one.message)
                if isinstance(item, PipelineSummary):
                    of_pipelines[item.name, one.code] = key
                else:
                    key = of_pipelines.get((one.subject, one.code), key)
                found.setdefault(key, []).append((item, one))
    shared = list(map(_together, found.values()))
    return sorted(shared, key=lambda one: urgency(one.problem))


def _together(group: Sequence[tuple[Summary, Problem]]) -> SharedProblem:
    """Merge a group of problems; those of tables repeat their pipelines' and are not counted."""
    of_pipelines = [one for item, one in group if isinstance(item, PipelineSummary)]
    problems = of_pipelines or [one for _item, one in group]
    first = min(problems, key=urgency)
    if len(problems) > 1:
        ways = [one.way_out for one in problems if one.way_out is not None]
        each = (OF_ONE.sub("", command) for way in ways for command in way.commands)
        commands = tuple(dict.fromkeys(each))
        counts = tuple(map(sum, zip(*(one.counts for one in problems), strict=True)))
        first = replace(
            first,
            message=first.many.format(*counts) if first.many else first.message,
            counts=counts,
            way_out=replace(ways[0], commands=commands[:FEW]) if ways else None,
            subject=first.subject if len({one.subject for one in problems}) == 1 else None,
        )
    names = dict.fromkeys((isinstance(item, TableSummary), item.name) for item, _one in group)
    return SharedProblem(
        problem=first,
        pipelines=[name for is_table, name in names if not is_table],
        tables=[name for is_table, name in names if is_table],
    )


def headline(
    now: datetime,
    programs: Sequence[Program],
    pipelines: Sequence[PipelineSummary],
    tables: Sequence[TableSummary],
    shared: Sequence[SharedProblem],
) -> Headline:
    """Summarize all pipelines and tables in one sentence, led by the worst problem.

    Lateness is spelled out if it is the only cause.
    """
    items: list[Summary] = [*pipelines, *tables]
    failing = [each for each in items if each.health == "failing"]
    if failing:
        causes = [one for one in shared if one.problem.severity == "error"]
        return _troubled(now, programs, len(pipelines), failing, causes)
    reading = sum(any(each.code == BEING_READ for each in one.problems) for one in pipelines)
    if reading:
        text = f"Reading the history of {plural(reading, 'pipeline')} …"
        return Headline(health="unknown", text=text)
    warned = [each for each in items if each.health == "warning"]
    if warned:
        return _troubled(now, programs, len(pipelines), warned, shared)
    return _unless_troubled(programs, pipelines, tables)


def _troubled(
    now: datetime,
    programs: Sequence[Program],
    all_in: int,
    bad: Sequence[Summary],
    causes: Sequence[SharedProblem],
) -> Headline:
    """Return what is late, or else what needs attention and the first cause."""
    health, count = bad[0].health, sum(isinstance(each, PipelineSummary) for each in bad)
    way_out = causes[0].problem.way_out if causes else None
    if causes and all(one.problem.code in LATE for one in causes):
        # Entries come before files, as they are nearer to the table.
        causes = sorted(causes, key=lambda one: one.problem.code not in COMMITS_LATE)
        text = " ".join(_late(now, programs, all_in, one) for one in causes)
        return Headline(health=health, text=text, way_out=causes[0].problem.way_out)
    who = [_share(all_in, count)] * bool(count)
    who += [plural(len(bad) - count, "table")] * (len(bad) > count)
    needs = f"need{'s' if len(bad) == 1 else ''} attention"
    verb = f"{is_are(len(bad))} failing" if health == "failing" else needs
    text = f"{' and '.join(who)} {verb}"
    if causes and len(bad) > 1:
        named = [*causes[0].pipelines, *causes[0].tables]
        where = "" if len(named) == len(bad) else f" ({_names(causes[0])})"
        text += f": {causes[0].problem.message}{where}"
    return Headline(health=health, text=text, way_out=way_out)


def _names(shared: SharedProblem) -> str:
    names = shared.pipelines or shared.tables
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _unless_troubled(
    programs: Sequence[Program],
    pipelines: Sequence[PipelineSummary],
    tables: Sequence[TableSummary],
) -> Headline:
    """Return the headline when no problem is known; anything unknown is not called ok."""
    all_in = len(pipelines)
    unknown = sum(
        one.health == "unknown" or None in (one.waiting_files, one.uncommitted_entries)
        for one in pipelines
    )
    silent = [each.name for each in programs if _is_missed(each)]
    but = f"; {' and '.join(silent)} {'does' if len(silent) == 1 else 'do'} not answer"
    but = but if silent else ""
    if not pipelines and not tables:
        text = "No pipeline has run yet"
    elif unknown:
        text = f"{_share(all_in, unknown)} {is_are(unknown)} not fully known yet"
    elif any(one.health == "unknown" for one in tables):
        text = "Not every table is known yet"
    elif not pipelines:
        text = f"{plural(len(tables), 'table')}, no problems{but}"
        return Headline(health="ok", text=text, covers=NO_PROBLEMS)
    else:
        text = f"{_share(all_in, all_in)} {is_are(all_in)} up to date{but}"
        return Headline(health="ok", text=text, covers=UP_TO_DATE)
    return Headline(health="unknown", text=text)


def _is_missed(program: Program) -> bool:
    """Whether a program that is needed and has an address does not answer."""
    return program.needed and not program.reachable and program.address is not None


def _share(all_in: int, some: int) -> str:
    if some < all_in:
        return f"{some} of {all_in} pipelines"
    return {1: "The pipeline", 2: "Both pipelines"}.get(some, f"All {some} pipelines")


def _late(now: datetime, programs: Sequence[Program], all_in: int, shared: SharedProblem) -> str:
    """Say what has waited too long, since when, and why."""
    problem = shared.problem
    (command, *_more) = (WayOut() if problem.way_out is None else problem.way_out).commands
    program = next((one for one in programs if one.name == command.partition(" ")[0]), None)
    many, since = problem.counts[0] > 1, datetime.fromisoformat(problem.since or "")
    what = problem.message.partition(";")[0]
    some = len(shared.pipelines)
    where = f" in {_share(all_in, some)}" if 0 < some < all_in else ""
    oldest = f"{', the oldest' if many else ''} since {minute(since, now)}"
    cause = _cause(program, moving=problem.code.endswith("_behind"))
    return f"{what}{where}{oldest}: {cause}."


def _cause(program: Program | None, *, moving: bool) -> str:
    if program is None:
        return "whether a program runs is not known"
    if not program.reachable and program.address is not None:
        return f"{program.name} does not answer"
    if moving:
        return f"{program.name} is catching up"
    if program.reachable:
        return f"{program.name} is running but has fallen behind"
    return f"whether {program.name} runs is not known"
