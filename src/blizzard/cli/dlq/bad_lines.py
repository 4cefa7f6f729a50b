"""Lines in quarantine, for a person or a machine."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from blizzard.answers.bad_lines import Group
from blizzard.answers.line_fixes import Fix, Rules, advice, fix_for
from blizzard.model.bad_lines import Fault, WaitingFile
from blizzard.model.settings import PipelineSettings
from blizzard.worker.quarantine.reader import QuarantinedLine
from lakebed.terminal.console import console, plural, say, say_as_it_is

SHOWN_BYTES = 80
"""How much of a line is shown to a person in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Lines with the same fault, in the keys that docs/errors.md promises."""

    pipeline: str
    group: str
    code: str
    field: str | None
    expected: str | None
    found: str | None
    lines: int
    files: int
    fix: Fix | None
    """What lets them in; None where no change of the configuration does."""
    sample: "LineRow"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """One line in quarantine."""

    path: str
    """The URI of the source file."""
    line: int | None
    offset: int | None
    size: int
    raw: str | None
    """The line; None where it is not UTF-8."""
    raw_base64: str | None
    """The bytes of one that is not."""
    code: str
    message: str
    field: str | None
    expected: str | None
    found: str | None
    group: str


def line_row(uri: str, line: QuarantinedLine) -> LineRow:
    """Return a line in quarantine as it is printed."""
    try:
        raw, packed = line.raw.decode(), None
    except UnicodeDecodeError:
        raw, packed = None, base64.b64encode(line.raw).decode()
    return LineRow(
        path=uri,
        line=line.line,
        offset=line.offset,
        size=line.size,
        raw=raw,
        raw_base64=packed,
        code=line.code,
        message=line.message,
        field=line.field,
        expected=line.expected,
        found=line.found,
        group=line.fault.group,
    )


def uri_of(line: QuarantinedLine, waiting: WaitingFile) -> str:
    """Return the URI of a line's source file, as it was when the line was set aside."""
    return f"{waiting.source_uris.get(line.source, '').rstrip('/')}/{line.path}"


def group_rows(
    settings: PipelineSettings, found: Iterable[Group], rules: Rules
) -> Iterator[GroupRow]:
    """Yield groups as they are printed."""
    uris = {source.name: source.uri.rstrip("/") for source in settings.sources}
    for group in found:
        sample = group.sample
        yield GroupRow(
            pipeline=settings.name,
            group=group.fault.group,
            code=group.fault.code,
            field=group.fault.field,
            expected=group.fault.expected,
            found=group.fault.found,
            lines=group.lines,
            files=len(group.files),
            fix=fix_for(group.tried, rules),
            sample=line_row(f"{uris.get(sample.source, sample.source)}/{sample.path}", sample),
        )


def word_for(settings: PipelineSettings, keys: Iterable[str] | None = None) -> str:
    """Return what a bad line of some source files is: a `line`, or a `record` of documents.

    Without the keys of source files, those of all sources are meant.
    """
    documents = {one.name for one in settings.sources if one.form.is_documents}
    names = {one.name for one in settings.sources}
    if keys is not None:
        names = {key.partition(":")[0] for key in keys}
    return "record" if names and names <= documents else "line"


def show_groups(settings: PipelineSettings, found: list[Group], rules: Rules) -> None:
    """Print groups for a person."""
    if not found:
        return
    to = console()
    word = word_for(settings, (key for group in found for key in group.files))
    lines = plural(sum(group.lines for group in found), f"bad {word} is", f"bad {word}s are")
    which = plural(len(found), "group")
    say(to, f"pipeline {settings.name}: {lines} in quarantine, in {which}")
    for group in found:
        count, sample = plural(group.lines, word_for(settings, group.files)), group.sample
        of = plural(len(group.files), "file")
        at = _at(settings, sample)
        say(to, f"  {group.fault.group}  {count} of {of}: {_in_words(group.fault, sample)}")
        say(to, f"    for example {sample.key}{at}: {_text(sample.raw, SHOWN_BYTES)}")
        say(to, f"    {advice(group.fault.group, fix_for(group.tried, rules))}")
    say(to, f"blizzard dlq show GROUP prints the {word}s of a group")


def _at(settings: PipelineSettings, line: QuarantinedLine) -> str:
    """Return where in its file a line is, or a record begins."""
    if line.line is None:
        return ""
    is_record = word_for(settings, [line.key]) == "record"
    return f", record at line {line.line}" if is_record else f", line {line.line}"


def show_lines(
    settings: PipelineSettings, found: Iterable[tuple[str, QuarantinedLine]], limit: int
) -> None:
    """Print lines for a person, with what is wrong with each."""
    to, more = console(), 0
    for number, (uri, line) in enumerate(found):
        if number >= limit:
            more += 1
            continue
        at = _at(settings, line)
        field = "" if line.field is None else f"{line.field}: "
        say(to, f"{uri}{at}: {field}{line.message} [{line.code}, group {line.fault.group}]")
        say_as_it_is(to, f"  {_text(line.raw, 10 * SHOWN_BYTES)}")
    if more:
        say(to, f"... and {more:,} more; --limit shows more, --output json all of them")


def _in_words(fault: Fault, sample: QuarantinedLine) -> str:
    field = "" if fault.field is None else f"{fault.field}: "
    return f"{field}{sample.message} [{fault.code}]"


def _text(raw: bytes, most: int) -> str:
    """Return a line so that it can be printed anywhere; what is left out is told."""
    text = "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode()
        for one in raw[:most].decode(errors="backslashreplace")
    )
    return text if len(raw) <= most else f"{text}... ({len(raw):,} bytes)"
