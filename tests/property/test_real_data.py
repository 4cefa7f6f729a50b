"""Files as people have them come in with nothing written down: every value is found again."""

import json
from functools import cache

import pytest

from lakebed.columns.schema import walk
from tests.support.real_data.accounts import (
    Accounts,
    Place,
    accounts,
    inferred,
    is_nameless_or_untold,
    seen_of,
)
from tests.support.real_data.kind import Kind
from tests.support.real_data.kinds import KINDS
from tests.support.real_data.oracle import records_in

SEED = 14
SIZE = 120
FIRST = 20
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@cache
def whole(name: str) -> Accounts:
    """Return what becomes of a kind's records with the columns of all of them."""
    records = named(name).records(SEED, SIZE)
    return accounts(records, inferred(records))


def named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


@each_kind
def test_every_value_is_found_again(kind):
    found = whole(kind.name)
    assert not found.different
    assert found.places[Place.TYPED] > found.places[Place.RESCUED]


@each_kind
def test_only_what_can_have_no_column_is_rescued(kind):
    found = whole(kind.name)
    seen = seen_of(kind.records(SEED, SIZE))
    for path in found.rescued:
        assert is_nameless_or_untold(path, found.columns, seen), path


@each_kind
def test_every_value_is_found_again_with_columns_of_the_first_records_only(kind):
    records = kind.records(SEED, SIZE)
    found = accounts(records, inferred(records[:FIRST]))
    assert not found.different


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("github events", "created_at", "timestamp"),
        ("github events", "payload.commits[].author", "struct<email: string, name: string>"),
        ("cloudtrail", "userIdentity.sessionContext.attributes.creationDate", "timestamp"),
        ("cloudtrail", "requestParameters.policy", "json"),
        ("kubernetes audit", "annotations", "map<string, string>"),
        ("kubernetes audit", "user.extra", "map<string, list<string>>"),
        ("kubernetes audit", "requestObject.metadata.labels", "map<string, string>"),
        ("kubernetes audit", "requestObject.metadata.managedFields[].fieldsV1", "json"),
        ("vpc flow logs", "bytes", "string"),
        ("elasticsearch bulk", "@timestamp", "timestamp"),
        ("elasticsearch bulk", "tags", "json"),
        ("tweets", "coordinates.coordinates", "list<float64>"),
        ("device readings", "readings", "map<string, float64>"),
        ("geojson features", "geometry.coordinates", "json"),
        ("geojson features", "properties.population", "int64"),
        ("llm chats", "messages[].content", "json"),
        ("mongodb export", "createdAt", "struct<$date: timestamp>"),
    ],
)
def test_columns_are_what_a_person_would_write(name, path, expected):
    columns = {path: one.shown for path, one in walk(whole(name).columns)}
    assert columns[path] == expected


@each_kind
def test_the_files_have_these_records_in_the_order_of_their_names(kind):
    files = kind.files(7, 31)
    assert list(files) == sorted(files)
    assert list(records_in(kind, files, json.loads)) == kind.records(7, 31)
