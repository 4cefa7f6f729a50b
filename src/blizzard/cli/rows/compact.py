"""`blizzard compact`: merge small data files."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from blizzard.cli.call import PipelineCall, document_of
from blizzard.cli.rows.rewriting import RewriteCommand
from blizzard.model.settings import PipelineSettings
from blizzard.plan.trigger import MergeGroup
from blizzard.rewrite.compact import CompactionPlan, plan_compaction
from blizzard.rewrite.compact import compact as put_together
from blizzard.rewrite.transaction import RewriteDone
from lakebed.terminal.call import Confirmed
from lakebed.terminal.console import first, picked
from lakebed.units import in_words, is_are, plural

Compacted = RewriteDone[CompactionPlan]


def compact(
    call: PipelineCall,
    at_once: Annotated[bool, typer.Option("--now")] = False,
    yes: Confirmed = False,
) -> None:
    """Merge the small data files of each partition into files of about file_size_mb.

    They are rewritten on Spark; no row changes, and penguin makes one commit.

    Args:
        at_once: Also merge files younger than quiet_secs.
    """
    with call.one() as named:
        settings = _without_quiet(named) if at_once else named
        clock = call.around.clock
        command = RewriteCommand(call, settings, sure=yes)
        done = command.run(
            lambda reader: plan_compaction(reader, settings, now=clock.now()),
            lambda store, runner, progress: put_together(
                store, settings, runner, clock=clock, progress=progress.rewritten
            ),
        )
    call.show(_text(command, done), compaction_document(settings, done))
    call.fail_if(done.failed or done.conflict or (done.found.groups and not yes))


def _without_quiet(settings: PipelineSettings) -> PipelineSettings:
    """Return settings that take files of any age."""
    now = replace(settings.sink.compact, quiet=0.0)
    return replace(settings, sink=replace(settings.sink, compact=now))


def _failures(done: Compacted) -> list[str]:
    return [f"{one.message} [{one.code}]" for one in done.failed]


def compaction_document(settings: PipelineSettings, done: Compacted) -> dict[str, object]:
    """Return the merged files or, without --yes, those that would be merged."""
    return {
        **document_of(settings),
        **picked(done, "entry small_files=found.small young_files=found.young"),
        "groups": [
            {
                "partition": dict(group.files[0].partition),
                "files": len(group.files),
                **picked(group, "rows bytes=size"),
            }
            for group in done.found.groups
        ],
        "written": [file.filename for one in done.replaced for file in one.new],
        "failed": _failures(done),
        "conflict": done.conflict,
    }


def _text(command: RewriteCommand, done: Compacted) -> Iterator[str]:
    settings, groups = command.settings, done.found.groups
    if not groups:
        yield f"{settings.name}: {_why_nothing(settings, done)}"
        return
    if command.sure:
        files = plural(sum(len(one.old) for one in done.replaced), "data file")
        yield f"{settings.name}: {files} became {sum(len(one.new) for one in done.replaced):,}"
    else:
        files = plural(sum(len(one.files) for one in groups), "data file")
        size = in_words(sum(one.size for one in groups))
        yield f"{settings.name}: {files} ({size}) would become {len(groups):,}"
    yield from first([_group_line(one) for one in groups])
    yield from (f"  not compacted: {failed}" for failed in _failures(done))
    if done.conflict is not None:
        yield f"  abandoned: {done.conflict}; nothing was changed, run it again later"
    yield from command.committed(done.entry, "replaces the files")
    if not command.sure:
        yield "add --yes to do it"


def _why_nothing(settings: PipelineSettings, done: Compacted) -> str:
    compact, small, young = settings.sink.compact, done.found.small, done.found.young
    why = ""
    if young:
        why = (
            f": {young:,} of them {is_are(young)} younger than {compact.quiet:g} seconds "
            "(sink.compact.quiet_secs); --now also merges those"
        )
    elif small:
        why = (
            f": no partition has {compact.min_files} of this pipeline (sink.compact.min_files), or "
            "enough for a file of full size"
        )
    return f"{plural(small, 'small data file')}, nothing is worth compacting{why}"


def _group_line(one: MergeGroup) -> str:
    where = "/".join(f"{key}={value or ''}" for key, value in one.files[0].partition)
    return f"{where or 'no partition'}: {plural(len(one.files), 'file')}, {in_words(one.size)}"
