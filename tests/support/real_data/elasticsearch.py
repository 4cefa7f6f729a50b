"""The bodies of Elasticsearch bulk requests: before each document a line says what to do."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.support.real_data.kind import (
    Kind,
    Record,
    halves,
    hexadecimal,
    ipv4,
    is_one_in,
    line,
    moment,
    word,
    zulu,
)

ACTIONS = ("index", "create", "update", "delete")


def records(seed: int, size: int) -> list[Record]:
    """Return the documents, as Filebeat and its modules have them."""
    random = Random(seed)
    return [_document(random) for _ in range(size)]


def _document(random: Random) -> Record:
    at = moment(random)
    document: Record = {
        "@timestamp": zulu(at, digits=3),
        "@version": "1",
        "message": f"GET /{word(random, 6)} \u2192 200\ttook {random.randrange(900)}ms",
        "tags": random.choice(["beats_input", ["beats_input", "_grokparsefailure"], []]),
        "host": {"name": f"web-{random.randrange(9)}", "ip": [ipv4(random), "fe80::1"]},
        "agent": {"type": "filebeat", "version": "8.13.0", "ephemeral_id": hexadecimal(random, 8)},
        "ecs": {"version": "8.0.0"},
        "log": {"offset": random.randrange(10**9), "file": {"path": "/var/log/web.log"}},
        "event.dataset": "web.access",
        "http": {
            "response": {
                "status_code": random.choice([200, 404, "200"]),
                "bytes": random.randrange(10**6),
            }
        },
        "geoip": _place(random),
        "error": None,
    }
    if is_one_in(random, 4):
        # Some programs send an object where others send a text.
        document["error"] = random.choice(["timeout", {"message": "timeout", "code": 110}])
    if is_one_in(random, 3):
        document["labels"] = {f"{word(random, 5)}": word(random, 4), "env": "prod"}
    return document


def _place(random: Random) -> Record:
    if is_one_in(random, 4):
        return {}
    location: Any = {"lat": 52.52, "lon": random.choice([13.405, 13])}
    if is_one_in(random, 3):
        location = [13.405, 52.52]
    return {"country_iso_code": "DE", "city_name": "München", "location": location}


def _written(every: Sequence[Record]) -> Mapping[str, bytes]:
    names = ("bulk-000001.ndjson", "bulk-000002.ndjson")
    return {name: _bulk(part) for name, part in zip(names, halves(every), strict=True)}


def _bulk(documents: Sequence[Record]) -> bytes:
    found = []
    for number, document in enumerate(documents):
        if number % 7 == 3:
            found.append(line({"delete": {"_index": "logs", "_id": str(number - 1)}}))
        action: Record = {"_index": "logs-2024.05.10", "_id": str(number)}
        found += [line({ACTIONS[number % 2]: action if number % 5 else {}}), line(document)]
    return "".join(f"{each}\n" for each in found).encode()


ELASTICSEARCH = Kind(
    name="elasticsearch bulk",
    records=records,
    written=_written,
    source={"skip_records": {"only_key": list(ACTIONS)}},
)
