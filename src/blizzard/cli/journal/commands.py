"""`blizzard journal`: the last entries, one entry, or a new journal."""

from typing import Annotated, Any

import typer

from blizzard.answers.entries import Kept, entry_of, last_entries
from blizzard.cli.call import PipelineCall
from blizzard.cli.journal import entries
from blizzard.cli.journal.new import begin_anew
from blizzard.model.locations import open_reader, sink_location
from blizzard.model.settings import PipelineSettings
from blizzard.pipeline_log import PipelineLog
from lakebed.errors import ObjectMissing
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.program import ForwardingGroup, Program


class _Journal(ForwardingGroup):
    """The commands of `blizzard journal`, where `journal 7` is short for `journal show 7`."""

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 - typer's own types are private
        """Find the command; a number is the entry to show."""
        return super().resolve_command(ctx, ["show", *args] if args[0].isdecimal() else args)


app = Program(cls=_Journal)

Limit = Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many entries to list.")]


@app.callback(invoke_without_command=True)
def journal(call: PipelineCall, limit: Limit = 20) -> None:
    """Look at the journal, which has a numbered entry for each batch, or begin a new one.

    Without a command this is `list`; with the number of an entry it is `show`.
    """
    if not call.has_subcommand:
        journal_list(call, limit)


@app.command(name="list")
def journal_list(call: PipelineCall, limit: Limit = 20) -> None:
    """List the last entries of the journals, the newest first."""
    for settings in call.pipelines():
        with call.guard(settings.name):
            found = _last_entries(settings, limit)
            call.show(entries.list_lines(settings.name, found), *map(entries.summary, found))
            call.fail_if(not all(kept.follows for kept in found))


@app.command(name="show")
def journal_show(
    call: PipelineCall,
    number: Annotated[
        int, typer.Argument(metavar="N", min=0, help="The number of the entry.", show_default=False)
    ],
) -> None:
    """Show everything that one entry says.

    `blizzard journal N` does the same.
    """
    with call.one() as settings:
        reader = open_reader(sink_location(settings))
        kept = entry_of(reader, settings.name, number, PipelineLog(settings).fates)
        call.show(entries.entry_lines(kept), entries.document(kept))
        call.fail_if(not kept.follows)


@app.command(name="new")
def journal_new(
    call: PipelineCall,
    old: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="OLD", help="Take over what the journal of pipeline OLD knows."
        ),
    ] = None,
    empty: Annotated[
        bool,
        typer.Option("--empty", help="Start from nothing: every source file is ingested again."),
    ] = False,
    yes: Confirmed = False,
) -> None:
    """Begin a new journal.

    This is for a journal that was lost, or a pipeline that was renamed.
    """
    if (old is None) == (not empty):
        refuse("journal new needs either --from OLD or --empty")
    with call.one() as settings:
        begin_anew(call, settings, old, yes=yes)


def _last_entries(settings: PipelineSettings, limit: int) -> list[Kept]:
    try:
        reader = open_reader(sink_location(settings))
        return last_entries(reader, settings.name, limit, PipelineLog(settings).fates)
    except ObjectMissing:
        return []  # The table's folder does not exist yet, so neither does a journal.
