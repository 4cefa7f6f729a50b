"""The pipelines and tables of one configuration, for both programs. Read when somebody looks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from blizzard.config import load as blizzard_config
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.config.files import Given
from lakebed.errors import ConfigInvalid
from lakebed.layout import PIPELINE_NAME
from lakebed.telemetry.guard import Guard
from lakebed.types import CommitMode
from penguin.config import load as penguin_config
from penguin.model.settings import PenguinSettings, TableSettings

ProgramName = Literal["blizzard", "penguin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """What is looked at."""

    pipelines: Mapping[str, PipelineSettings] = field(default_factory=dict)
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    """By the names in the routes; one that no `tables:` entry names goes by its pipeline."""
    table_of: Mapping[str, str] = field(default_factory=dict)
    """The table of each pipeline."""
    addresses: Mapping[ProgramName, str | None] = field(default_factory=dict)
    """Where each program serves; None where it serves nothing."""
    guard: Guard = field(default_factory=Guard)
    notes: Mapping[ProgramName, str] = field(default_factory=dict)
    """Why nothing is expected of a program."""

    def pipelines_of(self, table: str) -> list[str]:
        """Return the pipelines that write to a table."""
        return [name for name, of in self.table_of.items() if of == table]


def lake_of(
    own: BlizzardSettings | PenguinSettings,
    files: Sequence[Given],
    folders: Sequence[Path],
    environment: Mapping[str, str],
) -> Lake:
    """Return what a program looks at: its own settings, and those of the other as they are now."""
    notes: dict[ProgramName, str] = {}
    blizzard = own if isinstance(own, BlizzardSettings) else None
    penguin = own if isinstance(own, PenguinSettings) else None
    if blizzard is None:
        try:
            blizzard = blizzard_config.load(files, folders, environment)
        except ConfigInvalid:
            notes["blizzard"] = "this configuration has no pipelines that blizzard can run"
    if penguin is None:
        try:
            penguin = penguin_config.load(files, folders, environment)
        except ConfigInvalid:
            notes["penguin"] = "this configuration has no tables that penguin can commit to"
    return joined(blizzard, penguin, notes)


def joined(
    blizzard: BlizzardSettings | None,
    penguin: PenguinSettings | None,
    notes: Mapping[ProgramName, str] | None = None,
) -> Lake:
    """Put the settings of both programs together. Pure."""
    tables = {} if penguin is None else _by_route(penguin.tables)
    routes = {table.name: name for name, table in tables.items()}
    pipelines = {} if blizzard is None else {each.name: each for each in blizzard.pipelines}
    table_of: dict[str, str] = {}
    by_uri: dict[str, str] = {}
    for name, settings in pipelines.items():
        sink = settings.sink
        known = None if blizzard is None else routes.get(blizzard.tables.get(name, ""))
        if known is None:
            known = by_uri.get(sink.table_uri)
        if known is None:
            known = name if name not in tables else f"{name}-table"
            tables[known] = TableSettings(
                name=sink.table_uri,
                table_uri=sink.table_uri,
                storage_options=sink.storage_options,
            )
            by_uri[sink.table_uri] = known
        table_of[name] = known
    told = dict(notes or {})
    inline = [each for each in pipelines.values() if each.sink.commit is CommitMode.INLINE]
    if penguin is None and pipelines and len(inline) == len(pipelines):
        told["penguin"] = "not needed: blizzard commits itself (sink.commit: inline)"
    some = blizzard if blizzard is not None else penguin
    return Lake(
        pipelines=pipelines,
        tables=tables,
        table_of=table_of,
        addresses={
            "blizzard": None if blizzard is None else blizzard.metrics_address,
            "penguin": None if penguin is None else penguin.metrics_address,
        },
        guard=Guard() if some is None else some.metrics_guard,
        notes=told,
    )


def _by_route(tables: Sequence[TableSettings]) -> dict[str, TableSettings]:
    """Return tables by names that can stand in a path; nearly all of them are such."""
    found: dict[str, TableSettings] = {}
    for table in tables:
        name = table.name
        if not PIPELINE_NAME.fullmatch(name):
            name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"table-{name}")[:90]
        while name in found:
            name = f"{name}-2"
        found[name] = table
    return found
