"""`blizzard why`: why a file is not in the table, or how it came there."""

from collections.abc import Callable, Iterator

from blizzard.answers.answer import Answer, DataFile, FileRetraction, FileState, Read, Resolution
from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.why import NOT_TAKEN, Pipelines
from blizzard.answers.why import why as answers_to
from blizzard.cli.call import PipelineCall
from blizzard.model.settings import PipelineSettings
from blizzard.table_rules import checks_schema
from lakebed.telemetry.events import code_of
from lakebed.terminal.console import first, print_error, second
from lakebed.units import in_words, plural

FEW = 20
"""The most data files to show to a person."""


def why(
    call: PipelineCall,
    file: str,
) -> None:
    """Show why a file is not in the table, or how it got there.

    URI is a source file, or a data file of the table. Nothing is written.

    Args:
        file URI: A local path, a URI, a path below a source or the table, the UUID of a data file,
            or part of a name.
    """
    call.who = "why"
    pipelines = Pipelines(call.pipelines(), _asking(call))
    found = answers_to(file, pipelines)
    for name, trouble in pipelines.unread.items():
        print_error(f"warning: pipeline {name} was not searched: {trouble} [{code_of(trouble)}]")
        call.fail_if(all(each.state in NOT_TAKEN for each in found))
    call.show((line for each in found for line in _text(each)), *found)


def _asking(call: PipelineCall) -> Callable[[PipelineSettings], PipelineEvidence]:
    clock, table_of = call.around.clock, call.table_of
    opened: dict[str, PipelineEvidence] = {}

    def ask(settings: PipelineSettings) -> PipelineEvidence:
        if settings.name not in opened:
            check = checks_schema(settings, table_of)
            opened[settings.name] = PipelineEvidence.read(
                settings, clock, check, cli=call.line(settings)
            )
        return opened[settings.name]

    return ask


def _text(answer: Answer) -> Iterator[str]:
    """Yield an answer for a person: the sentence, then the facts, then what to do."""
    yield answer.uri
    yield answer.answer
    yield from (f"  {name:<10} {value}" for name, value in _facts(answer))
    for way in answer.next:
        head, *below = way.lines()
        yield from (f"  -> {head}", *(f"   {line}" for line in below))


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    reason = "" if answer.reason is None else f" ({answer.reason})"
    yield "state", f"{answer.state.value}{reason}"
    if answer.pipeline is not None:
        source = "" if answer.source is None else f", source {answer.source}"
        yield "pipeline", f"{answer.pipeline}{source}, table {answer.table_uri}"
    if answer.stored is not None:
        one = answer.stored
        etag = "" if one.etag is None else f", e-tag {one.etag}"
        yield "in store", f"{in_words(one.size)}, written {second(one.modified)} UTC{etag}"
    elif answer.pipeline is not None:
        yield "in store", "no such object"
    yield from _entries(answer)
    failure = answer.failure
    if failure is not None:
        entry = "" if failure.entry is None else f", entry {failure.entry}"
        yield "failed", f"last at {second(failure.failed_at)} UTC{entry}"
    data_files = list(map(_data_file, answer.data_files))
    for name, values in (("data file", data_files), ("source", answer.sources)):
        yield from ((name, value) for value in first(values, FEW, indent=""))


def _entries(answer: Answer) -> Iterator[tuple[str, str]]:
    for read in answer.read:
        yield f"entry {read.entry}", _read(read)
    for done in answer.resolved:
        yield f"entry {done.entry}", _resolution(done)
    taken = answer.retraction
    if taken is not None:
        yield f"entry {taken.entry}", _retraction(taken)
    for erased in answer.erased:
        yield f"entry {erased.entry}", _retraction(erased)


def _read(read: Read) -> str:
    counts = (
        ("blank", read.blank),
        ("filtered", read.filtered),
        ("quarantined", read.quarantined),
        ("rescued", read.rescued),
        ("left out", read.dropped),
    )
    more = "".join(f", {count:,} {name}" for name, count in counts if count)
    done = "not committed yet"
    if read.committed:
        at = "" if read.committed_at is None else f" at {second(read.committed_at)} UTC"
        done = "committed" if read.version is None else f"Delta version {read.version}{at}"
    lines, rows = plural(read.lines, read.counted[:-1]), plural(read.rows, "row")
    return f"{second(read.at)} UTC: {lines}{more}, {rows}; {done}"


def _retraction(one: FileRetraction) -> str:
    by = "" if one.pipeline is None else f" by pipeline {one.pipeline}"
    rows = f"{second(one.at)} UTC: {plural(one.rows, 'row')} to be taken out of the table{by}"
    if one.rejected:
        return f"{rows}; rejected, they are in the table"
    if not one.committed:
        return f"{rows}; not committed yet"
    version = "" if one.version is None else f", Delta version {one.version}"
    back = ", and they came back" if one.came_back else ""
    return f"{rows}; committed{version}{back}"


def _resolution(one: Resolution) -> str:
    lines = f"{second(one.at)} UTC: {one.kind} of {plural(one.lines, 'bad line')}"
    if one.kind != "replay":
        return lines
    more = f", {one.filtered:,} filtered" if one.filtered else ""
    done = "not committed yet"
    if one.committed:
        done = "committed" if one.version is None else f"Delta version {one.version}"
    return f"{lines}{more}, {plural(one.rows, 'row')}; {done}"


def _data_file(one: DataFile) -> str:
    shared = f", shared by {one.sources:,} source files" if one.sources > 1 else ""
    version = "" if one.version is None else f", version {one.version}"
    verb = "changed" if one.state is FileState.ALTERED else "removed"
    removed = "" if one.removed_version is None else f", {verb} in version {one.removed_version}"
    heir = "" if one.replaced_by is None else f", now in {one.replaced_by}"
    facts = f"{plural(one.rows, 'row')}{shared}, {in_words(one.bytes)}"
    return f"{one.path}: {one.state.value}{version}{removed}{heir}; {facts}"
