"""Rules for foreign files: which are new, and which may be committed. Pure.

Each is committed once, by a transaction of its own, even if several requests name it. A path that
the log knows is never added again, whether another writer committed it or it was removed since.
Nothing is assumed about files that the log has forgotten.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import unquote

from lakebed.columns.column_mapping import DeltaType, FieldPath, format_path, rebuilt
from lakebed.deltalog.delta_types import (
    DeltaField,
    DeltaSchema,
    TableFacts,
    by_name,
    kind_of,
    nullable_field,
    partition_fields,
    struct_of,
    why_no_table,
)
from lakebed.deltalog.log_contents import NEVER, LogContents
from lakebed.documents.pending_meta import Meta
from lakebed.documents.records import ColumnStatistics
from lakebed.layout import (
    ESCAPED,
    META_SUFFIX,
    file_name,
    foreign_transaction,
    is_hidden,
    is_parquet,
    unescape,
)
from lakebed.listing.lookback import Window
from lakebed.listing.sort import CONTROL, NameFault, leads_elsewhere
from lakebed.partition import Template, typed_value
from lakebed.types import FORBIDDEN_IN_NAMES
from penguin.model.backlog import Candidate, LeftOut

MISSING = "file_missing"
UNFIT = "file_unfit"
REFUSED = "schema_refused"
TOO_OLD = "file_too_old"
OF_BLIZZARD = "file_of_blizzard"
TAKEN = "file_name_taken"
DENIED = "store_denied"
UNUSABLE = "name_unusable"
LEFT_ALONE = "meta_left_alone"

MOMENT = "%Y-%m-%d %H:%M:%S"

WHY_UNUSABLE = {
    NameFault.NAME: (
        "its name is not UTF-8, or has a control character or a part that is empty, . or ..; "
        "rename it"
    ),
    NameFault.LINK: (
        "it is a link to a folder, and those are not followed; move the folder here, or remove "
        "the link"
    ),
    NameFault.UNREADABLE: "it cannot be read (permission denied), so its content is not known",
    NameFault.MARKER: "it marks a folder and has no content",
}
WHY_LINKED_FILE = (
    "it is a link to another file of the table's folder, whose rows would be in the table twice; "
    "remove the link"
)


def why_not_a_data_file(meta_path: str, meta: Meta) -> str | None:
    """Return why the file that a meta names cannot be a data file of this table; None if it can."""
    segments = meta.filename.split("/")
    odd = leads_elsewhere(meta.filename) or CONTROL.search(meta.filename)
    if odd or is_hidden(segments[0]):
        return f"filename {meta.filename!r} is not the name of a data file in this table"
    stem = meta_path.rpartition("/")[2].removesuffix(META_SUFFIX)
    if segments[-1].rpartition(".")[0] != stem:
        # Two metas for one file would be two requests to commit it.
        return f"filename {meta.filename!r} does not have the name of its meta"
    if meta.size <= 0 or meta.record_count < 0:
        return f"size {meta.size} and record_count {meta.record_count} are impossible"
    return None


def may_hold_data(name: str) -> bool:
    """Whether an unusable name is that of a data file, or of a folder of such."""
    parts = (part for part in name.split("/") if part not in ("", ".", ".."))
    return not any(map(is_hidden, parts)) and (name.endswith("/") or is_parquet(name))


def unusable(name: str, fault: NameFault) -> LeftOut:
    """Leave out a name that cannot be used; its file is not read."""
    code = DENIED if fault is NameFault.UNREADABLE else UNUSABLE
    is_file_link = fault is NameFault.LINK and not name.endswith("/")
    reason = WHY_LINKED_FILE if is_file_link else WHY_UNUSABLE[fault]
    skippable = fault is not NameFault.UNREADABLE
    return LeftOut(path=name, code=code, reason=reason, skippable=skippable)


def path_values(path: str) -> dict[str, str | None]:
    """Parse partition values from `key=value` folders; a ValueError says what is wrong."""
    values: dict[str, str | None] = {}
    for segment in path.split("/")[:-1]:
        key, equals, name = segment.partition("=")
        if not equals:
            continue
        try:
            column, value = unquote(key, errors="strict"), unescape(name)
        except UnicodeDecodeError:
            raise ValueError(f"its folder {segment} is not UTF-8") from None
        if not column:
            raise ValueError(f"its folder {segment} names no column")
        if column in values:
            raise ValueError(f"its folders name column {column} twice")
        values[column] = value
    return values


def partition_values(
    found: Candidate, columns: tuple[str, ...], inside: frozenset[str]
) -> dict[str, str | None]:
    """Return a file's value of each partition column; a ValueError says why there is none.

    They come from the meta, or from the folders of a scanned file; where both have them they must
    agree. A folder that is not a partition column is fine if the file has a column of that name
    `inside`.
    """
    values = path_values(found.path)
    if found.claim is not None:
        claimed = {key: value or None for key, value in found.claim.partition_values.items()}
        for key in claimed.keys() & values.keys():
            if claimed[key] != values[key]:
                raise ValueError(
                    f"its meta says {key}={claimed[key]}, but it is in {key}={values[key]}"
                )
        values = {key: value for key, value in values.items() if key in columns} | claimed
    lost = [key for key in values if key not in columns and key not in inside]
    lacks = [key for key in columns if key not in values]
    if lost or lacks:
        raise ValueError(
            f"it has partition values for {', '.join(values) or 'nothing'}, "
            f"the table is partitioned by {', '.join(columns) or 'nothing'}"
        )
    return {key: values[key] for key in columns}


def typed_values(values: Mapping[str, str | None], table: TableFacts) -> dict[str, str | None]:
    """Return partition values as the log has them; a ValueError names one of the wrong type.

    Committed, such a value would make the table unreadable.
    """
    columns = partition_fields(table)
    typed: dict[str, str | None] = {}
    for name, value in values.items():
        try:
            typed[name] = typed_value(columns[name], value)
        except ValueError as reason:
            raise ValueError(f"its value of partition column {name}: {reason}") from None
    return typed


def new_columns(
    file: DeltaSchema, found: Candidate, template: Template | None
) -> tuple[DeltaSchema, tuple[str, ...]]:
    """Return the schema and partition columns of a table whose first file this is.

    Partition columns come from the configured template, else from the meta, else from the folders.
    One without a type in the template or the file is a string: nothing is inferred from values.
    """
    if template is not None:
        names = template.keys
        typed = {part.key: part.field.type.value for part in template.parts}
    else:
        values = (
            found.claim.partition_values if found.claim is not None else path_values(found.path)
        )
        names, typed = tuple(values), {}
        if (reason := why_no_partitions(names)) is not None:
            raise ValueError(reason)
    known = {name: one["type"] for name, one in by_name(file).items()} | typed
    apart = [nullable_field(name, known.get(name, "string")) for name in names]
    kept = [field for field in file["fields"] if field["name"] not in names]
    schema = struct_of([*kept, *apart])
    wrong = why_no_table(schema)
    if wrong is not None:
        raise ValueError(wrong)
    return schema, names


def why_no_partitions(names: Iterable[str]) -> str | None:
    """Return why names cannot be those of partition columns; None if they can."""
    for name in names:
        bad = sorted(set(name) & (ESCAPED | FORBIDDEN_IN_NAMES))
        if bad:
            return f"partition column {name}: a column's name must not contain {bad!r}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedCandidates:
    """Candidates, classified by the log."""

    new: tuple[Candidate, ...] = ()
    settled: tuple[Candidate, ...] = ()
    """Committed by any writer, or removed."""
    forgotten: tuple[Candidate, ...] = ()
    """Older than what the log remembers: they may have been removed from it."""
    taken: tuple[tuple[Candidate, str], ...] = ()
    """Each with the committed file that has the same UUID."""


def sort_out(candidates: Iterable[Candidate], known: LogContents) -> SortedCandidates:
    """Classify candidates by the log.

    A meta requests its file by name, so its file is never too old. A scan only finds a file, and
    cannot tell a new one from one that was removed so long ago that the log has forgotten it.
    """
    new: list[Candidate] = []
    settled: list[Candidate] = []
    forgotten: list[Candidate] = []
    taken: list[tuple[Candidate, str]] = []
    unknown: list[Candidate] = []
    for candidate in candidates:
        if is_settled(candidate.path, known):
            settled.append(candidate)
        elif known.transaction(candidate.transaction) is not None:
            taken.append((candidate, known.namesake(candidate.path) or ""))
        else:
            unknown.append(candidate)
    alike = known.alike(file.path for file in unknown)
    for file in unknown:
        if (by := alike.get(file_name(file.path))) is not None:
            taken.append((file, by))
        elif (file.claim is None or known.may_be_scanned(file.path)) and known.may_have_lost(
            file.path, file.modified
        ):
            forgotten.append(file)
        else:
            new.append(file)
    return SortedCandidates(
        new=tuple(new),
        settled=tuple(settled),
        forgotten=tuple(forgotten),
        taken=tuple(taken),
    )


def without_leftovers(
    found: SortedCandidates, known: LogContents
) -> tuple[SortedCandidates, set[str]]:
    """Settle forgotten files that scans have passed long ago, and return their paths.

    OPTIMIZE leaves such files behind; they need no action.
    """
    old = [
        file
        for file in found.forgotten
        if file.claim is None and known.is_leftover(file.path, file.modified)
    ]
    paths = {str(one.path) for one in old}
    left = tuple(file for file in found.forgotten if file.path not in paths)
    return replace(found, settled=(*found.settled, *old), forgotten=left), paths


def is_settled(path: str, known: LogContents) -> bool:
    """Whether a file was committed, by any writer, or removed.

    Its transaction says so where the log has forgotten the path, unless the log knows another file
    of that name, whose transaction it is then.
    """
    if path in known.paths:
        return True
    done = known.transaction(foreign_transaction(path)) is not None
    return done and known.namesake(path) is None


def leave_out(one: Candidate, code: str, reason: str) -> LeftOut:
    """Leave out a file, with a code and a reason; a missing file has no modification time."""
    return LeftOut(
        path=one.path,
        code=code,
        reason=reason,
        asked_by=one.asked_by,
        modified=None if code == MISSING else one.modified,
        skippable=code == UNFIT,
    )


def is_blizzards(one: object) -> bool:
    """Whether a scan left out a file because blizzard wrote it: an entry may yet name it."""
    return isinstance(one, LeftOut) and one.code == OF_BLIZZARD and one.asked_by is None


def name_taken(one: Candidate, by: str) -> LeftOut:
    """Leave out a file with the UUID of another file: a UUID is committed once."""
    reason = f"its UUID is that of {by}, and a UUID is committed only once; rename it"
    return leave_out(one, TAKEN, reason)


def too_old(one: Candidate, known: LogContents) -> LeftOut:
    """Leave out a file that is older than what the log remembers."""
    reaches = "the log no longer has the versions that would show removed files"
    if known.since is not None and known.since != NEVER:
        reaches = f"the log shows removed files back to {known.since:{MOMENT}} UTC only"
        reaches += "" if known.is_certain else ", give or take an hour"
    way_out = (
        "give it a new name, with a UUIDv7 of today, to commit it"
        if known.may_be_scanned(one.path)
        else "a meta in _staging/pending commits it"
    )
    return leave_out(one, TOO_OLD, f"{reaches}: it may have been removed before; {way_out}")


def wait_since(left_out: Iterable[LeftOut]) -> Iterator[datetime]:
    """Yield the times of left-out files that a VACUUM must not delete.

    Files too old for the log may be remains of OPTIMIZE, which VACUUM should delete.
    """
    for file in left_out:
        if file.modified is not None and file.code != TOO_OLD:
            yield file.modified


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The folders that a search leaves out: old ones, but none newer than the newest committed."""

    first: Window | None = None
    """The partition filter: folders beyond its lookback are never searched."""
    sweep: Window | None = None
    """How far back a sweep goes."""
    cold: bool = True
    """Whether nothing is committed yet."""
    oldest: tuple[int, ...] | None = None
    """The time of the oldest folder that has or had files of the table."""
    newest: tuple[int, ...] | None = None

    @classmethod
    def over(
        cls, first: Window | None, sweep: Window | None, committed: Iterable[str]
    ) -> "Horizon":
        """Take the bounds from the paths that are or were in the table."""
        folders = {path.rpartition("/")[0] for path in committed} if first or sweep else set()
        return cls(
            first=first,
            sweep=sweep,
            cold=not folders,
            oldest=min(_times(first, folders), default=None),
            newest=max(_times(sweep, folders), default=None),
        )

    @property
    def depth(self) -> int:
        """Return the depth down to which folders can be left out."""
        return max((len(one.segments) for one in (self.first, self.sweep) if one), default=0)

    def shows(self, path: str, now: datetime, *, sweeping: bool) -> bool:
        """Whether to list a path, or files below a folder."""
        return not (
            self._hides(self.first, path, now, self.oldest)
            or (sweeping and self._hides(self.sweep, path, now, self.newest))
        )

    def _hides(
        self, window: Window | None, path: str, now: datetime, known: tuple[int, ...] | None
    ) -> bool:
        if window is None or window.holds(path, now):
            return False
        if self.cold:
            return True
        at = window.time(path)
        # If times cannot be compared, it may be newer than the newest committed.
        return at is not None and known is not None and at < known[: len(at)]


