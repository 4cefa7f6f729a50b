"""What is wrong with `schema.provenance`, held against the other columns. Pure."""

from collections.abc import Iterator

from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Sink
from lakebed.config.schema import DeclaredSchema
from lakebed.partition import Template


def faults(path: KeyPath, schema: DeclaredSchema, sink: Sink | None) -> Iterator[Fault]:
    """Yield the columns that are asked for twice, or whose names are taken."""
    here = (*path, "schema", "provenance")
    wanted = dict.fromkeys(schema.provenance)
    if len(wanted) < len(schema.provenance):
        yield Fault(here, "names a column twice")
    names = {which.column for which in wanted}
    for key, fields in (("fields", schema.fields_), ("hints", schema.hints)):
        for index, one in enumerate(fields):
            if one.name.casefold() in names:
                yield Fault(
                    (*path, "schema", key, index, "name"),
                    f"{one.name} is the column that provenance adds; give this one another name, "
                    f"and add from: [{one.name!r}] to read the field",
                )
    if sink is None or sink.partition_by is None:
        return
    try:
        keys = Template.parse(sink.partition_by.prefix_template).keys
    except ValueError:
        return  # It is reported where the template is checked.
    for key in keys:
        if key.casefold() in names:
            yield Fault(here, f"adds the column {key}, which is a partition column already")
