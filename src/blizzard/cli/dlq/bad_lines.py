"""Lines in quarantine, as text or JSON."""

import base64
from collections.abc import Iterable, Iterator

from blizzard.answers.bad_lines import FaultGroup, Rules, advice, fix_for
from blizzard.model.bad_lines import WaitingFile
from blizzard.model.settings import PipelineSettings
from blizzard.worker.quarantine.reader import QuarantinedLine
from lakebed.terminal.console import Verbatim, picked
from lakebed.units import plural

SHOWN_BYTES = 80
"""How much of a line is shown to a person in a list."""


def line_document(uri: str, line: QuarantinedLine) -> dict[str, object]:
    """Return a line in quarantine; `raw` is None if it is not UTF-8, and its bytes are beside."""
    try:
        raw, packed = line.raw.decode(), None
    except UnicodeDecodeError:
        raw, packed = None, base64.b64encode(line.raw).decode()
    return {
        "path": uri,
        **picked(line, "line offset size"),
        "raw": raw,
        "raw_base64": packed,
        **picked(line, "code message field expected found"),
        "group": line.fault.group,
    }


def uri_of(line: QuarantinedLine, waiting: WaitingFile) -> str:
    """Return the URI of a line's source file, as it was when the line was quarantined."""
    return f"{waiting.source_uris.get(line.source, '').rstrip('/')}/{line.path}"


def group_documents(
    settings: PipelineSettings, found: Iterable[FaultGroup], rules: Rules
) -> Iterator[dict[str, object]]:
    """Yield lines with the same fault, in the keys that docs/errors.md promises."""
    uris = {source.name: source.uri.rstrip("/") for source in settings.sources}
    for group in found:
        sample = group.sample
        yield {
            "pipeline": settings.name,
            **picked(group.fault, "group code field expected found"),
            "lines": group.lines,
            "files": len(group.files),
            "fix": fix_for(group.tried, rules),
            "sample": line_document(
                f"{uris.get(sample.source, sample.source)}/{sample.path}", sample
            ),
        }


def word_for(settings: PipelineSettings, keys: Iterable[str] | None = None) -> str:
    """Return what a bad line of some source files is: a `line`, or a `record` of documents.

    Without the keys of source files, those of all sources are meant.
    """
    documents = {one.name for one in settings.sources if one.form.is_documents}
    names = {one.name for one in settings.sources}
    if keys is not None:
        names = {key.partition(":")[0] for key in keys}
    return "record" if names and names <= documents else "line"


def group_lines(settings: PipelineSettings, found: list[FaultGroup], rules: Rules) -> Iterator[str]:
    """Yield groups for a person."""
    if not found:
        return
    word = word_for(settings, (key for group in found for key in group.files))
    lines = plural(sum(group.lines for group in found), f"bad {word} is", f"bad {word}s are")
    which = plural(len(found), "group")
    yield f"pipeline {settings.name}: {lines} in quarantine, in {which}"
    for group in found:
        count, sample = plural(group.lines, word_for(settings, group.files)), group.sample
        of, at = plural(len(group.files), "file"), _at(settings, sample)
        yield f"  {group.fault.group}  {count} of {of}: {_fault(sample)} [{group.fault.code}]"
        yield f"    for example {sample.key}{at}: {_text(sample.raw, SHOWN_BYTES)}"
        yield f"    {advice(group.fault.group, fix_for(group.tried, rules))}"
    yield f"blizzard dlq show GROUP prints the {word}s of a group"


def _at(settings: PipelineSettings, line: QuarantinedLine) -> str:
    """Return where in its file a line is, or a record begins."""
    if line.line is None:
        return ""
    is_record = word_for(settings, [line.key]) == "record"
    return f", record at line {line.line}" if is_record else f", line {line.line}"


def bad_lines(
    settings: PipelineSettings, found: Iterable[tuple[str, QuarantinedLine]], limit: int
) -> Iterator[str]:
    """Yield lines for a person, with what is wrong with each."""
    some = list(found)
    for uri, line in some[:limit]:
        at, fault = _at(settings, line), _fault(line)
        yield f"{uri}{at}: {fault} [{line.code}, group {line.fault.group}]"
        yield Verbatim(f"  {_text(line.raw, 10 * SHOWN_BYTES)}")
    if len(some) > limit:
        rest = len(some) - limit
        yield f"... and {rest:,} more; --limit shows more, --output json all of them"


def _fault(line: QuarantinedLine) -> str:
    field = "" if line.field is None else f"{line.field}: "
    return f"{field}{line.message}"


def _text(raw: bytes, most: int) -> str:
    """Return a line so that it can be printed anywhere; say how much is left out."""
    text = "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode()
        for one in raw[:most].decode(errors="backslashreplace")
    )
    return text if len(raw) <= most else f"{text}... ({len(raw):,} bytes)"
