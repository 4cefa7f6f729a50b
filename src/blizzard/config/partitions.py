"""What is wrong with `partition_by`, held against the declared fields. Pure."""

import difflib
from collections.abc import Iterator, Sequence

from blizzard.model import event_time
from lakebed.columns.schema import Field, walk
from lakebed.config.faults import Fault, columns_of
from lakebed.config.models import KeyPath, PartitionBy
from lakebed.partition import PARTITION_TYPES, Template


def faults(path: KeyPath, by: PartitionBy, fields: Sequence[Field]) -> Iterator[Fault]:
    """Yield the faults of a template, and of the field that gives its times."""
    here = (*path, "sink", "partition_by")
    if by.timestamp_field is not None:
        yield from _check_timestamp(path, by.prefix_template, by.timestamp_field, fields)
    keys = Template.parse(by.prefix_template).keys
    declared = {field.name: field.type for field in fields}
    written = {name.casefold(): name for name in declared}
    for key in keys:
        if key in declared and declared[key] not in PARTITION_TYPES:
            yield Fault(
                (*here, "prefix_template"),
                f"{key} is declared as {declared[key]}, which cannot be a partition column; "
                f"it must be {', '.join(PARTITION_TYPES)}",
            )
        if key not in declared and key.casefold() in written:
            yield Fault(
                (*here, "prefix_template"),
                f"{key} is declared as {written[key.casefold()]}; "
                "Delta does not tell upper from lower case",
            )
    if declared and set(declared) <= set(keys):
        yield Fault(
            (*path, "schema", "fields"),
            "every field is a partition column, so the data files would have no column",
        )


def _check_timestamp(
    path: KeyPath, template: str, name: str, fields: Sequence[Field]
) -> Iterator[Fault]:
    """Refuse a field that tells no time, and a template that it cannot give."""
    here = (*path, "sink", "partition_by")
    place = (*here, "timestamp_field")
    found = event_time.find_timestamp(fields, name)
    if found is None:
        yield Fault(place, _unknown(name, fields), near=(place, *columns_of(path)))
        return
    field = found[1]
    if field.type not in event_time.TIME_TYPES:
        names = ", ".join(event_time.TIME_TYPES[:-1])
        yield Fault(
            place,
            f"{name} is declared as {field.type}; it must be "
            f"{names} or {event_time.TIME_TYPES[-1]}",
        )
        return
    for fault in event_time.faults(Template.parse(template), field, tuple(fields)):
        yield Fault((*here, "prefix_template"), fault)


def _unknown(name: str, fields: Sequence[Field]) -> str:
    """Return what is wrong with a field that is not declared, or that stands in a list."""
    declared = dict(walk(fields))
    if any(path.replace("[]", "") == name for path in declared):
        return f"{name} is inside a list or a map, so a row may have many of it or none"
    times = [path for path, field in declared.items() if field.type in event_time.TIME_TYPES]
    known = [path for path in times if "[]" not in path] + [field.name for field in fields]
    close = difflib.get_close_matches(name, known, n=1)
    names = ", ".join(dict.fromkeys([field.name for field in fields] + known))
    told = f"did you mean {close[0]}?" if close else f"the declared fields are {names}"
    return f"{name} is not a declared field; {told}"
