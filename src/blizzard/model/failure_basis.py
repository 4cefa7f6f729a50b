"""Which settings affect a failure: a file that failed under others is worth another try. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace

from blizzard.model.form import Form
from blizzard.model.limits import MAX_DEPTH, MAX_LINE_BYTES
from blizzard.model.settings import PipelineSettings, SourceSettings
from lakebed.documents.entry import SourceRecord, Stage
from lakebed.partition import table_schema


def bases_of(settings: PipelineSettings, source: SourceSettings) -> Mapping[Stage, str]:
    """Return, by stage, a digest of the settings that decide what becomes of a file there.

    A stage that is not among them fails for reasons outside of the configuration.
    """
    sink = settings.sink
    template = [(part.key, part.pattern) for part in sink.template.parts] if sink.template else []
    columns = [
        (field.name, field.type.value, field.nullable)
        for field in table_schema(settings.schema, sink.template).fields
    ]
    keys = set(sink.template.keys) if sink.template else set()
    partition = [template, [column for column in columns if column[0] in keys]]
    compression = source.compression.value
    limits = [MAX_LINE_BYTES, MAX_DEPTH]
    form = [asdict(source.form)] if source.form != Form() else []
    return {
        Stage.DISCOVER: _digest([partition, sink.timestamp_field]),
        Stage.DECOMPRESS: _digest([compression]),
        # A compressed file that is taken for a plain one fails here, too.
        Stage.PARSE: _digest([columns, template, sink.timestamp_field, compression, limits, *form]),
    }


def with_basis(record: SourceRecord, bases: Mapping[Stage, str]) -> SourceRecord:
    """Return a record that says, where its file failed, under which settings it did."""
    if record.failure is None or record.gone:
        return record
    basis = bases.get(record.failure.stage)
    return replace(record, failure=replace(record.failure, basis=basis))


def _digest(settings: list[object]) -> str:
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
