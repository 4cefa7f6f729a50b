"""Schemas of Delta tables, as the log writes them, and the facts of a table that has one."""

from lakebed.deltalog.delta_types import TableFacts


def field(name, kind="string", nullable=True):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}


def struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def array(kind, nulls=True):
    return {"type": "array", "elementType": kind, "containsNull": nulls}


def mapping(kind, key="string"):
    return {"type": "map", "keyType": key, "valueType": kind, "valueContainsNull": True}


def table_of(schema, parts=(), **configuration):
    return TableFacts(
        version=1, schema=schema, partition_columns=parts, configuration=configuration
    )


def names(schema):
    return [one["name"] for one in schema["fields"]]


def nested(ours, theirs):
    """Whether a name is a plain type here and a nested one there."""
    return any(path[:length] in ours for path in theirs for length in range(1, len(path)))