def _times(window: Window | None, folders: Iterable[str]) -> Iterator[tuple[int, ...]]:
    for folder in folders if window is not None else ():
        if window is not None and (at := window.time(folder)) is not None:
            yield at


def may_be_entered(folder: str) -> bool:
    """Whether a folder may hold data files, judged by its name."""
    return not is_reserved(folder)


def is_reserved(path: str) -> bool:
    """Whether a path is hidden, or in a hidden folder: neither holds data."""
    return any(map(is_hidden, path.split("/")))


def as_the_table_sees_it(
    schema: DeltaSchema,
    statistics: Mapping[str, ColumnStatistics],
    table: DeltaSchema | None,
    partition_columns: tuple[str, ...],
) -> DeltaSchema:
    """Return a file's columns as a table takes them: without partition columns.

    Columns that the table has are required if the file has no null; new ones are nullable. Values
    of partition columns come from the path; readers do not look for them in the file.
    """
    known = {} if table is None else by_name(table)
    return {
        "type": "struct",
        "fields": [
            _nulls_proved(field, statistics) if field["name"] in known else _relaxed_field(field)
            for field in schema["fields"]
            if field["name"] not in partition_columns
        ],
    }


def _nulls_proved(one: DeltaField, statistics: Mapping[str, ColumnStatistics]) -> DeltaField:
    facts = statistics.get(format_path((one["name"],)))
    proved = facts is not None and facts.null_count == 0
    return {**one, "nullable": one["nullable"] and not proved}


def _relaxed_field(one: DeltaField) -> DeltaField:
    """Make a new column nullable at all depths: other files do not have it."""
    return {**one, "nullable": True, "type": rebuilt(one["type"], _relaxed)}


def _relaxed(kind: DeltaType, _path: FieldPath) -> DeltaType:
    match kind_of(kind):
        case "struct":
            return {**kind, "fields": [{**field, "nullable": True} for field in kind["fields"]]}
        case "array":
            return {**kind, "containsNull": True}
        case "map":
            return {**kind, "valueContainsNull": True}
    return kind
