"""`blizzard journal`: the last entries, one entry, or a new journal."""

from typing import Annotated, Any

import typer

from blizzard.answers.entries import Kept, entry_of, last_entries
from blizzard.cli.journal import entries
from blizzard.cli.journal.new import begin_anew
from blizzard.cli.output import One, chosen, load, open_reader, the_one, written_before
from blizzard.cli.surroundings import Surroundings
from blizzard.log_questions import asks_fates
from blizzard.model.locations import sink_location
from blizzard.model.settings import PipelineSettings
from lakebed.errors import ObjectMissing
from lakebed.terminal.arguments import (
    DONE,
    FAILED,
    USAGE,
    Files,
    Folders,
    ForwardingGroup,
    Outcome,
    Output,
    Program,
    Shape,
    Sure,
)
from lakebed.terminal.console import print_line, print_lines, say_error


class _Journal(ForwardingGroup):
    """The commands of `blizzard journal`, where `journal 7` is short for `journal show 7`."""

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 - typer's own types are private
        """Find the command; a number is the entry to show."""
        return super().resolve_command(ctx, ["show", *args] if args[0].isdecimal() else args)


app = Program(cls=_Journal)

Limit = Annotated[int, typer.Option(min=1, metavar="COUNT", help="How many entries to list.")]


@app.callback(invoke_without_command=True)
def journal(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    limit: Limit = 20,
    output: Shape = Output.TEXT,
) -> None:
    """Look at the journal, which has a numbered entry for each batch, or begin a new one.

    Without a command this is `list`; with the number of an entry it is `show`.
    """
    if context.invoked_subcommand is None:
        journal_list(files, folders, pipeline, limit, output)


@app.command(name="list")
def journal_list(
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    limit: Limit = 20,
    output: Shape = Output.TEXT,
) -> None:
    """List the last entries of the journals, the newest first."""
    outcome = Outcome()
    for settings in chosen(load(files, folders), pipeline):
        with outcome.of(settings.name):
            found = _last_entries(settings, limit)
            if not all(kept.follows for kept in found):
                outcome.at_least(FAILED)
            if output is Output.JSON:
                print_lines(map(entries.row, found))
            else:
                entries.show_list(settings.name, found)
    raise typer.Exit(outcome.code)


@app.command(name="show")
def journal_show(
    number: Annotated[
        int, typer.Argument(metavar="N", min=0, help="The number of the entry.", show_default=False)
    ],
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
    output: Shape = Output.TEXT,
) -> None:
    """Show everything that one entry says.

    `blizzard journal N` does the same.
    """
    settings = the_one(load(files, folders), pipeline)
    outcome = Outcome()
    with outcome.of(settings.name), written_before(settings):
        reader = open_reader(sink_location(settings))
        kept = entry_of(reader, settings.name, number, asks_fates(settings))
        outcome.at_least(DONE if kept.follows else FAILED)
        if output is Output.JSON:
            print_line(entries.document(kept))
        else:
            entries.show(kept)
    raise typer.Exit(outcome.code)


@app.command(name="new")
def journal_new(
    context: typer.Context,
    files: Files = None,
    folders: Folders = None,
    pipeline: One = None,
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
    yes: Sure = False,
    output: Shape = Output.TEXT,
) -> None:
    """Begin a new journal.

    This is for a journal that was lost, or a pipeline that was renamed.
    """
    settings = load(files, folders)
    if (old is None) == (not empty):
        say_error("error: journal new needs either --from OLD or --empty")
        raise typer.Exit(USAGE)
    clock = Surroundings.of(context).clock
    one = the_one(settings, pipeline)
    raise typer.Exit(begin_anew(one, old, yes=yes, output=output, clock=clock))


def _last_entries(settings: PipelineSettings, limit: int) -> list[Kept]:
    try:
        reader = open_reader(sink_location(settings))
        return last_entries(reader, settings.name, limit, asks_fates(settings))
    except ObjectMissing:
        return []  # The table's folder does not exist yet, so neither does a journal.
