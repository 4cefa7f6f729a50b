"""Which settings affect a failure: a file that failed under others is worth another try. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace

from blizzard.model.settings import MAX_DEPTH, MAX_LINE_BYTES, PipelineSettings, SourceSettings
from blizzard.model.source.form import Form
from lakebed.columns.schema import AS_WRITTEN, Field, walk
from lakebed.documents.records import FailureStage, SourceRecord
from lakebed.partition import table_schema
from lakebed.types import OnMismatch, UnknownFields


def bases_of(settings: PipelineSettings, source: SourceSettings) -> Mapping[FailureStage, str]:
    """Return, by stage, a digest of the settings that decide what becomes of a file there.

    A stage that is not among them fails for reasons outside of the configuration.
    """
    sink = settings.sink
    template = [(part.key, part.pattern) for part in sink.template.parts] if sink.template else []
    fields = table_schema(settings.schema, sink.template).fields
    columns = [(field.name, field.type.value, field.nullable) for field in fields]
    keys = set(sink.template.keys) if sink.template else set()
    partition = [template, [column for column in columns if column[0] in keys]]
    compression = source.compression.value
    limits = [MAX_LINE_BYTES, MAX_DEPTH]
    form = [asdict(source.form)] if source.form != Form() else []
    return {
        FailureStage.DISCOVER: _digest([partition, sink.timestamp_field]),
        FailureStage.DECOMPRESS: _digest([compression]),
        # A compressed file that is taken for a plain one fails here, too.
        FailureStage.PARSE: _digest(
            [
                *(columns, template, sink.timestamp_field, compression, limits),
                *form,
                *_more(settings, fields),
            ]
        ),
    }


def _more(settings: PipelineSettings, fields: tuple[Field, ...]) -> list[object]:
    """Return what else decides how lines are read; nothing where all of it is as it always was."""
    more: dict[str, object] = {
        field.name: _written(field)
        for field in fields
        if field.is_nested or field.precision or field.reading != AS_WRITTEN
    }
    # Whether they are kept or left out, undeclared fields fail nothing.
    unknown = settings.unknown_fields is UnknownFields.FAIL
    rescued = settings.on_mismatch is OnMismatch.RESCUE
    found = [more, unknown, rescued] if more or unknown or rescued else []
    return found if settings.quarantine is None else [*found, asdict(settings.quarantine)]


def _written(field: Field) -> list[object]:
    inner = (each for _path, each in walk((field,)))
    return [field.shown, *(_reading(one) | {"nullable": one.nullable} for one in inner)]


def _reading(field: Field) -> dict[str, object]:
    """Return how a field is declared to be written; the rest follows from it and the policy."""
    return {key: value for key, value in asdict(field.reading).items() if key != "exact"}


def with_basis(record: SourceRecord, bases: Mapping[FailureStage, str]) -> SourceRecord:
    """Return a record that says, where its file failed, under which settings it did."""
    if record.failure is None or record.gone:
        return record
    basis = bases.get(record.failure.stage)
    return replace(record, failure=replace(record.failure, basis=basis))


def _digest(settings: list[object]) -> str:
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
