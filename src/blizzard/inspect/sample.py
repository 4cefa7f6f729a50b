"""A short look at the files of a pipeline that declares no fields, to say what could be declared.

It reads a few lines of a few files, whatever their number and size, and never fails: what cannot
be read is said, and an example is shown instead.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from blizzard.config.forms import form_of
from blizzard.config.load import place
from blizzard.discover.names import why_not_ours
from blizzard.inspect.schema_guess import GuessedField, guess, is_object, section
from blizzard.model.form import Form
from blizzard.model.settings import SourceSettings
from blizzard.worker.compression import decompress, recognised
from blizzard.worker.ndjson.lines import SEPARATOR
from lakebed.config.models import KeyPath, Pipeline, Source, storage_options, template_keys
from lakebed.errors import LakeError
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import ObjectFacts, Reader
from lakebed.types import Codec, FieldType
from lakebed.units import plural

FILES = 5
LINES = 100
BYTES = 1 << 20
"""Of each file, once it is decompressed."""
LISTED = 10_000
"""Names that are looked at to find files; a landing zone may hold millions of others."""

EXAMPLE = (
    GuessedField("id", FieldType.INT64),
    GuessedField("name", FieldType.STRING),
    GuessedField("at", FieldType.TIMESTAMP),
)


@dataclass(slots=True)
class _Look:
    """What was read, and what kept more from being read."""

    files: int = 0
    lines: list[bytes] = field(default_factory=list)
    trouble: str | None = None
    left_out: list[str] = field(default_factory=list)
    """The lines that are no JSON objects, by number and file."""


def proposal(
    path: KeyPath,
    pipeline: Pipeline,
    *,
    open_reader: Callable[[str, StorageOptions], Reader] = Reader,
) -> str:
    """Return what to write into the `schema` section of a pipeline, found in its sources."""
    look = _Look()
    for _, _, source in pipeline.named_sources():
        if look.files < FILES:
            _look_at(source, look, open_reader)
    indent = 2 * len(path)
    example = section(EXAMPLE, indent=indent)
    left_out = f"; {_left_out(look.left_out)}" if look.left_out else ""
    if found := guess(look.lines, without=_given_by_folders(pipeline)):
        files = "a file" if look.files == 1 else f"{look.files} files"
        return (
            f"is required\nThis section fits the first lines of {files} of this "
            f"pipeline{left_out}. Paste it into the configuration and adjust it where you know "
            f"better:\n{section(found, indent=indent)}"
        )
    if not any(pipeline.named_sources()):
        return f"is required\nIt lists the columns of the table, as in this example:\n{example}"
    why = look.trouble or f"no file with JSON objects was found{left_out}"
    return (
        "is required\nIt lists the columns of the table. They could not be inferred from the "
        f"source ({why}), so this is only an example:\n{example}"
    )


def _left_out(lines: list[str]) -> str:
    first, *more = lines
    if not more:
        return f"{first} is not a JSON object and was left out"
    return f"{first} and {plural(len(more), 'other line')} are not JSON objects and were left out"


def _given_by_folders(pipeline: Pipeline) -> frozenset[str]:
    """Return the columns that the path of a source file gives; a line's own value is not used."""
    by = pipeline.sink.partition_by if pipeline.sink else None
    if by is None or by.timestamp_field is not None:
        return frozenset()
    return frozenset(template_keys(by.prefix_template))


def _look_at(
    source: Source, look: _Look, open_reader: Callable[[str, StorageOptions], Reader]
) -> None:
    try:
        folder, pattern = place(source.path)
        reader = open_reader(folder, storage_options(source.storage_options))
        meant = SourceSettings(uri=folder, pattern=pattern, form=form_of(source))
        listed = islice(reader.in_order(after=pattern.after if pattern else ""), LISTED)
        ours = (facts for facts in listed if why_not_ours(facts.path, meant) is None and facts.size)
        for facts in islice(ours, FILES - look.files):
            if lines := _lines(reader, facts, meant.form, look):
                look.files += 1
                look.lines += lines
    except (LakeError, ValueError) as error:
        look.trouble = look.trouble or str(error)


def _lines(reader: Reader, facts: ObjectFacts, form: Form, look: _Look) -> list[bytes]:
    """Return the first whole records of a file, a line each; none where it cannot be read."""
    try:
        pieces = _plain(reader.stream(facts.path, size=facts.size, etag=facts.etag))
        if form.is_documents:
            pieces = _framed(pieces, form)
        body = b""
        for piece in pieces:
            body += piece
            if len(body) >= BYTES or body.count(b"\n") >= LINES:
                body = body[: body.rfind(b"\n") + 1]  # The rest is a part of a line.
                break
        lines = [line.removeprefix(SEPARATOR) for line in body.split(b"\n")]
        numbered = [
            (number, line)
            for number, line in enumerate(lines, 1)
            if line.strip() and not (form.skip and form.skip.holds(line))
        ][:LINES]
        file = reader.describe(facts.path)
        what = "record" if form.is_documents else "line"
        look.left_out += [f"{what} {n} of {file}" for n, line in numbered if not is_object(line)]
        return [line for _, line in numbered]
    except LakeError as error:
        look.trouble = look.trouble or str(error)
        return []


def _framed(pieces: Iterator[bytes], form: Form) -> Iterator[bytes]:
    from blizzard.worker.ndjson.framer import Framer  # noqa: PLC0415 - it brings a compiler along

    return Framer(form.records).lines(pieces)


def _plain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress by the first bytes: a configuration that is still written may say otherwise."""
    return decompress(*recognised(chunks, Codec.NONE))
