"""What mongoexport writes: MongoDB's extended JSON, where a type is a member with a dollar."""

from random import Random
from typing import Any

from tests.support.real_data.kind import (
    Kind,
    Record,
    as_lines,
    hexadecimal,
    is_one_in,
    moment,
    word,
    zulu,
)


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_order(random) for _ in range(size)]


def _order(random: Random) -> Record:
    order: Record = {
        "_id": _oid(random),
        "__v": 0,
        "createdAt": {"$date": zulu(moment(random), digits=3)},
        # Before 1970 and after 9999 the relaxed form is a number of milliseconds.
        "birthday": {"$date": {"$numberLong": str(-random.randrange(10**12))}},
        "customer": random.choice([None, _oid(random)]),
        "total": {"$numberDecimal": f"{random.randrange(10**6) / 100:.2f}"},
        "points": {"$numberLong": str(random.randrange(2**40))},
        "quantity": random.choice([1, 2.5, {"$numberDouble": "NaN"}]),
        "items": [
            {
                "sku": word(random, 6),
                "price": {"$numberDecimal": "9.90"},
                "qty": random.randrange(1, 5),
                "attrs": random.choice([{}, {"color": "red"}, {"size": 42, "fit": None}]),
            }
            for _ in range(random.randrange(4))
        ],
        "tags": random.choice([[], ["new", "vip"], None]),
        "notes": random.choice(["", None, "gift \U0001f381"]),
        "history": [[{"$date": zulu(moment(random), digits=3)}, "created"]],
        "pattern": {"$regularExpression": {"pattern": "^a", "options": "i"}},
        "blob": {"$binary": {"base64": "aGVsbG8=", "subType": "00"}},
        "stamp": {"$timestamp": {"t": int(moment(random).timestamp()), "i": 1}},
    }
    if is_one_in(random, 3):
        order["address"] = _address(random)
    if is_one_in(random, 5):
        order["deletedAt"] = None
    return order


def _oid(random: Random) -> Record:
    return {"$oid": hexadecimal(random, 24)}


def _address(random: Random) -> Any:
    """Return an address: a text in old documents, an object in newer ones."""
    if is_one_in(random, 3):
        return "Hauptstr. 1, Berlin"
    location = {"type": "Point", "coordinates": [13.4, random.choice([52, 52.5])]}
    return {"street": "Hauptstr. 1", "zip": random.choice(["10115", 10115]), "loc": location}


MONGO = Kind(name="mongodb export", records=records, written=as_lines("orders.json"))
