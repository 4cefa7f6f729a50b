"""What all pipelines and tables add up to: one sentence, and their problems by cause. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from blizzard.answers.answer import Health, Problem
from blizzard.answers.problems import minute, waiting_words
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
    """Return all pipelines and tables, with what they add up to."""
    return Overview(
        at=at,
        headline=headline(datetime.fromisoformat(at), programs, pipelines, tables),
        problems=_shared([*pipelines, *tables]),
        programs=list(programs),
        pipelines=list(pipelines),
        tables=list(tables),
    )


def _shared(items: Iterable[Summary]) -> list[SharedProblem]:
    """Return the problems of one cause together: errors first, then the oldest."""
    found: dict[tuple[str, str, str | None], list[tuple[Summary, Problem]]] = {}
    for item in items:
        for one in item.problems:
            if one.code != BEING_READ:
                key = (one.severity, one.code, one.way_out)
                found.setdefault(key, []).append((item, one))
    shared = []
    for group in found.values():
        first = min((one for _item, one in group), key=lambda one: one.since or "~")
        names = dict.fromkeys((isinstance(item, TableSummary), item.name) for item, _one in group)
        shared.append(
            SharedProblem(
                problem=first,
                pipelines=[name for is_table, name in names if not is_table],
                tables=[name for is_table, name in names if is_table],
            )
        )
    shared.sort(key=lambda one: (one.problem.severity != "error", one.problem.since or "~"))
    return shared


def headline(
    now: datetime,
    programs: Sequence[Program],
    pipelines: Sequence[PipelineSummary],
    tables: Sequence[TableSummary],
) -> Headline:
    """Return all pipelines and tables in one sentence: the worst, and never better than known."""
    bad = sum(one.health == "failing" for one in pipelines)
    bad_tables = sum(one.health == "failing" for one in tables)
    late = _late(now, programs, pipelines)
    if late is not None and (late.health == "failing" or not bad + bad_tables):
        return late
    if bad or bad_tables:
        failing = [_share(len(pipelines), bad)] * bool(bad)
        failing += [plural(bad_tables, "table")] * bool(bad_tables)
        text = f"{' and '.join(failing)} {is_are(bad + bad_tables)} failing"
        return Headline(health="failing", text=text)
    return _unless_failing(pipelines, tables)


def _unless_failing(
    pipelines: Sequence[PipelineSummary], tables: Sequence[TableSummary]
) -> Headline:
    """Return the sentence where nothing fails: what is not known is not said to be well."""
    all_in = len(pipelines)
    reading = sum(any(each.code == BEING_READ for each in one.problems) for one in pipelines)
    odd = sum(one.health == "warning" for one in pipelines)
    unknown = sum(
        one.health == "unknown" or None in (one.waiting_files, one.uncommitted_entries)
        for one in pipelines
    )
    health: Health = "unknown"
    if not pipelines and not tables:
        text = "No pipeline has run yet"
    elif reading:
        text = f"Reading the history of {plural(reading, 'pipeline')} …"
    elif odd:
        needs = "needs" if odd == 1 else "need"
        health, text = "warning", f"{_share(all_in, odd)} {needs} attention"
    elif unknown:
        text = f"{_share(all_in, unknown)} {is_are(unknown)} not fully known yet"
    elif any(one.health == "unknown" for one in tables):
        text = "Not every table is known yet"
    elif not pipelines:
        text = f"{plural(len(tables), 'table')}, no problems"
        return Headline(health="ok", text=text, covers=NO_PROBLEMS)
    else:
        text = f"{_share(all_in, all_in)} {is_are(all_in)} up to date"
        return Headline(health="ok", text=text, covers=UP_TO_DATE)
    return Headline(health=health, text=text)


def _share(all_in: int, some: int) -> str:
    if some < all_in:
        return f"{some} of {all_in} pipelines"
    return "The pipeline" if some == 1 else f"All {some} pipelines"


def _late(
    now: datetime, programs: Sequence[Program], pipelines: Sequence[PipelineSummary]
) -> Headline | None:
    """Return what has waited too long, and why: entries before files, as they are nearer."""
    for step in ("commit", "files"):
        codes = (f"{step}_late", f"{step}_behind")
        found = [(each, one) for each in pipelines for one in each.problems if one.code in codes]
        if not found:
            continue
        late = [each for each, _one in found]
        worst = min(
            (one for _each, one in found), key=lambda one: (one.severity, codes[0] != one.code)
        )
        since = min(datetime.fromisoformat(one.since) for _each, one in found if one.since)
        at, is_moving = minute(since, now), worst.code == codes[1]
        who = (worst.way_out or "").partition(" ")[0]
        cause = _cause(next((one for one in programs if one.name == who), None), moving=is_moving)
        if step == "commit":
            counts = [one.uncommitted_rows for one in late]
            rows = None if None in counts else sum(one or 0 for one in counts)
            waiting = waiting_words(sum(one.uncommitted_entries or 0 for one in late), rows)
            what = "Not everything journaled" if is_moving else "Nothing journaled"
            text = f"{what} since {at} is committed: {cause}. {waiting}"
        else:
            files = plural(sum(one.waiting_files or 0 for one in late), "source file")
            text = f"{files} not read, the oldest waiting since {at}: {cause}"
        if len(late) < len(pipelines):
            text += f" in {_share(len(pipelines), len(late))}"
        health: Health = "failing" if worst.severity == "error" else "warning"
        return Headline(health=health, text=f"{text}.", way_out=worst.way_out)
    return None


def _cause(program: Program | None, *, moving: bool) -> str:
    if program is None:
        return ""
    if moving:
        return f"{program.name} is catching up"
    if program.reachable:
        return f"{program.name} answers, and is behind"
    if program.address is None:
        return f"whether {program.name} runs is not known"
    return f"{program.name} does not answer"
