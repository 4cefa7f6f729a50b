"""`blizzard validate`: check a configuration, and on request its stores."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path

import typer

from blizzard.answers.status_reader import queues_of
from blizzard.cli.run.dry_run import explained
from blizzard.config import load as config
from blizzard.execute.spark.jvm import require_java
from blizzard.handoff.dead_letters import DeadLetterWriter, dlq_location_of
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from blizzard.model.stores import open_reader, sink_location
from blizzard.notices.listener import open_queue
from blizzard.table_rules import TableOf, not_among, tables_of
from lakebed.clock import Clock
from lakebed.config.files import options_of
from lakebed.config.loader import load_document, schema_text
from lakebed.config.models import Document
from lakebed.errors import ConfigInvalid, LakeError, ObjectMissing, StoreDenied
from lakebed.layout import CREATE_ONLY_PROOF, DELTA_LOG
from lakebed.storage.options import Location
from lakebed.storage.remote import local_path
from lakebed.storage.store import Store, prove
from lakebed.storage.store_errors import READ_ONLY
from lakebed.telemetry.events import code_of
from lakebed.terminal.call import DONE, Call, exit_code_of
from lakebed.types import CommitMode
from lakebed.units import in_words, plural
from penguin.config import load as penguin_config
from penguin.model.settings import PenguinSettings
from penguin.rules import refused_properties


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One thing that was checked."""

    check: str
    result: Verdict
    message: str
    code: str | None = None


def validate(
    call: Call,
    online: bool = False,
    json_schema: bool = False,
) -> None:
    """Check a configuration for both programs, and say what it would do.

    With --online it writes a small object to each remote store and removes it.

    Args:
        online: Also check Java, every store, and what a start would do.
        json_schema: Print the JSON Schema of configurations, for editors.
    """
    if json_schema:
        typer.echo(schema_text(), nl=False)
        return
    loaded = _loaded(call.files or [], call.folders or [])
    checks = (_offline(loaded), _online(call, loaded) if online else ())
    for row, failed in chain.from_iterable(checks):
        call.at_least(failed)
        call.show([f"{row.result.value:<8}{row.check}: {row.message}"], row)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A configuration as read by each program that it configures."""

    document: Document
    blizzard: BlizzardSettings | None
    penguin: PenguinSettings | None


def _loaded(files: list[Path], folders: list[Path]) -> _Loaded:
    """Read a configuration as each configured program would; raise the faults of both."""
    document = load_document(files, folders, os.environ, lambda _document: ())
    faults: list[str] = []
    blizzard, penguin = None, None
    if document.has_single_form or document.pipelines or not document.tables:
        try:
            blizzard = config.load(files, folders, os.environ)
        except ConfigInvalid as invalid:
            faults += invalid.faults
    if document.tables:
        try:
            penguin = penguin_config.load(files, folders, os.environ, refused_properties)
        except ConfigInvalid as invalid:
            faults += invalid.faults
    if faults:
        raise ConfigInvalid(list(dict.fromkeys(faults)))
    return _Loaded(document, blizzard, penguin)


Tried = tuple[CheckRow, int]
"""The result of a check, and its exit code."""


def _offline(loaded: _Loaded) -> Iterator[Tried]:
    """Yield the checks of the configuration alone."""
    document, settings = loaded.document, loaded.blizzard
    counts = [
        *([plural(len(settings.pipelines), "pipeline")] if settings else []),
        *([plural(len(document.tables), "table")] if document.tables else []),
    ]
    yield CheckRow(check="configuration", result=Verdict.OK, message=", ".join(counts)), DONE
    if settings is None:
        return
    for one in settings.pipelines:
        if one.sink.commit is CommitMode.PENGUIN and one.name not in settings.tables:
            message = _uncommitted(one, loaded.penguin)
            yield CheckRow(check=one.name, result=Verdict.WARNING, message=message), DONE


def _uncommitted(pipeline: PipelineSettings, penguin: PenguinSettings | None) -> str:
    """Return why penguin with this configuration would not commit a pipeline's files."""
    if penguin is None:
        return (
            f"nothing in this configuration commits {pipeline.sink.table_uri}: run penguin with a "
            "configuration that has it under tables, or set sink.commit: inline"
        )
    return not_among(pipeline, penguin.tables)


