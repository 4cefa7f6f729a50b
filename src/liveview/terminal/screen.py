"""One screen of `blizzard top`: an overview as tables in the terminal's width. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from blizzard.answers.answer import Problem, WayOut
from blizzard.answers.problems import said_of
from lakebed.errors import printable
from lakebed.terminal.console import UNBOUNDED
from lakebed.units import in_words, plural, took
from lakebed.units import span as in_full
from liveview.model import Overview, PipelineSummary, Program, SharedProblem, TableSummary

BARS = "▁▂▃▄▅▆▇█"
STYLES = {
    "running": "green",
    "to_read": "cyan",
    "to_commit": "cyan",
    "ok": "green",
    "failing": "bold red",
    "failed": "bold red",
    "stopped": "yellow",
    "unknown": "yellow",
    "warning": "yellow",
    "error": "bold red",
}
HEALTH_WORDS = {
    "ok": "ok",
    "warning": "needs attention",
    "failing": "failing",
    "unknown": "not known",
}
WORST_FIRST = {"failing": 0, "unknown": 1, "warning": 2, "ok": 3}
SIGNS = {"ok": "✓", "warning": "!", "failing": "✗", "unknown": "?"}
"""Symbols for the health, before the name; the state has its own column."""
LEFT = ("", "PIPELINE", "TABLE", "STATE", "LAST 24 HOURS")
MOST_PROBLEMS = 5
OTHERS = 62
"""The width of all columns but the name in an 80-column terminal."""
HEAD_AND_PANE = 17
"""Lines of a screen that do not show pipelines."""
ORDERS: dict[str, Callable[[PipelineSummary], float]] = {
    "trouble": lambda each: WORST_FIRST.get(each.health, 1),
    "name": lambda _each: 0,
    "behind": lambda each: -(each.behind_secs or 0),
    "to read": lambda each: -(each.waiting_files or 0),
    "to commit": lambda each: -(each.uncommitted_entries or 0),
    "rows": lambda each: -(each.rows_24h or 0),
}
"""The sort orders of pipelines; ties are sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the user has chosen to see."""

    chosen: str | None = None
    """The name of the selected pipeline."""
    paused: bool = False
    search: str = ""
    """Words that must all occur in the names, sources or state."""
    typing: bool = False
    """Whether keys edit the search."""
    order: str = "trouble"


def listed(overview: Overview, view: View) -> list[PipelineSummary]:
    """Return the pipelines that match the search, in the chosen order."""
    found = (each for each in overview.pipelines if _is_meant(each, view.search))
    return sorted(found, key=lambda each: (ORDERS[view.order](each), each.name))


def _is_meant(pipeline: PipelineSummary, search: str) -> bool:
    marks = (pipeline.name, pipeline.table or "", *pipeline.sources, pipeline.health)
    text = " ".join((*marks, pipeline.state.replace("_", " "))).lower()
    return all(word in text for word in search.lower().split())


def screen(
    overview: Overview,
    view: View,
    *,
    now: datetime,
    width: int,
    height: int | None = None,
    note: str = "",
) -> Group:
    """Return what to draw; with a height, only the pipelines around the selected one."""
    return Group(*_head(overview, view, now, note), *_body(overview, view, now, width, height))


def _head(overview: Overview, view: View, now: datetime, note: str) -> Iterator[Text]:
    title = Text("blizzard top", "bold")
    title.append(f"  {now:%Y-%m-%d %H:%M:%S} UTC{'  paused' if view.paused else ''}", "not bold")
    yield title
    head = overview.headline
    yield _text(head.text, head.health)
    yield from _way_out(head.way_out)
    if head.covers is not None:
        yield _text(head.covers.replace("`", ""), "dim")
    yield Text("  ").join(map(_program, overview.programs))
    yield Text(_summary(overview))
    notes = [f"{each.name}: {each.note}" for each in overview.programs if each.note]
    for line in (*notes, *([note] if note else [])):
        yield _text(line, "warning")


def _program(program: Program) -> Text:
    version = "" if program.version is None else f" {program.version}"
    if not program.needed:
        return Text(f"· {program.name} not needed", "dim")
    if program.reachable:
        return Text.assemble(("● ", "green"), f"{program.name}{version}")
    return Text(f"○ {program.name}{version} not reached", "yellow")


def _summary(overview: Overview) -> str:
    pipelines = overview.pipelines
    if not pipelines:
        return "There is no pipeline in this configuration."
    states = [each.state.replace("_", " ") for each in pipelines]
    counts = ", ".join(f"{states.count(each)} {each}" for each in sorted(set(states)))
    parts = [f"{plural(len(pipelines), 'pipeline')}: {counts}"]
    rows = [each.rows_24h for each in pipelines if each.rows_24h is not None]
    if rows:
        parts.append(f"{plural(sum(rows), 'row')} in 24 h")
    waiting = [each.waiting_files for each in pipelines if each.waiting_files is not None]
    if waiting:
        parts.append(f"{plural(sum(waiting), 'file')} to read")
    return " · ".join(parts)


def _body(
    overview: Overview, view: View, now: datetime, width: int, height: int | None
) -> Iterator[RenderableType]:
    """Yield the pipelines, then the selected one or all problems, then the tables."""
    pipelines = listed(overview, view)
    room = len(pipelines) if height is None else max(3, height - HEAD_AND_PANE)
    at = next((at for at, each in enumerate(pipelines) if each.name == view.chosen), 0)
    first = max(0, min(at - room // 2, len(pipelines) - room))
    shown = pipelines[first : first + room]
    yield _pipelines(shown, view, width)
    if len(pipelines) > len(shown):
        yield Text(f"… {plural(len(pipelines) - len(shown), 'more pipeline')}", "dim")
    tables = sorted(overview.tables, key=lambda each: (WORST_FIRST.get(each.health, 1), each.name))
    marked = [each for each in pipelines if each.name == view.chosen]
    if marked:
        yield Text("")
        yield from _pane(marked[0], now)
    else:
        yield from _shared(overview.problems, now)
    if tables:
        yield Text("")
        yield _delta_tables(tables, now, width)


def _pipelines(pipelines: Iterable[PipelineSummary], view: View, width: int) -> Table:
    is_wide, is_drawn = width >= 100, UNBOUNDED > width >= 160
    titles = ["", "PIPELINE", "STATE", "TO READ", "TO COMMIT", "BEHIND", "FRESH"]
    titles += ["WORST", "ROWS 24H", "FAILED", "BAD LINES"] if is_wide else ["ROWS 24H"]
    table = _table(*titles, *(["LAST 24 HOURS"] if is_drawn else []))
    for each in pipelines:
        fresh = each.freshness
        cells = [
            _text(SIGNS[each.health], each.health),
            _name(each.name, width),
            _text(each.state.replace("_", " "), each.state),
            _count(each.waiting_files),
            _count(each.uncommitted_entries),
            _span(each.behind_secs),
            _span(fresh.median_secs),
        ]
        if is_wide:
            cells += [
                _span(fresh.worst_secs),
                _count(each.rows_24h),
                _count(each.failed_files, "yellow"),
                _count(each.quarantined_lines, "yellow"),
            ]
        else:
            cells.append(_count(each.rows_24h))
        if is_drawn:
            cells.append(Text(sparkline(each.spark), "green"))
        table.add_row(*cells, style="reverse" if each.name == view.chosen else None)
    return table


def _name(name: str, width: int) -> Text:
    """Return a name, with the middle of a long one elided."""
    shown, most = printable(name), max(12, width - OTHERS)
    if len(shown) > most:
        head = most // 2
        shown = f"{shown[:head]}…{shown[head + 1 - most :]}"
    return Text(shown, "bold")


def _delta_tables(tables: Iterable[TableSummary], now: datetime, width: int) -> Table:
    table = _table("", "TABLE", "VERSION", "COMMITTED", "FILES", "SIZE", "ROWS", "TO COMMIT")
    for each in tables:
        age = _age(each.committed_at, now)
        table.add_row(
            _text(SIGNS[each.health], each.health),
            _name(each.name, width - 8),
            _count(each.version),
            _span(age, " ago"),
            _count(each.files),
            Text("-" if each.bytes is None else in_words(each.bytes)),
            _count(each.rows) + _as_of(each),
            _count(each.waiting_entries),
        )
    return table


def _as_of(table: TableSummary) -> Text:
    """Return the version to which a size refers, if it is not the one shown."""
    is_old = table.size_version not in (None, table.version)
    return Text(f" at {table.size_version:,}" if is_old else "", "dim")


def _pane(pipeline: PipelineSummary, now: datetime) -> Iterator[Text]:
    """Yield the problems and the activity of the selected pipeline."""
    state = _text(pipeline.state.replace("_", " "), pipeline.state)
    health = _text(f"{SIGNS[pipeline.health]} {HEALTH_WORDS[pipeline.health]}", pipeline.health)
    yield Text.assemble(_text(pipeline.name, "bold"), "  ", state, "  ", health)
    for problem in pipeline.problems:
        yield from _problem("", problem, now)
    batch = pipeline.current_batch
    if batch is None:
        left = _age(pipeline.next_listing_at, now)
        then = "" if left is None else f"; the next poll is in {took(max(0.0, -left))}"
        yield Text(f"No batch is running{then}.", "dim")
    else:
        at = next((each.name for each in batch.stages if each.state == "running"), "")
        read = f"{percent(batch.read_bytes, batch.bytes)} of {in_words(batch.bytes)}"
        age = _span(_age(batch.started_at, now))
        files, rows = plural(batch.files, "file"), plural(batch.rows, "row")
        yield Text(f"Batch {batch.entry:,}: {files}, for {age}; {at}: {read}, {rows}")
    yield _text(pipeline.yesterday.sentence, "")


def _shared(found: Sequence[SharedProblem], now: datetime) -> Iterator[Text]:
    """Yield the worst problems, each once."""
    if found:
        yield Text("")
    for each in found[:MOST_PROBLEMS]:
        names = [*each.pipelines, *each.tables]
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield from _problem(f"{names[0]}{more}", each.problem, now)
    if len(found) > MOST_PROBLEMS:
        yield Text(f"… {plural(len(found) - MOST_PROBLEMS, 'more problem')}", "dim")


def _problem(whose: str, problem: Problem, now: datetime) -> Iterator[Text]:
    line = _text(f"{problem.code}: {said_of(problem, now)}", problem.severity)
    yield Text.assemble(_text(whose, "bold"), "  " if whose else "", line)
    yield from _way_out(problem.way_out)


def _way_out(way: WayOut | None) -> Iterator[Text]:
    yield from () if way is None else (_text(f"  {line.strip()}", "") for line in way.lines())


def _table(*titles: str) -> Table:
    """Return a borderless table with one line per row."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        justify = "left" if title in LEFT else "right"
        table.add_column(title, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    return table


def _text(text: str, style: str | None = None) -> Text:
    """Return printable text in a style, by default that of the state it names."""
    return Text(printable(text), STYLES.get(text if style is None else style, style or ""))


def _count(number: int | None, style: str = "") -> Text:
    return Text("-" if number is None else f"{number:,}", style if number else "")


def _span(seconds: float | None, after: str = "") -> Text:
    """Format a time span in its largest unit: `41 s`, `12 min`, `3 h`."""
    return Text("-" if seconds is None else " ".join(in_full(seconds).split()[:2]) + after)


def _age(at: str | None, now: datetime) -> float | None:
    return None if at is None else (now - datetime.fromisoformat(at)).total_seconds()


def sparkline(values: Sequence[float]) -> str:
    """Draw values as bars, one character each; zero is a blank."""
    most = max(values, default=0.0)
    last = len(BARS) - 1
    return "".join(
        BARS[min(last, int(value / most * len(BARS)))] if value > 0 else " " for value in values
    )


def percent(done: float, whole: float) -> str:
    """Return the finished share; 100% only if everything is done."""
    if whole <= 0:
        return "-"
    return f"{min(99 if done < whole else 100, int(done / whole * 100))}%"
