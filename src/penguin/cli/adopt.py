"""`penguin adopt`: make a folder of Parquet files a Delta table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakebed.clock import Clock
from lakebed.config.ddl import plain_type
from lakebed.config.section import location
from lakebed.deltalog.delta_types import TableFacts, by_name, type_name
from lakebed.locations import place_of
from lakebed.partition import PARTITION_TYPES, Template
from lakebed.storage.remote import local_path
from lakebed.terminal.call import Confirmed, refuse
from lakebed.terminal.console import first, picked
from lakebed.types import FieldType
from lakebed.units import in_words, is_are, plural
from penguin.adopt.adoption import Adopter, Adoption
from penguin.adopt.folder import AdoptOptions
from penguin.cli.app import LEFT_OUT, TableCall
from penguin.model.backlog import LeftOut
from penguin.model.settings import TableSettings

FEW = 20


def adopt(
    call: TableCall,
    uri: str,
    partition_by: str | None = None,
    skip_unreadable: bool = False,
    sure: Confirmed = False,
) -> None:
    """Make a folder of Parquet files a Delta table; no file is moved or rewritten.

    Credentials for a store are taken from the environment, or from the table of this URI in the
    configuration.

    Args:
        uri URI: The folder of Parquet files.
        partition_by COLUMNS: Partition columns and types, such as 'date:date,region:string'.
        skip_unreadable: Leave out files that cannot be read as Parquet.
    """
    try:
        place = location(uri)
    except ValueError as wrong:
        refuse(f"URI: {wrong}")
    try:
        columns = None if partition_by is None else parse_partition_columns(partition_by)
    except ValueError as wrong:
        refuse(f"--partition-by: {wrong}")
    local = local_path(place)
    if local is not None and local.is_file():
        refuse(f"{place} is a file; adopt its folder, {local.parent}")
    settings = _settings(call, place)
    call.who = place
    columns = columns or PartitionColumns.of_template(settings.partition_template)
    wanted = AdoptOptions(
        partition_columns=None if columns is None else columns.names,
        partition_types={} if columns is None else columns.types,
        skip_unreadable=skip_unreadable,
    )
    with call.store(settings) as store:
        if store is None:
            refuse(f"there is no folder {place}")
        adopter = Adopter(settings=settings, wanted=wanted, store=store, clock=Clock())
        found = adopter.adopt() if sure else adopter.plan()
    call.show(_text(place, found), _document(place, found))
    call.fail_if(found.troubles)
    if not found.troubles and not sure and found.version is None:
        call.needs_yes()


def _settings(call: TableCall, place: str) -> TableSettings:
    """Return the configured table at a location; default settings without a configuration."""
    if not call.files and not call.folders:
        return TableSettings(name=place, table_uri=place)
    here = [one for one in call.tables() if place_of(one.table_uri) == place_of(place)]
    return here[0] if here else refuse(f"no table of the configuration has the table_uri {place}")


def _document(uri: str, found: Adoption) -> dict[str, object]:
    columns, partition_columns = _columns(found.table)
    return {
        "table_uri": uri,
        "done": found.version is not None,
        **picked(found, "before version files=totals.files rows=totals.rows bytes=totals.bytes"),
        "columns": columns,
        "partition_columns": partition_columns,
        **picked(found, "empty_files=totals.empty_files hidden"),
        "skipped": [picked(one, LEFT_OUT) for one in found.skipped],
        "refused": [picked(one, LEFT_OUT) for one in found.troubles],
        "checkpoint_error": found.checkpoint_error,
    }


def _text(uri: str, found: Adoption) -> Iterator[str]:
    yield f"{uri}: {_headline(found)}"
    for title, columns in zip(("columns", "partitions"), _columns(found.table), strict=True):
        if columns:
            listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            yield f"  {title}: {listed}"
    yield from _named(found.totals.empty_files, "without rows, in the table as well")
    yield from _named(found.hidden, "hidden by `_` or `.`, or empty, and left alone")
    yield from _refused(found.skipped, "left out by --skip-unreadable")
    yield from _refused(found.troubles, "in the way")
    if found.checkpoint_error is not None:
        yield f"  no checkpoint could be written: {found.checkpoint_error}"


def _headline(found: Adoption) -> str:
    totals = found.totals
    what = f"{plural(totals.files, 'file')}, {plural(totals.rows, 'row')}, {in_words(totals.bytes)}"
    if found.before:
        return f"adopted before, in version {found.version}: {what}"
    if found.version is not None:
        return f"is a Delta table now, in version {found.version}: {what}"
    if found.troubles:
        files = plural(len(found.troubles), "file blocks it", "files block it")
        return f"not adopted: {files}, {totals.files:,} could be adopted"
    return f"would become a Delta table: {what}"


def _named(names: tuple[str, ...], what: str) -> Iterator[str]:
    if names:
        yield f"  {plural(len(names), 'file')} {is_are(len(names))} {what}:"
        yield from first(names, FEW, indent="    ")


def _refused(files: tuple[LeftOut, ...], what: str) -> Iterator[str]:
    """Yield the files that are not adopted, grouped by reason."""
    for reason in dict.fromkeys((one.reason, one.code) for one in files):
        paths = tuple(one.path for one in files if (one.reason, one.code) == reason)
        yield from _named(paths, f"{what}: {reason[0]} [{reason[1]}]")


def _columns(table: TableFacts | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the types of the columns and of the partition columns, by name."""
    if table is None:
        return {}, {}
    kinds = {name: type_name(one["type"]) for name, one in by_name(table.schema).items()}
    return kinds, {name: kinds.pop(name) for name in table.partition_columns}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumns:
    """Partition columns in order, and the Delta types of those that have one."""

    names: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_template(cls, template: str | None) -> "PartitionColumns | None":
        """Return the columns of a configured `prefix_template`."""
        if template is None:
            return None
        parts = Template.parse(template).parts
        types = {part.key: part.field.type.delta for part in parts}
        return cls(names=tuple(types), types=types)


def parse_partition_columns(text: str) -> PartitionColumns:
    """Parse `date:date,region:string`; a column without a type is that of the files, or a string.

    A ValueError says what is wrong.
    """
    names: list[str] = []
    types: dict[str, str] = {}
    for part in text.split(","):
        name, colon, kind = (piece.strip() for piece in part.partition(":"))
        if not name or (colon and not kind):
            raise ValueError(f"{part!r} is not of the form column or column:type")
        if name in names:
            raise ValueError(f"column {name} appears twice")
        names.append(name)
        if kind:
            types[name] = _type(name, kind)
    return PartitionColumns(names=tuple(names), types=types)


def _type(name: str, kind: str) -> str:
    allowed = tuple(PARTITION_TYPES)
    found = plain_type(kind)
    if found not in allowed:
        raise ValueError(
            f"{name} cannot be of type {kind}; a partition column is one of "
            f"{', '.join(one.value for one in allowed)}"
        )
    return FieldType(found).delta
