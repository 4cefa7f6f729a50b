"""`blizzard init`: sample files, and write a configuration for them."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from blizzard.config import overlaps
from blizzard.discover.finding import Reason
from blizzard.inspect import sample
from blizzard.inspect.guess.fields import GuessedColumn, columns_in, fields_of
from blizzard.inspect.guess.forms import Records, records_of
from blizzard.inspect.sample import Sample
from blizzard.inspect.written import pipeline_lines, rotation_remark
from blizzard.model.source.form import renamed, split
from lakebed.config.faults import dotted
from lakebed.config.loader import schema_text
from lakebed.config.models import Document
from lakebed.config.section import location, source_location
from lakebed.errors import LakeError
from lakebed.storage.options import StorageOptions
from lakebed.storage.remote import local_path
from lakebed.terminal.call import FAILED, Output, complain, exit_code_of, reading, refuse
from lakebed.terminal.console import print_error
from lakebed.units import in_words, plural

STANDARD_OUTPUT = "-"
SCHEMA = "blizzard.schema.json"
"""Names the schema beside a configuration for editors such as VS Code."""
EDITOR_LINE = f"# yaml-language-server: $schema={SCHEMA}\n"
MOST_NAMED = 20
"""The most files to name in warnings."""
WHY_NOT = {
    Reason.NOT_NDJSON: "it is not named like a file of JSON records",
    Reason.NOT_MATCHED: "it is not named like most files here",
    Reason.TEMPORARY: "it is named like an unfinished file",
}

SampleSize = Annotated[
    int,
    typer.Option(
        "--sample", metavar="BYTES", min=1, help="How much to read of all files together."
    ),
]


def init(
    uri: str,
    table: str | None = None,
    output: str = "pipeline.yaml",
    most: SampleSize = sample.BYTES,
    inline: bool = False,
    force: bool = False,
) -> None:
    """Write a configuration for the files at a location.

    Credentials for a store come from the environment. The JSON Schema of configurations is written
    beside it, for editors.

    Args:
        uri URI: The location of the files: a folder, a pattern or a file.
        table URI: The location of the table; by default beside the files.
        output FILE: The file to write; - is standard output.
        inline: Let blizzard make the commits, without penguin.
        force: Replace an existing file.
    """
    source = _checked("URI", uri, source_location)
    goal = None if table is None else _checked("--table", table, location)
    file = None if output == STANDARD_OUTPUT else Path(output)
    if file is not None and not force:
        _require_none(file)
    try:
        found, read = read_samples(source, most)
    except LakeError as error:
        complain(error, "init")
        raise typer.Exit(exit_code_of(error)) from None
    files, sink = (_absolute(one) for one in (found.path, goal or _beside(found.path)))
    _require_apart(files, sink)
    partition = sample.partition_template(found.names)
    columns = columns_in(read.records, without=sample.partition_keys(partition))
    lines = pipeline_lines(
        source=files,
        table=sink,
        form=read.form,
        beside=read.beside,
        columns=columns,
        sampled=_sampled(found),
        partition=partition,
        renamed=renamed(found.names),
        inline=inline,
        bad_lines=read.bad_lines,
    )
    text = "".join(f"{line}\n" for line in lines)
    if file is None:
        typer.echo(text, nl=False)
    else:
        _write(file, EDITOR_LINE + text, force=force)
        _write(file.with_name(SCHEMA), schema_text(), force=True)
    _report(found, read, columns, file, inline=inline)


def read_samples(uri: str, most: int, output: Output = Output.TEXT) -> tuple[Sample, Records]:
    """Return samples of the files at a location, with their records; warn about unreadable ones."""
    with reading(uri, output):
        found = sample.take(uri, StorageOptions(), most)
    read = records_of(found.files)
    warn((*found.unread, *read.strange))
    if not read.records:
        why = "no file here has JSON objects that can be read"
        if not all(file.whole for file in found.files):
            why = f"no JSON object ends within {in_words(most)}; --sample BYTES reads more"
        raise sample.NothingToSample(why, path=uri)
    warn(f"{name} is left out: {WHY_NOT[reason]}" for name, reason in found.others)
    if moving := renamed(found.names):
        warn([rotation_remark(moving)])
    return found, read


def warn(troubles: Iterable[str]) -> None:
    """Warn about the first of many files on standard error, and count the others."""
    every = list(troubles)
    for trouble in every[:MOST_NAMED]:
        print_error(f"warning: {trouble}")
    if len(every) > MOST_NAMED:
        print_error(f"warning: {plural(len(every) - MOST_NAMED, 'other file')} likewise")


def _checked(what: str, text: str, check: Callable[[str], str]) -> str:
    try:
        return check(text)
    except ValueError as wrong:
        refuse(f"{what}: {wrong}")


def _require_apart(source: str, table: str) -> None:
    """Refuse files in the table, or the table among the files, as every other command would."""
    document = Document.model_validate({"source": {"path": source}, "sink": {"path": table}})
    faults = [f"{dotted(one.path)}: {one.message}" for one in overlaps.faults(document)]
    if faults:
        refuse("\nerror: ".join(faults))


def _absolute(uri: str) -> str:
    """Return a location that does not depend on the current folder."""
    return uri if "://" in uri else os.path.abspath(uri)  # noqa: PTH100 - patterns are no paths


def _beside(source: str) -> str:
    """Return the default location of the table: a folder beside that of the files."""
    local = local_path(source)
    folder = source if local is not None and local.is_dir() else split(source)[0]
    if local is not None and local.is_file():
        folder = str(local.parent)
    bare = _absolute(folder).rstrip("/")
    _scheme, _, path = bare.partition("://")
    is_bucket = bool(path) and "/" not in path
    return f"{bare}/table" if is_bucket or not bare else f"{bare}_table"


def _require_none(file: Path) -> None:
    if file.exists():
        refuse(f"{file} exists; --force replaces it, --output FILE writes another")


def _write(file: Path, text: str, *, force: bool) -> None:
    """Write a file; replace another one only with `force`."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as to:
            to.write(text)
    except FileExistsError:
        _require_none(file)
    except OSError as trouble:
        refuse(f"cannot write {file}: {trouble.strerror}", FAILED)


