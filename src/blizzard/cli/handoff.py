"""`blizzard handoff`: change how files are handed off to penguin."""

from collections.abc import Iterable, Iterator
from functools import partial

from blizzard.cli.call import PipelineCall
from blizzard.handoff.publish import LastCommitted, Uncommitted, set_handoff
from blizzard.model.settings import PipelineSettings, SinkSettings
from lakebed.deltalog import tables
from lakebed.locations import ByPlace, place_of
from lakebed.storage.store import Store
from lakebed.terminal.program import program
from lakebed.types import Handoff
from lakebed.units import entries_from

app = program(no_args_is_help=True)


@app.callback()
def handoff(_call: PipelineCall) -> None:
    """Change how files are handed off to penguin."""


@app.command(name="set")
def handoff_set(
    call: PipelineCall,
    handoff: Handoff,
) -> None:
    """Change the hand-off of every table in the configuration.

    A table is left as it is while an entry of its journals is not committed.

    Args:
        handoff MODE: How penguin finds new data files.
    """
    for sink in _tables(call.pipelines()):
        with call.guard(sink.table_uri):
            store = Store(sink.table_uri, sink.storage_options, make_folder=True)
            _show(call, sink, handoff, set_handoff(store, handoff, _committed(sink)))


Changed = bool | tuple[Uncommitted, ...]
"""Whether a hand-off was changed, or the entries that must be committed first."""


def _show(call: PipelineCall, sink: SinkSettings, handoff: Handoff, done: Changed) -> None:
    is_done = not isinstance(done, tuple)
    document = {"table_uri": sink.table_uri, "handoff": handoff, "done": is_done}
    call.show(_text(sink, handoff, done), document)
    call.fail_if(not is_done)


def _text(sink: SinkSettings, handoff: Handoff, done: Changed) -> Iterator[str]:
    if isinstance(done, tuple):
        yield (
            f"{sink.table_uri}: the hand-off was not changed: these entries are not committed yet; "
            "have them committed (penguin --once, or blizzard --once where sink.commit is inline) "
            "and try again"
        )
        for one in done:
            yield f"  pipeline {one.pipeline}: {entries_from(one.first, one.last)}"
        return
    when = "from now on" if done else "already"
    yield f"{sink.table_uri}: files are handed off by {handoff.value} {when}"
    if sink.handoff is not handoff:
        yield f"  now set sink.handoff: {handoff.value} in the configuration"


def _tables(pipelines: Iterable[PipelineSettings]) -> list[SinkSettings]:
    """Return the tables of pipelines, each once."""
    found: ByPlace[SinkSettings] = ByPlace()
    for pipeline in pipelines:
        found.setdefault(place_of(pipeline.sink.table_uri), pipeline.sink)
    return list(found.values())


def _committed(sink: SinkSettings) -> LastCommitted:
    return partial(tables.last_committed, sink.table_uri, sink.storage_options)