def _online(call: Call, loaded: _Loaded) -> Iterator[Tried]:
    """Yield the checks of Java and the stores."""
    if (settings := loaded.blizzard) is not None:
        yield _tried("java", partial(_java, settings))
        table_of = tables_of(settings, call.files or (), call.folders or ())
        options = options_of(call.files or (), call.folders or ())
        for each in settings.pipelines:
            yield _tried(each.name, partial(_start, each, settings, table_of, options))
            yield _tried(f"{each.name}, sink", partial(_writable, sink_location(each)))
            if each.dlq_path is not None:
                yield _tried(f"{each.name}, dead letter queue", partial(_letterbox, each))
            for queue in queues_of(each, open_queue):
                # Without it, files are found later, by listing.
                verdict = Verdict.OK if queue.error is None else Verdict.WARNING
                check = f"{each.name}, notifications"
                yield CheckRow(check=check, result=verdict, message=queue.sentence()), DONE
    for table in loaded.penguin.tables if loaded.penguin else ():
        place = Location(uri=table.table_uri, options=table.storage_options)
        yield _tried(f"table {table.name}", partial(_table, place))


def _tried(check: str, answer: Callable[[], str]) -> Tried:
    try:
        return CheckRow(check=check, result=Verdict.OK, message=answer()), DONE
    except LakeError as error:
        text = "; ".join(error.faults) if isinstance(error, ConfigInvalid) else str(error)
        found = CheckRow(check=check, result=Verdict.ERROR, message=text, code=code_of(error))
        return found, exit_code_of(error)


def _java(settings: BlizzardSettings) -> str:
    require_java(os.environ)
    return f"found; Spark will run on {settings.spark.master}"


def _start(
    each: PipelineSettings, settings: BlizzardSettings, table_of: TableOf, options: str
) -> str:
    """Return what the next batch would read; raise the error that would refuse a start."""
    found = explained(each, settings.pipelines, table_of)
    if found.refusal is not None:
        raise found.refusal
    read = {file.key: file.to_read for unit in found.units for file in unit.files}
    if read:
        size = in_words(sum(read.values()))
        return f"would read {plural(len(read), 'file')} ({size}) into {found.table_uri}"
    seen = sum(one.files for finding in found.findings.values() for one in finding.not_taken)
    if seen:
        dry_run = f"blizzard{options} --dry-run"
        return f"{plural(seen, 'file')} found, none new; {dry_run} lists the reasons"
    return "there are no files yet"


def _writable(place: Location) -> str:
    """Check that a table can be written to; on a local disk only by its permissions."""
    local = local_path(place.uri)
    if local is not None:
        return _writable_folder(local)
    prove(Store(place.uri, place.options), CREATE_ONLY_PROOF)
    return "can be written, and an object that exists is not overwritten by a create-only write"


def _writable_folder(folder: Path) -> str:
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise StoreDenied("is a file, not a folder", path=str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        read_only = bool(os.statvfs(there).f_flag & os.ST_RDONLY)
        why = READ_ONLY if read_only else "this user may not write there"
        raise StoreDenied(why, path=str(there))
    return "can be written" if there == folder.absolute() else "will be created"


def _letterbox(each: PipelineSettings) -> str:
    place = dlq_location_of(each)[0]
    local = local_path(place.uri)
    if local is not None:
        return _writable_folder(local)
    DeadLetterWriter(each, Clock(), lambda location: Store(location.uri, location.options)).check()
    return "can be written"


def _table(place: Location) -> str:
    try:
        log = open_reader(place).objects(f"{DELTA_LOG}/")
    except ObjectMissing:
        log = iter(())
    if next(log, None) is None:
        return "does not exist yet; penguin creates it with the first files"
    return "exists"