def _sampled(found: Sample) -> str:
    count = len(found.files)
    if count == len(found.names) and found.all_listed:
        return f"{plural(count, 'file')}"
    there = f"{'' if found.all_listed else 'more than '}{len(found.names):,}"
    return f"{count:,} of {there} files"


def _report(
    found: Sample,
    read: Records,
    columns: tuple[GuessedColumn, ...],
    file: Path | None,
    *,
    inline: bool,
) -> None:
    """Print the columns and what to run next; on stderr if stdout has the configuration."""
    to = sys.stderr if file is None else sys.stdout
    size = in_words(sum(len(each.data) for each in found.files))
    known = fields_of(columns)
    nested = sum(1 for field in known if field.is_nested)
    untyped = len(columns) - len(known)
    of = f", {nested} of them nested" if nested else ""
    what = (
        f"{plural(len(known), 'column')}{of}, from {plural(len(read.records), 'record')} ({size})"
    )
    to.write(f"{'' if file is None else f'{file}: '}{what} of {_sampled(found)}\n")
    if untyped:
        to.write(f"{plural(untyped, 'field has', 'fields have')} no column yet: see the comments\n")
    name = "FILE" if file is None else shlex.quote(str(file))
    to.write(
        f"next{', once it is in a file' if file is None else ''}:\n"
        f"  blizzard -c {name} --dry-run    # what a run would do\n"
        f"  blizzard -c {name} --once       # read the files{' and commit' if inline else ''}\n"
    )
    if not inline:
        to.write(f"  penguin -c {name} --once        # commit what was read\n")
