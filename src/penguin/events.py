"""What penguin tells of its work."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lakebed.telemetry.events import Event, Level
from lakebed.telemetry.health import Halted, Part, PartKind, Resumed, Sign
from lakebed.telemetry.measures import Age, Count, Measure, Observe, Reading
from penguin.model.commit import HoldCode

FEW = 10
"""How many of a long list are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWaiting(Event):
    """There is nothing to commit from yet: no table directory, or no pipeline in it."""

    level: ClassVar[Level] = Level.DEBUG
    table: str
    table_uri: str

    def sentence(self) -> str:
        """Say what is waited for."""
        return f"{self.table}: there is nothing to commit in {self.table_uri} yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogSeen(Event):
    """A table was looked at: its version, and what waits to be committed."""

    level: ClassVar[Level] = Level.TRACE
    table: str
    version: int | None
    entries: int
    files: int
    oldest: float | None
    """When the first of the entries was journaled, in seconds since the epoch."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many files are set aside, by the code of the reason."""

    def sentence(self) -> str:
        """Say how much waits."""
        return f"{self.table}: {self.entries} entries with {self.files} files wait"

    def measures(self) -> Iterable[Measure]:
        """Give the backlog, and how far the table is behind."""
        labels = {"table": self.table}
        yield Reading("penguin_pending_entries", self.entries, labels)
        yield Reading("penguin_pending_files", self.files, labels)
        yield Age("penguin_lag_seconds", self.oldest, labels)
        for code in HoldCode:
            count = self.held.get(code, 0)
            yield Reading("penguin_held_files", count, {**labels, "code": code.value})
        if self.version is not None:
            yield Reading("penguin_table_version", self.version, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesLookedAt(Event):
    """The files of the next commit are being looked at, before it is made."""

    level: ClassVar[Level] = Level.TRACE
    table: str
    done: int
    files: int

    def sentence(self) -> str:
        """Say how far it is."""
        return f"{self.table}: looked at {self.done} of {self.files} files"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesCommitted(Event):
    """Entries are in the Delta log, by our hand."""

    table: str
    version: int
    entries: int
    files: int
    rows: int
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...] = ()
    columns_widened: tuple[str, ...] = ()
    seconds: float = 0.0
    released: int = 0
    """How many of the files had been set aside."""
    discarded: int = 0
    """How many files that had been set aside never will be added."""

    def sentence(self) -> str:
        """Say what became visible, and what no longer is."""
        columns = (
            ("new", self.columns_added),
            ("dropped", self.columns_dropped),
            ("wider", self.columns_widened),
        )
        changed = "".join(f", {how} columns: {', '.join(names)}" for how, names in columns if names)
        released = f" ({self.released} that had been held)" if self.released else ""
        discarded = f", {self.discarded} held files discarded" if self.discarded else ""
        return (
            f"{self.table}: version {self.version}: {self.entries} entries, {self.files} files"
            f"{released}, {self.rows} rows{changed}{discarded}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count what became visible."""
        labels = {"table": self.table}
        yield Count("penguin_commits_total", 1, labels)
        yield Observe("penguin_commit_duration_seconds", self.seconds, labels)
        yield Count("penguin_entries_committed_total", self.entries, labels)
        yield Count("penguin_files_committed_total", self.files, labels)
        yield Count("penguin_rows_committed_total", self.rows, labels)
        yield Count("penguin_columns_added_total", len(self.columns_added), labels)
        yield Count("penguin_files_released_total", self.released, labels)
        if self.columns_added or self.columns_dropped or self.columns_widened:
            yield Count("penguin_schema_changes_total", 1, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesHeld(Event):
    """Files of an entry are set aside: the table does not have their rows."""

    level: ClassVar[Level] = Level.ERROR
    table: str
    pipeline: str
    entry: int
    code: str
    reasons: tuple[str, ...]
    paths: tuple[str, ...]
    rows: int

    def sentence(self) -> str:
        """Name them, and say why and what to do."""
        return (
            f"{self.table}: held: {len(self.paths)} files with {self.rows} rows of entry "
            f"{self.entry} of pipeline {self.pipeline}: {'; '.join(self.reasons)} [{self.code}]; "
            f"`penguin held` shows them: {_some(self.paths)}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        labels = {"table": self.table, "code": self.code}
        yield Count("penguin_files_held_total", len(self.paths), labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedByOther(Event):
    """Somebody else committed the entries that were planned."""

    table: str
    version: int
    entries: int

    def sentence(self) -> str:
        """Say that nothing was done twice."""
        return (
            f"{self.table}: {self.entries} entries were committed by another penguin; "
            f"the table is at version {self.version}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        labels = {"table": self.table, "outcome": "committed_by_other"}
        yield Count("penguin_conflicts_total", 1, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSuperseded(Event):
    """The table changed after the plan was made."""

    level: ClassVar[Level] = Level.DEBUG
    table: str

    def sentence(self) -> str:
        """Say what follows."""
        return f"{self.table}: the table changed meanwhile; looking again"

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("penguin_conflicts_total", 1, {"table": self.table, "outcome": "superseded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStopped(Event):
    """Nothing more of a pipeline is committed until somebody mends it."""

    level: ClassVar[Level] = Level.ERROR
    table: str
    pipeline: str
    code: str
    error: str
    code_before: str | None = None
    """What it was stopped for until now, if it was."""

    def sentence(self) -> str:
        """Say why, and that the others go on."""
        return (
            f"{self.table}: pipeline {self.pipeline} stops: {self.error} [{self.code}]; "
            "other pipelines go on"
        )

    def measures(self) -> Iterable[Measure]:
        """Show it, under one code at a time."""
        labels = {"table": self.table, "pipeline": self.pipeline}
        if self.code_before is not None:
            yield Reading("penguin_pipeline_stopped", 0, {**labels, "code": self.code_before})
        yield Reading("penguin_pipeline_stopped", 1, {**labels, "code": self.code})

    def signs(self) -> Iterable[Sign]:
        """Say that the table is not well."""
        yield Halted(Part(PartKind.TABLE, self.table), self.pipeline, self.code, self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMended(Event):
    """A pipeline that was stopped goes on."""

    table: str
    pipeline: str
    code: str
    """What it was stopped for."""

    def sentence(self) -> str:
        """Say so."""
        return f"{self.table}: pipeline {self.pipeline} goes on"

    def measures(self) -> Iterable[Measure]:
        """Show that it is stopped no longer."""
        labels = {"table": self.table, "pipeline": self.pipeline, "code": self.code}
        yield Reading("penguin_pipeline_stopped", 0, labels)

    def signs(self) -> Iterable[Sign]:
        """Say that this one is well again."""
        yield Resumed(Part(PartKind.TABLE, self.table), self.pipeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryNotHandedOff(Event):
    """An entry is in the journal, and blizzard has yet to hand its files off."""

    table: str
    pipeline: str
    entry: int
    reason: str

    def sentence(self) -> str:
        """Say what is waited for."""
        return f"{self.table}: entry {self.entry} of pipeline {self.pipeline} waits: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetasLeftAlone(Event):
    """Metas that penguin neither commits nor deletes; it says so once."""

    level: ClassVar[Level] = Level.WARN
    table: str
    reason: str
    paths: tuple[str, ...]

    def sentence(self) -> str:
        """Name them and the reason."""
        return f"{self.table}: left alone: {_some(self.paths)}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesUnnamed(Event):
    """Files of blizzard's in the table's folders that no entry names; it says so once."""

    level: ClassVar[Level] = Level.WARN
    table: str
    files: int
    some: tuple[str, ...]

    def sentence(self) -> str:
        """Count them and name some."""
        return (
            f"{self.table}: {self.files} files of blizzard's are named by no journal entry and are "
            f"left alone: {_some(self.some)}"
        )


VACUUM = "vacuum may take files that wait"
"""The name under which a table's health tells of files that wait too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesWaitTooLong(Event):
    """Files wait since so long that a VACUUM may soon take them."""

    level: ClassVar[Level] = Level.ERROR
    table: str
    since: str
    retention_secs: float
    danger: str
    """What may happen when, in words."""

    def sentence(self) -> str:
        """Say since when, and what may happen when."""
        return f"{self.table}: {self.danger}"

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield Reading("penguin_files_in_danger", 1, {"table": self.table})

    def signs(self) -> Iterable[Sign]:
        """Say that the table is not well."""
        part = Part(PartKind.TABLE, self.table)
        yield Halted(part, VACUUM, "files_wait_too_long", self.sentence())


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesWaitNoLonger(Event):
    """No file waits too long any more."""

    table: str

    def sentence(self) -> str:
        """Say so."""
        return f"{self.table}: no file waits too long any more"

    def measures(self) -> Iterable[Measure]:
        """Show it."""
        yield Reading("penguin_files_in_danger", 0, {"table": self.table})

    def signs(self) -> Iterable[Sign]:
        """Say that the table is well again."""
        yield Resumed(Part(PartKind.TABLE, self.table), VACUUM)


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersSeen(Event):
    """The table directory was searched for files that other programs wrote."""

    level: ClassVar[Level] = Level.TRACE
    table: str
    sweep: bool | None
    """Whether all folders were listed; None where none was."""
    listed: int
    waiting: int
    left_out: int
    passed_over: int = 0
    """How many Parquet files are not looked at, because of their names."""

    def sentence(self) -> str:
        """Say what is there."""
        how = {None: "nothing was", True: "all folders were", False: "new names were"}[self.sweep]
        return (
            f"{self.table}: {how} listed, {self.listed} files seen; {self.waiting} of other "
            f"programs wait, {self.left_out} are left out, {self.passed_over} are passed over"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the looks, and give what waits."""
        labels = {"table": self.table}
        if self.sweep is not None:
            kind = "sweep" if self.sweep else "poll"
            yield Count("penguin_scans_total", 1, {**labels, "kind": kind})
            yield Count("penguin_files_listed_total", self.listed, labels)
        yield Reading("penguin_other_files_waiting", self.waiting, labels)
        yield Reading("penguin_other_files_left_out", self.left_out, labels)
        yield Reading("penguin_other_files_passed_over", self.passed_over, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateFilesCommitted(Event):
    """Files were committed that a bare watermark would have lost."""

    table: str
    files: int
    some: tuple[str, ...]

    def sentence(self) -> str:
        """Count them and name some."""
        return (
            f"{self.table}: {self.files} files came later than others of their folders with higher "
            f"names: {_some(self.some)}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("penguin_late_files_total", self.files, {"table": self.table})


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesLeftOut(Event):
    """Files of other programs that are not committed; it says so once for each reason."""

    level: ClassVar[Level] = Level.WARN
    table: str
    code: str
    reason: str
    paths: tuple[str, ...]

    def sentence(self) -> str:
        """Name them and the reason."""
        return f"{self.table}: not committed: {_some(self.paths)}: {self.reason} [{self.code}]"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        labels = {"table": self.table, "code": self.code}
        yield Count("penguin_files_left_out_total", len(self.paths), labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPassedOver(Event):
    """Parquet files that a scan does not take; it says so when a sweep finds others than before."""

    level: ClassVar[Level] = Level.WARN
    table: str
    files: int
    some: tuple[str, ...]
    reason: str

    def sentence(self) -> str:
        """Count them, name some, and say how they get in."""
        return (
            f"{self.table}: {self.files} Parquet files are passed over: {_some(self.some)}: "
            f"{self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterBoundsOthersOnly(Event):
    """Settings that bound the search for files, on a table whose files a journal names; once."""

    table: str
    keys: tuple[str, ...]
    searched: bool
    """Whether the folders are searched, for files of other programs."""

    def sentence(self) -> str:
        """Say what the settings do not do."""
        keys = " and ".join(self.keys)
        holds = (
            "bound the search for files of other programs"
            if self.searched
            else "have no effect, since the folders of this table are not searched"
        )
        return (
            f"{self.table}: {keys}: {holds}; what blizzard has journaled is committed whole, "
            "whatever folder it is in. To leave old data out, set partition_filter of the source"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWritten(Event):
    """A Delta checkpoint was written."""

    level: ClassVar[Level] = Level.DEBUG
    table: str
    version: int

    def sentence(self) -> str:
        """Say for which version."""
        return f"{self.table}: checkpoint of version {self.version} written"

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("penguin_checkpoints_written_total", 1, {"table": self.table})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFailed(Event):
    """A Delta checkpoint could not be written; commits are not touched by that."""

    level: ClassVar[Level] = Level.WARN
    table: str
    version: int
    error: str

    def sentence(self) -> str:
        """Say that it will be tried again."""
        return (
            f"{self.table}: the checkpoint of version {self.version} could not be written, "
            f"the next step tries again: {self.error}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("penguin_checkpoints_failed_total", 1, {"table": self.table})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanedUp(Event):
    """Versions of the Delta log were removed whose time was over."""

    level: ClassVar[Level] = Level.INFO
    table: str
    first: int
    removed: int

    def sentence(self) -> str:
        """Say how far back the log reaches now."""
        return (
            f"{self.table}: {self.removed} versions of the log were removed, as "
            f"delta.logRetentionDuration says; it begins at version {self.first}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("penguin_log_versions_removed_total", self.removed, {"table": self.table})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanUpFailed(Event):
    """Versions whose time is over could not be removed; commits are not touched by that."""

    level: ClassVar[Level] = Level.WARN
    table: str
    error: str

    def sentence(self) -> str:
        """Say that it will be tried again."""
        return (
            f"{self.table}: old versions of the log could not be removed, the next checkpoint "
            f"tries again: {self.error}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("penguin_log_clean_ups_failed_total", 1, {"table": self.table})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKept(Event):
    """Nothing of the Delta log is removed: the table says how long it is kept, and unreadably."""

    level: ClassVar[Level] = Level.WARN
    table: str
    name: str
    value: str

    def sentence(self) -> str:
        """Say what is kept, and what to set."""
        return (
            f"{self.table}: old versions of the log are kept: {self.name} is {self.value!r}, which "
            "is no interval that Delta knows; set it to one such as `interval 30 days`"
        )

    def measures(self) -> Iterable[Measure]:
        """Count it."""
        yield Count("penguin_log_clean_ups_failed_total", 1, {"table": self.table})


def _some(paths: tuple[str, ...]) -> str:
    """Name the first of many."""
    more = f" and {len(paths) - FEW} more" if len(paths) > FEW else ""
    return f"{', '.join(paths[:FEW])}{more}"
