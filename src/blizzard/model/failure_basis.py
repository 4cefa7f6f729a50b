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
from lakebed.schema import AS_WRITTEN, Field


def bases_of(settings: PipelineSettings, source: SourceSettings) -> Mapping[Stage, str]:
    """Return, by stage, a digest of the settings that decide what becomes of a file there.

    A stage that is not among them fails for reasons outside of the configuration.
    """
    sink = settings.sink
    template = [(part.key, part.pattern) for part in sink.template.parts] if sink.template else []
    columns = [_basis_of(field) for field in table_schema(settings.schema, sink.template).fields]
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


def _basis_of(field: Field) -> list[object]:
    """Return everything of a field that decides whether a value fits it, at every depth.

    A plain column without more is what it was before there were others, so that a file that failed
    then is not tried again for nothing.
    """
    found: list[object] = [field.name, field.shown, field.nullable]
    if field.reading != AS_WRITTEN:
        found.append(asdict(field.reading))
    if field.inner:
        found.append([_basis_of(inner) for inner in field.inner])
    return found


def _digest(settings: list[object]) -> str:
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
