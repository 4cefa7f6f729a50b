"""One call of a blizzard command, and its pipelines."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer

from lakebed.errors import ObjectMissing
from lakebed.terminal.call import Call, refuse
from lakebed.terminal.console import print_error

if TYPE_CHECKING:
    from blizzard.answers.answer import CommandPrefix
    from blizzard.answers.progress import PipelineEvidence
    from blizzard.cli.surroundings import Surroundings
    from blizzard.model.settings import BlizzardSettings, PipelineSettings
    from blizzard.table_rules import TableOf
    from lakebed.telemetry.events import Event


@dataclass(kw_only=True)
class PipelineCall(Call):
    """A call for the pipelines of a configuration."""

    pipeline: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--pipeline",
            metavar="NAME",
            help="Only this pipeline.",
        ),
    ] = None
    _loaded: "BlizzardSettings | None" = field(default=None, init=False)

    @property
    def loaded(self) -> "BlizzardSettings":
        """The configuration, with all of its pipelines."""
        from blizzard.config import load as config  # noqa: PLC0415 - help is printed without it

        if self._loaded is None:
            self._loaded = config.load(self.files or [], self.folders or [], os.environ)
        return self._loaded

    @cached_property
    def around(self) -> "Surroundings":
        """The command's environment: as passed in, or the default."""
        from blizzard.cli.surroundings import Surroundings  # noqa: PLC0415

        return self.context.find_object(Surroundings) or Surroundings()

    @property
    def table_of(self) -> "TableOf":
        """Find the `tables:` entry of a pipeline."""
        from blizzard.table_rules import tables_of  # noqa: PLC0415

        return tables_of(self.loaded, self.files or (), self.folders or ())

    def uncommitted(self, settings: "PipelineSettings") -> str | None:
        """Return why penguin with this configuration would not commit a pipeline's files."""
        from blizzard.table_rules import uncommitted  # noqa: PLC0415

        return uncommitted(settings, self.loaded, self.files or (), self.folders or ())

    def line(self, settings: "PipelineSettings") -> "CommandPrefix":
        """Return the prefix of commands about a pipeline of this call's configuration."""
        from blizzard.answers.answer import CommandPrefix  # noqa: PLC0415
        from lakebed.config.files import options_of  # noqa: PLC0415

        options = options_of(self.files or (), self.folders or ())
        return CommandPrefix(options, settings.name if len(self.loaded.pipelines) > 1 else None)

    def pipelines(self) -> "tuple[PipelineSettings, ...]":
        """Return the pipelines of the configuration, or the selected one."""
        return self.loaded.only(self.pipeline).pipelines

    def scopes(self) -> "list[PipelineEvidence]":
        """Open the pipelines to search for a name; report those that cannot be opened."""
        from blizzard.answers.progress import PipelineEvidence  # noqa: PLC0415

        scopes = []
        for settings in self.pipelines():
            with self.guard(settings.name):
                scopes.append(PipelineEvidence.read(settings, self.around.clock))
        return scopes

    @contextmanager
    def one(self) -> "Iterator[PipelineSettings]":
        """Yield the selected pipeline; with several, it must be named.

        A missing table folder is reported as nothing journaled yet.
        """
        from lakebed.storage.remote import local_path  # noqa: PLC0415

        found = self.pipelines()
        if len(found) > 1:
            names = ", ".join(each.name for each in found)
            refuse(f"name the pipeline with --pipeline; there are: {names}")
        settings, self.who = found[0], found[0].name
        try:
            yield settings
        except ObjectMissing as missing:
            folder = local_path(settings.sink.table_uri)
            if folder is None or folder.exists():
                raise
            raise ObjectMissing(
                "no batch has been journaled yet: nothing has been written to this table",
                path=settings.sink.table_uri,
            ) from missing


def document_of(settings: "PipelineSettings") -> dict[str, str]:
    """Return the first keys of a document about a pipeline."""
    return {"pipeline": settings.name, "table_uri": settings.sink.table_uri}


def failed_at(stage: str, line: int | None, field: str | None) -> str:
    """Format where a file failed: stage and, if known, line and field."""
    known = (("line", line), ("field", field))
    return ", ".join((stage, *(f"{name} {at}" for name, at in known if at is not None)))


def report_event(event: "Event") -> None:
    """Print an event to standard error."""
    print_error(event.sentence())
