"""`blizzard schema promote`: fill a column from `_rescued` for rows that are in the table."""

from collections.abc import Iterator
from typing import Annotated

import typer

from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.rows.rewriting import RewriteCommand, file_documents, schema_check
from blizzard.model.rewriting import ActiveFile
from blizzard.model.settings import PipelineSettings
from blizzard.rewrite.promote import PromotedField, PromotionPlan, plan_promotion
from blizzard.rewrite.promote import promote as append_promotion
from blizzard.rewrite.transaction import RewriteDone
from blizzard.table_rules import table_entry
from lakebed.terminal.call import Confirmed
from lakebed.units import plural

Promoted = RewriteDone[PromotionPlan]


def promote(
    call: PipelineCall,
    field: str,
    kind: Annotated[str | None, typer.Option("--type")] = None,
    yes: Confirmed = False,
) -> None:
    """Fill a column from _rescued for the rows that are in the table.

    The data files with such values are rewritten on Spark; penguin replaces them in one commit.

    Args:
        field FIELD: A column, or a field of a struct, such as user.plan.
        kind TYPE: The type of a column that is not declared.
    """
    wanted = PromotedField(field=field, type=kind)
    with call.one() as settings:
        command = RewriteCommand(call, settings, sure=yes)
        check = schema_check(settings, table_entry(settings, call.table_of))
        done = command.run(
            lambda reader: plan_promotion(reader, settings, wanted, check),
            lambda store, runner, _progress: append_promotion(
                store, settings, wanted, check, runner, clock=call.around.clock
            ),
        )
    call.show(_text(command, done), promotion_document(settings, done))
    call.fail_if(done.found.files and not yes)


def promotion_document(settings: PipelineSettings, done: Promoted) -> dict[str, object]:
    """Return what was rewritten or, without --yes, which files would be searched."""
    found, files = done.found, _files(done)
    return {
        **document_of(settings),
        "field": found.target.shown,
        "type": found.target.field.shown,
        "entry": done.entry,
        "files": file_documents(files),
        "rows": sum(one.rows or 0 for one in files),
        "bytes": sum(one.size for one in files),
        "promoted": sum(one.taken for one in done.rewritten) if done.rewritten else None,
        "left": sum(one.left for one in done.rewritten) if done.rewritten else None,
        "waiting_entries": found.waiting,
    }


def _files(done: Promoted) -> tuple[ActiveFile, ...]:
    if not done.rewritten:
        return done.found.files
    return tuple(one.old for one in done.rewritten if one.new)


def _text(command: RewriteCommand, done: Promoted) -> Iterator[str]:
    found = done.found
    yield f"pipeline {command.settings.name}: {found.target.shown}, {found.target.field.shown}"
    if not found.files:
        yield "  no file of the table has values of it in _rescued"
    elif command.sure:
        yield from _result(command, done)
    else:
        yield from command.file_lines(_files(done), "rewritten")
        if found.unknown:
            some = plural(len(found.unknown), "of them was", "of them were")
            yield f"  {some} written by another program and may have no such value"
    if found.waiting and not command.sure:
        entries = plural(found.waiting, "entry is", "entries are")
        yield f"  {entries} not committed yet; rows in there are not included"
    if found.files and not command.sure:
        yield "add --yes to do it"


def _result(command: RewriteCommand, done: Promoted) -> Iterator[str]:
    left = sum(one.left for one in done.rewritten)
    if done.entry is None:
        yield "  nothing was changed: no value in _rescued fits the column"
    else:
        yield from command.file_lines(_files(done), "rewritten")
        taken = sum(one.taken for one in done.rewritten)
        yield f"  {plural(taken, 'value')} moved from _rescued to the column"
    if left:
        values = plural(left, "value")
        yield f"  {values} left in _rescued: of another type, or the column has one"
    yield from command.committed(done.entry, "replaces the files")
