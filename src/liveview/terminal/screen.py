"""One screen of `blizzard top`: an overview becomes lines of the terminal's width. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.cells import cell_len
from rich.text import Text

from lakebed.shown import printable
from lakebed.terminal.console import UNBOUNDED
from lakebed.units import plural
from liveview.model import (
    CurrentBatch,
    Overview,
    PipelineSummary,
    Problem,
    Program,
    TableSummary,
    Unit,
)
from liveview.terminal import words
from liveview.terminal.words import GAP, Column, a_line, fitted, folded, row, titles

LEAST_WIDTH = 70
NAMES = 28
"""How wide a column of names is that has only short ones, so that it does not jump about."""
DRAWN = (48, 24, 16)
"""How wide the rows of a day may be drawn: parts of its 48 half hours."""
STYLES = {
    "running": "green",
    "idle": "",
    "waiting": "cyan",
    "failing": "bold red",
    "stopped": "yellow",
    "unknown": "yellow",
    "ok": "green",
    "warning": "yellow",
    "error": "bold red",
}
WORST_FIRST = {"failing": 0, "unknown": 1, "warning": 2, "ok": 3}
KEYS = "↑↓ choose   Enter open   Esc back   p pause   q quit"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a person has chosen to see."""

    chosen: str | None = None
    """The name of the pipeline that is marked."""
    opened: bool = False
    paused: bool = False


def in_order(pipelines: Iterable[PipelineSummary]) -> list[PipelineSummary]:
    """Return the pipelines in the order in which they are shown: trouble first, then by name."""
    return sorted(pipelines, key=lambda each: (WORST_FIRST.get(each.health, 1), each.name))


def screen(
    overview: Overview,
    view: View,
    *,
    now: datetime,
    width: int,
    height: int,
    note: str = "",
    keys: bool = True,
) -> list[Text]:
    """Return the lines of the screen: never more than fit, none wider than the terminal.

    Where it is not a terminal but a pipe, of unbounded width, nothing is shortened or folded.
    """
    width = max(width, LEAST_WIDTH)
    pipelines = in_order(overview.pipelines)
    chosen = next((each for each in pipelines if each.name == view.chosen), None)
    head = list(_head(overview, view, now, width, note))
    foot = [Text(""), a_line(KEYS, width, "dim")] if keys else []
    room = max(1, height - len(head) - len(foot))
    if view.opened and chosen is not None:
        body = list(_opened(chosen, overview, now, width))
        body = _cut(body, room, width)
    else:
        body = _tables_of_all(pipelines, overview.tables, view, now, width, room)
    return [*head, *body, *foot][:height]


def _head(overview: Overview, view: View, now: datetime, width: int, note: str) -> Iterator[Text]:
    programs = Text("  ").join(_program(each) for each in overview.programs)
    clock = f"{now:%Y-%m-%d %H:%M:%S} UTC" + ("  paused" if view.paused else "")
    title = Text("blizzard top", "bold")
    title.append(f"  {clock}", "not bold")
    blank = width - cell_len(title.plain) - cell_len(programs.plain)
    if width < UNBOUNDED and blank >= GAP:
        yield Text.assemble(title, " " * blank, programs)
    else:
        yield fitted(title, width)
        yield fitted(programs, width)
    yield a_line(_summary(overview), width)
    for each in overview.programs:
        if each.note:
            yield a_line(f"{each.name}: {each.note}", width, STYLES["warning"])
    if note:
        yield a_line(note, width, STYLES["warning"])
    yield Text("")


def _program(program: Program) -> Text:
    shown = Text("● " if program.reachable else "○ ", "green" if program.reachable else "yellow")
    shown.append(program.name if program.version is None else f"{program.name} {program.version}")
    if not program.reachable:
        shown.append(" not reached", STYLES["warning"])
    return shown


def _summary(overview: Overview) -> str:
    if not overview.pipelines:
        return "There is no pipeline in this configuration."
    states: dict[str, int] = {}
    for each in overview.pipelines:
        states[each.state] = states.get(each.state, 0) + 1
    parts = [
        f"{plural(len(overview.pipelines), 'pipeline')}: "
        + ", ".join(f"{states[state]} {state}" for state in STYLES if state in states),
        f"{words.counted(sum(each.rows_24h for each in overview.pipelines), 'row')} in 24 h",
    ]
    waiting = [each.waiting_files for each in overview.pipelines if each.waiting_files is not None]
    if waiting:
        parts.append(f"{plural(sum(waiting), 'file')} waiting")
    return " · ".join(parts)


