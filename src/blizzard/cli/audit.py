"""`blizzard audit`: prove from metadata that a table holds what its journals say."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer

from blizzard.cli.call import PipelineCall
from blizzard.handoff.dead_letters import beside, is_in_queue, queue_at
from blizzard.inspect.audit.findings import Audit, FilePlace
from blizzard.inspect.audit.table import audit_table
from blizzard.model.settings import PipelineSettings
from blizzard.model.stores import OpenReader, open_reader, sink_location
from lakebed import layout
from lakebed.deltalog import tables
from lakebed.documents.losses import Accepted
from lakebed.documents.reading import encode_document
from lakebed.errors import LakeError, ObjectMissing, Whose
from lakebed.locations import written_out
from lakebed.storage.options import Location
from lakebed.storage.remote import local_path
from lakebed.storage.store import AlreadyThere, Store
from lakebed.telemetry.events import first_of
from lakebed.terminal.call import DONE, FAILED, USAGE, reading, refuse
from lakebed.terminal.console import FEW, Line, Table, picked
from lakebed.units import plural

IN_WORDS = {
    FilePlace.IN_TABLE: "in the table as they were written",
    FilePlace.REPLACED: "replaced by a promotion, retraction, erasure or compaction",
    FilePlace.RETRACTED: "taken out by a retraction or erasure",
    FilePlace.REMOVED_BY_OTHERS: "removed or rewritten by other writers",
    FilePlace.UNKNOWN: "removed or rewritten by versions that are no longer in the log",
    FilePlace.WAITING: "waiting for {committer}",
    FilePlace.HELD: "held by penguin",
    FilePlace.GIVEN_UP: "given up: discarded, lost, or read again",
    FilePlace.AWAITING_REDO: "taken out by penguin fsck, waiting for blizzard redo",
    FilePlace.FORGOTTEN: "left out by penguin forget",
    FilePlace.NOWHERE: "nowhere",
}

SOURCE_FILES = "source files that are not in the table, or were taken out of it; see blizzard files"


def audit(
    call: PipelineCall,
    deep: bool = False,
    version: Annotated[int | None, typer.Option("--accept")] = None,
    reason: str | None = None,
) -> None:
    """Prove from metadata that each table holds what its journals say, or show the differences.

    One listing shows whether every data file is there. `blizzard files` counts the source files
    that are not in the table.

    Exits with 0 if everything is accounted for, 1 if there are differences, 2 if it cannot tell.

    Args:
        deep: Also read the footer of every data file.
        version VERSION: Accept that this version of the table removed rows, as a DELETE does: they
            no longer count as missing. Needs --reason.
        reason TEXT: Why the rows are gone.
    """
    tables = {
        written_out(settings.sink.table_uri): sink_location(settings)
        for settings in call.pipelines()
    }
    if (version is None) != (reason is None) or (reason is not None and not reason.strip()):
        refuse("--accept VERSION and --reason TEXT belong together")
    if version is not None and len(tables) > 1:
        refuse("there are several tables; name the pipeline of one with --pipeline")
    for uri, place in tables.items():
        own = [one for one in call.loaded.pipelines if written_out(one.sink.table_uri) == uri]
        with call.guard(place.uri, _exit_code):
            with reading(place.uri, call.output):
                found = audit_of(place, deep=deep, pipelines=own)
            if version is not None and reason is not None:
                _accept(place, found, version, reason, call.around.clock.now())
                found = audit_of(place, deep=deep, pipelines=own)
            lines = _text(place.uri, found, committer_of(own))
            call.show(lines, audit_document(place.uri, found))
            call.at_least(DONE if found.is_balanced else FAILED)


def _exit_code(error: LakeError) -> int:
    """Return 2 if it is unknown whether a table is balanced."""
    return FAILED if isinstance(error, NothingToAccept) else USAGE


def _accept(place: Location, found: Audit, version: int, reason: str, at: datetime) -> None:
    """Accept exactly the rows that a version removed according to an audit."""
    loss = next((one for one in found.losses if one.version == version), None)
    if loss is None:
        raise NothingToAccept(
            f"version {version} has no difference of kind rows_removed, nor one of kind "
            "file_removed made by penguin fsck, or it is accepted already; blizzard audit shows "
            "the versions with one",
            path=place.uri,
        )
    document = replace(loss, reason=reason, created=at.isoformat())
    accept(Store(place.uri, place.options), document)


def audit_of(
    table: Location,
    *,
    deep: bool = False,
    pipelines: Sequence[PipelineSettings] = (),
    opens: OpenReader = open_reader,
) -> Audit:
    """Audit the table at a location; raise if its folder does not exist.

    Dead letters are read with the storage options of the pipelines that wrote them.
    """
    folder = local_path(table.uri)
    if folder is not None and not folder.exists():
        raise ObjectMissing("there is no table yet: nothing has been written here", path=table.uri)
    return audit_table(
        opens(table),
        lambda: tables.whole_log(table.uri, table.options),
        lambda uri: opens(_letters_at(table, uri, pipelines)),
        deep=deep,
    )


def not_covered(found: Audit) -> tuple[str, ...]:
    """List what a verdict leaves out: files that never reached the table, and other places."""
    waiting, names = found.totals.bad_lines_waiting, first_of(sorted(found.places.repaired))
    outside = f"{plural(found.elsewhere, 'data file')} outside the table's directory"
    return (
        SOURCE_FILES,
        *([f"{plural(waiting, 'bad line')} in quarantine; see blizzard dlq list"] * bool(waiting)),
        *(
            [f"taken out by penguin fsck and not read again: {names}; see blizzard redo"]
            * bool(names)
        ),
        *([outside] * bool(found.elsewhere)),
    )


def _letters_at(table: Location, uri: str, pipelines: Sequence[PipelineSettings]) -> Location:
    queues = (settings for settings in pipelines if is_in_queue(settings, uri))
    owner = next(queues, None)
    return beside(table, uri) if owner is None else queue_at(owner, uri)


def audit_document(uri: str, found: Audit) -> dict[str, object]:
    """Return an audit with the keys documented in docs/answers.md."""
    lines = (
        "lines blank filtered quarantined bad_lines_waiting replayed filtered_on_replay discarded"
    )
    counts = f"source_files {lines} rows"
    return {
        "table_uri": uri,
        **picked(found, "balanced=is_balanced deep version history_since"),
        **picked(
            found.totals,
            f"journals entries waiting_entries=waiting source_files {counts} discarded rows",
        ),
        "named": {place.value: found.places.amounts[place] for place in IN_WORDS},
        **picked(found, "active by_others adopted unknown others"),
        "accepted": [
            {
                **picked(one, "version operation writer rows"),
                "files": len(one.files),
                **picked(one, "reason at=created"),
                "applies": one.version in found.applied,
            }
            for one in found.accepted
        ],
        "differences": found.differences,
        "not_covered": not_covered(found),
    }


def committer_of(pipelines: Sequence[PipelineSettings]) -> str:
    """Return which program commits: penguin, unless every pipeline of the table commits inline."""
    programs = {one.sink.committer for one in pipelines}
    return programs.pop() if len(programs) == 1 else "penguin"


def _text(uri: str, found: Audit, committer: str) -> Iterator[Line]:
    """Yield an audit for a person; `committer` is the program that commits waiting entries."""
    at = "no version yet" if found.version is None else f"version {found.version}"
    yield f"table {uri}: {at}"
    yield from _books(found, committer)
    yield _files(found, committer)
    if found.others:
        yield f"  {plural(len(found.others), 'commit')} of other writers (see penguin history)"
    if found.history_since:
        yield (
            f"  the log's history begins with version {found.history_since}: of that version and "
            "earlier ones only the result is known"
        )
    for loss in found.accepted:
        other = any(one.version == loss.version for one in found.losses)
        gone = "other rows are missing now" if other else "none of it is missing now"
        but = "" if loss.version in found.applied else f"; {gone}"
        files = plural(len(loss.files), "file")
        yield f"  accepted: {loss.message} of {files}: {loss.reason}{but}"
    yield from (f"  {one.kind}: {one.message}" for one in found.differences[:FEW])
    if len(found.differences) > FEW:
        kinds = Counter(one.kind.value for one in found.differences[FEW:])
        rest = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        yield f"  ... and {rest}; --output json has them all"
    if found.is_balanced:
        deeper = "" if found.deep else " (--deep also reads footers)"
        verdict = "the table holds what the journals say, and every data file is there"
        yield f"balanced: {verdict}{deeper}"
    else:
        yield f"not balanced: {plural(len(found.differences), 'difference')}"
    yield from (f"  not covered: {each}" for each in not_covered(found))


def _books(found: Audit, committer: str) -> Iterator[str]:
    totals = found.totals
    waiting = f", {totals.waiting:,} of them waiting for {committer}" if totals.waiting else ""
    entries, journals = (
        plural(totals.entries, "entry", "entries"),
        plural(totals.journals, "journal"),
    )
    yield f"  {entries} of {journals}{waiting}"
    yield (
        f"  {plural(totals.source_files, 'source file')}: {plural(totals.lines, 'line')} = "
        f"{plural(totals.rows, 'row')} + {totals.blank:,} blank + {totals.filtered:,} filtered + "
        f"{totals.quarantined:,} quarantined"
    )
    if totals.quarantined:
        on_replay = f"{totals.filtered_on_replay:,} filtered, " if totals.filtered_on_replay else ""
        yield (
            f"  bad lines: {totals.bad_lines_waiting:,} waiting, {totals.replayed:,} replayed, "
            f"{on_replay}{totals.discarded:,} discarded"
        )


def _files(found: Audit, committer: str) -> Table:
    amounts = [
        *(
            (words.format(committer=committer), found.places.amounts[at])
            for at, words in IN_WORDS.items()
        ),
        ("in the table, by other writers", found.by_others),
        ("in the table, of other programs, committed by penguin", found.adopted),
        ("in the table, by versions that are no longer in the log", found.unknown),
    ]
    some = [(words, amount) for words, amount in amounts if amount.files]
    return Table(
        ("data files", ">files", ">rows"),
        [
            (words, amount.files, amount.rows)
            for words, amount in (*some, ("in the table, all", found.active))
        ],
    )


class NothingToAccept(LakeError, code="nothing_to_accept", whose=Whose.USER):
    """The version removed no rows that an audit reports as missing."""


def accept(store: Store, document: Accepted) -> None:
    """Record the accepted losses of a version; an existing document is never replaced."""
    path, body = layout.accepted(document.version), encode_document(document)
    # An existing one may be ours, if the store's client lost the response.
    if isinstance(store.create(path, body), AlreadyThere) and store.get(path) != body:
        raise NothingToAccept(
            f"version {document.version} was accepted before, with other rows or files; if that "
            "no longer holds, delete the document and accept the version again",
            path=store.describe(path),
        )
