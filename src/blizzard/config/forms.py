"""The forms of source files, as written in YAML, checked and made into settings. Pure."""

from collections.abc import Iterator

from blizzard.model.source.form import Form, SkipRule
from lakebed.config.faults import Fault
from lakebed.config.models import KeyPath, Source
from lakebed.types import SourceFormat


def faults(path: KeyPath, source: Source) -> Iterator[Fault]:
    """Refuse a path to records that leads nowhere, and a rule that says nothing."""
    here = (*path, "records")
    if source.records is not None and source.format is not SourceFormat.JSON:
        yield Fault(here, "says where in a document its records are; it needs format: json")
    elif source.records is not None and not all(source.records.split(".")):
        yield Fault(here, "must be keys with a dot between them, as in result.items")
    rule = source.skip_records
    if rule is not None and not (rule.only_key or rule.with_key or rule.without_key):
        yield Fault(
            (*path, "skip_records"),
            "says nothing; it needs only_key, with_key or without_key, each a list of keys",
        )


def form_of(source: Source) -> Form:
    """Return what the files of a source are made of."""
    rule = source.skip_records
    return Form(
        format=source.format,
        records=tuple(source.records.split(".")) if source.records else (),
        skip=SkipRule(
            only_key=tuple(rule.only_key),
            with_key=tuple(rule.with_key),
            without_key=tuple(rule.without_key),
        )
        if rule
        else None,
    )