def _tables_of_all(
    pipelines: Sequence[PipelineSummary],
    tables: Sequence[TableSummary],
    view: View,
    now: datetime,
    width: int,
    room: int,
) -> list[Text]:
    """Return both tables; where the room is short, the tables of Delta give way first."""
    below = [Text(""), *_delta_tables(tables, now, width, most=max(1, room // 4))] if tables else []
    if room - len(below) < min(room, 4):
        below = []
    return [*_pipelines(pipelines, view, width, room - len(below)), *below]


def _pipelines(
    pipelines: Sequence[PipelineSummary], view: View, width: int, room: int
) -> list[Text]:
    shape = [
        _names("PIPELINE", pipelines, width),
        Column("STATE", 7),
        Column("WAITING", 7, right=True),
        Column("OLDEST", 6, right=True),
        Column("FRESH", 6, right=True),
        Column("WORST", 6, right=True),
        Column("ROWS 24H", 8, right=True),
    ]
    if width >= 100:
        shape += [Column("FAILED", 6, right=True), Column("BAD LINES", 9, right=True)]
    drawn = next((each for each in DRAWN if UNBOUNDED > width >= 100 + GAP + each), 0)
    if drawn:
        shape.append(Column("LAST 24 HOURS", drawn))
    blocks: list[list[Text]] = []
    at = 0
    for number, each in enumerate(pipelines):
        cells: list[tuple[str, str]] = [
            (each.name, "bold"),
            (each.state, STYLES.get(each.state, "")),
            (words.count(each.waiting_files), ""),
            (words.span(each.oldest_waiting_secs), ""),
            (words.span(each.freshness.median_secs), ""),
            (words.span(each.freshness.worst_secs), ""),
            (words.count(each.rows_24h), ""),
        ]
        if width >= 100:
            failed = each.failed_files
            cells.append((words.count(failed), STYLES["warning"] if failed else ""))
            bad = each.quarantined_lines
            cells.append((words.count(bad), STYLES["warning"] if bad else ""))
        if drawn:
            cells.append((words.sparkline(list(each.spark), drawn), "green"))
        marked = each.name == view.chosen
        at = number if marked else at
        line = row(shape, cells, width)
        if marked:
            line.stylize("reverse")
        blocks.append([line, *_problems(each.problems[:1], width, indent=2)])
    return [titles(shape, width), *_around(blocks, at, room - 1, width)]


def _names(title: str, named: Iterable[PipelineSummary | TableSummary], width: int) -> Column:
    """Return the column of names: no wider than they are, or than is left on a narrow terminal."""
    longest = max(map(cell_len, (title, *(printable(each.name) for each in named))))
    if width >= UNBOUNDED:
        return Column(title, longest)
    return Column(title, None, most=max(longest, NAMES))


def _around(blocks: Sequence[list[Text]], at: int, room: int, width: int) -> list[Text]:
    """Return as many blocks as there is room for, the marked one among them."""
    if sum(map(len, blocks)) <= room:
        return [line for block in blocks for line in block]
    first, last = at, at + 1
    used = len(blocks[at]) + 1  # The line that says how many are left out.
    while True:
        if last < len(blocks) and used + len(blocks[last]) <= room and last - at <= at - first:
            used, last = used + len(blocks[last]), last + 1
        elif first > 0 and used + len(blocks[first - 1]) <= room:
            first, used = first - 1, used + len(blocks[first - 1])
        elif last < len(blocks) and used + len(blocks[last]) <= room:
            used, last = used + len(blocks[last]), last + 1
        else:
            break
    shown = [line for block in blocks[first:last] for line in block]
    left = len(blocks) - (last - first)
    return [*shown[: max(1, room - 1)], a_line(f"… {plural(left, 'more pipeline')}", width, "dim")]


def _delta_tables(
    tables: Sequence[TableSummary], now: datetime, width: int, most: int = 8
) -> list[Text]:
    shape = [
        _names("TABLE", tables, width),
        Column("VERSION", 9, right=True),
        Column("COMMITTED", 10, right=True),
        Column("FILES", 6, right=True),
        Column("SIZE", 9, right=True),
        Column("ROWS", 6, right=True),
        Column("TO COMMIT", 9, right=True),
    ]
    lines = [titles(shape, width)]
    for each in sorted(tables, key=lambda one: (WORST_FIRST.get(one.health, 1), one.name))[:most]:
        committed = words.age(each.committed_at, now)
        cells = [
            (each.name, "bold"),
            (words.NOTHING if each.version is None else f"{each.version:,}", ""),
            (committed if committed == words.NOTHING else f"{committed} ago", ""),
            (words.count(each.files), ""),
            (words.size(each.bytes), ""),
            (words.count(each.rows), ""),
            (words.count(each.waiting_entries), ""),
        ]
        lines += [row(shape, cells, width), *_problems(each.problems[:1], width, indent=2)]
    if len(tables) > most:
        lines.append(a_line(f"… {plural(len(tables) - most, 'more table')}", width, "dim"))
    return lines


def _opened(
    pipeline: PipelineSummary, overview: Overview, now: datetime, width: int
) -> Iterator[Text]:
    name = Text(printable(pipeline.name), "bold")
    name.append(f"  {pipeline.state}", STYLES.get(pipeline.state, ""))
    yield fitted(name, width)
    yield a_line(f"reads     {', '.join(pipeline.sources)}", width)
    yield a_line(f"table     {pipeline.table_uri}", width)
    fresh = pipeline.freshness
    yield a_line(
        f"fresh     {words.span(fresh.median_secs)} from arrival to commit, at worst "
        f"{words.span(fresh.worst_secs)}, over {plural(fresh.measured_files, 'file')} in 24 h",
        width,
    )
    yield a_line(f"waiting   {_waiting(pipeline)}", width)
    yield a_line(
        f"set aside {words.counted(pipeline.failed_files, 'file')} failed, "
        + (f"{words.count(pipeline.changed_files)} changed, " if pipeline.changed_files else "")
        + f"{words.counted(pipeline.held_entries, 'entry', 'entries')} held, "
        f"{words.counted(pipeline.quarantined_lines, 'bad line')} in quarantine",
        width,
    )
    yield a_line(f"yesterday {pipeline.yesterday.sentence}", width)
    yield a_line(f"24 hours  {words.sparkline(list(pipeline.spark), width - 10)}", width)
    if pipeline.problems:
        yield Text("")
        yield from _problems(pipeline.problems, width, indent=0)
    yield Text("")
    if pipeline.current_batch is None:
        yield a_line(_next(pipeline, now), width, "dim")
    else:
        yield from _batch(pipeline.current_batch, now, width)
    tables = [each for each in overview.tables if pipeline.name in each.pipelines]
    if tables:
        yield Text("")
        yield from _delta_tables(tables, now, width)


def _waiting(pipeline: PipelineSummary) -> str:
    if pipeline.waiting_files is None:
        return "not known"
    if not pipeline.waiting_files:
        return "nothing"
    size = "" if pipeline.waiting_bytes is None else f", {words.size(pipeline.waiting_bytes)}"
    oldest = words.span(pipeline.oldest_waiting_secs)
    return f"{plural(pipeline.waiting_files, 'file')}{size}; the oldest for {oldest}"


def _next(pipeline: PipelineSummary, now: datetime) -> str:
    if pipeline.next_look_at is None:
        return "No batch is running."
    left = (datetime.fromisoformat(pipeline.next_look_at) - now).total_seconds()
    return f"No batch is running; the next look is in {words.span(left)}."


def _batch(batch: CurrentBatch, now: datetime, width: int) -> Iterator[Text]:
    began = words.age(batch.started_at, now)
    yield a_line(
        f"Batch {batch.entry:,}: {plural(batch.files, 'file')}, for {began}", width, "bold"
    )
    stages = Text("")
    for each in batch.stages:
        mark, style = {"done": ("✓", "green"), "running": ("▶", "bold"), "waiting": ("·", "dim")}[
            each.state
        ]
        took = "" if each.seconds is None else f" {words.span(each.seconds)}"
        stages.append(f"{mark} {each.name}{took}   ", style)
    yield fitted(stages, width)
    told = (
        f" {words.percent(batch.read_bytes, batch.bytes)} of {words.size(batch.bytes)}, "
        f"{words.counted(batch.rows, 'row')}"
    )
    room = max(10, width - cell_len(told))
    bar = words.progress(batch.read_bytes, batch.bytes, min(40, room))
    yield fitted(Text.assemble((bar, "green"), told), width)
    yield from _units(batch, width)


def _units(batch: CurrentBatch, width: int) -> Iterator[Text]:
    if not batch.units:
        return
    shape = [
        Column("UNIT", None),
        Column("STATE", 7),
        Column("FILES", 6, right=True),
        Column("READ", 5, right=True),
        Column("ROWS", 6, right=True),
        Column("BAD", 5, right=True),
        Column("TIME", 6, right=True),
    ]
    yield titles(shape, width)
    for each in batch.units:
        yield row(shape, _unit(each), width)
    if batch.units_left_out:
        yield a_line(f"… {plural(batch.units_left_out, 'more unit')}", width, "dim")


def _unit(unit: Unit) -> list[tuple[str, str]]:
    return [
        (unit.id if unit.worker is None else f"{unit.id} on {unit.worker}", ""),
        (unit.state, STYLES["error"] if unit.state == "failed" else ""),
        (words.count(unit.files), ""),
        (words.percent(unit.read_bytes, unit.total_bytes), ""),
        (words.count(unit.rows), ""),
        (words.count(unit.bad_lines), STYLES["warning"] if unit.bad_lines else ""),
        (words.span(unit.seconds), ""),
    ]


def _problems(problems: Iterable[Problem], width: int, indent: int) -> Iterator[Text]:
    """Yield each problem in full, folded at words, with the way out below it."""
    for each in problems:
        said = f"{each.code}: {each.message}"
        yield from folded(said, width, STYLES[each.severity], indent)
        if each.way_out:
            yield from folded(each.way_out, width, "", indent + 2)


def _cut(lines: list[Text], room: int, width: int) -> list[Text]:
    if len(lines) <= room:
        return lines
    left = len(lines) - room + 1
    return [*lines[: room - 1], a_line(f"… {plural(left, 'more line')}", width, "dim")]
