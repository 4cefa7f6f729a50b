"""Values that are gathered one after the other are as if each had been looked at."""

import json
from functools import reduce

import pytest

from blizzard.model.seen import MOST_MEMBERS, NOTHING, Seen
from blizzard.worker.ndjson.look.gather import Gathered
from blizzard.worker.ndjson.look.values import look, parse
from tests.support.real_data.kinds import KINDS


def one_by_one(values) -> Seen:
    return reduce(lambda found, value: found.join(look([value])), values, NOTHING)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_is_the_join_of_a_look_at_each(kind):
    values = [parse(json.dumps(record)) for record in kind.records(3, 40)]
    assert look(values) == one_by_one(values)


def test_names_beyond_a_limit_are_neither_kept_nor_lost():
    gathered = Gathered()
    values = [
        parse(f'{{"n{number}": {number}, "m{number}": 0.5}}') for number in range(MOST_MEMBERS)
    ]
    most = 0
    for value in values:
        gathered.add(value)
        most = max(most, len(gathered._members))
    assert most <= MOST_MEMBERS
    assert gathered.seen() == one_by_one(values)
    objects = gathered.seen().objects
    assert objects is not None
    assert objects.most == 2


def test_what_is_no_json_value_is_refused():
    with pytest.raises(TypeError, match="int is no JSON value"):
        look([1])


def test_arrays_that_are_empty_have_no_elements():
    assert look([parse("[]")]) == Seen(arrays=True, elements=None)
