"""`blizzard source`: record in the journal that the files of a source have moved."""

from collections.abc import Callable, Iterator

from blizzard.cli.call import PipelineCall, report_event
from blizzard.journal.checkpoint import past_damage, read_ledger
from blizzard.journal.lease import refuse_while_alive_here, this_machine, turn_of
from blizzard.journal.ledger import Ledger
from blizzard.model.settings import PipelineSettings, SourceSettings
from blizzard.model.stores import open_reader, sink_location, source_location
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.new_journal import Compared, compare, move
from lakebed.clock import Clock
from lakebed.storage.store import Reader, Store
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import picked
from lakebed.terminal.program import program
from lakebed.units import plural

app = program(no_args_is_help=True)

Ask = Callable[[Ledger], Compared | None]


@app.callback()
def source(_call: PipelineCall) -> None:
    """Record that the files of a source have moved."""


@app.command(name="set")
def source_set(
    call: PipelineCall,
    name: str,
    same_files: bool = False,
    yes: Confirmed = False,
) -> None:
    """Continue with a source whose files have moved.

    The configuration must already have the new path.

    Args:
        name NAME: The name of the source in the configuration.
        same_files: Confirm that the new path has the files that were read at the old one.
    """
    with call.one() as settings:
        source = next((each for each in settings.sources if each.name == name), None)
        if source is None:
            names = ", ".join(each.name for each in settings.sources)
            refuse(f"there is no source {name!r}; the sources are: {names}")
        if not same_files:
            refuse(
                "add --same-files if the files that were read are now there; otherwise give the "
                "source another name in the configuration"
            )
        found = _moved(settings, source, yes=yes)
    document = {
        "pipeline": settings.name,
        "source": source.name,
        "uri": source.uri,
        "done": yes and found is not None,
        **picked(found, "before same_files=same changed_files=changed new_files=new"),
    }
    call.show(_text(settings.name, source, found, done=yes), document)
    call.fail_if(found is not None and not yes)


def _moved(settings: PipelineSettings, source: SourceSettings, *, yes: bool) -> Compared | None:
    """Compare the files; with --yes, unless they contradict the move, record the new location."""
    where, clock = sink_location(settings), Clock()
    reader, place = open_reader(where), open_reader(source_location(source))
    refuse_while_alive_here(reader, settings.name, this_machine())
    found = _asked(reader, settings, lambda history: compare(source, history, place))
    if not yes or found is None:
        return found
    store, run = Store(where.uri, where.options), str(clock.fresh_id())
    with turn_of(store, settings.name, run, clock=clock, emit=report_event):
        return _asked(
            store, settings, lambda history: move(store, source, history, place, clock=clock)
        )


def _asked(store: Reader, settings: PipelineSettings, ask: Ask) -> Compared | None:
    """Ask with the ledger of the journal, rebuilding damaged segments from the entries."""
    history = read_ledger(store, settings.name, rejections=PipelineLog(settings).rejections)
    return past_damage(history, lambda: ask(history))


def _text(
    pipeline: str, source: SourceSettings, found: Compared | None, *, done: bool
) -> Iterator[str]:
    if found is None:
        yield f"pipeline {pipeline}: source {source.name} is already read from {source.uri}"
        return
    yield f"pipeline {pipeline}: source {source.name}: {found.before} -> {found.now}"
    yield f"  {plural(found.same, 'file')} with known names and sizes: read before, not again"
    if found.in_part:
        yield f"  of these, {plural(found.in_part, 'file')} read in part: the rest is read next"
    if found.changed:
        yield f"  {plural(found.changed, 'file')} with known names and other sizes: changed"
    yield f"  {plural(found.new, 'file')} with new names: read by the next batches"
    if done:
        yield "done: blizzard can be started again"
    else:
        yield "nothing was done. Stop every blizzard of this pipeline, then add --yes to do it"
