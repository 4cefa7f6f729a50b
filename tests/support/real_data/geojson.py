"""GeoJSON: one collection of features per file, printed over many lines."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.support.real_data.kind import Kind, Record, halves, hexadecimal, is_one_in, word


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_feature(random, number) for number in range(size)]


def _feature(random: Random, number: int) -> Record:
    feature: Record = {
        "type": "Feature",
        "properties": _properties(random),
        "geometry": None if is_one_in(random, 20) else _geometry(random),
    }
    if not is_one_in(random, 3):
        feature["id"] = random.choice([number, f"way/{number}"])
    if is_one_in(random, 3):
        feature["bbox"] = [-10, -10.0, 10.5, 10]
    return feature


def _properties(random: Random) -> Record:
    """Return the tags of a map's object: strings, mostly, under names that differ."""
    properties: Record = {
        "@id": f"way/{random.randrange(10**9)}",
        "name": random.choice(["Stra\u00dfe des 17. Juni", "\u6771\u4eac\u30bf\u30ef\u30fc", None]),
    }
    if is_one_in(random, 2):
        properties |= {"addr:street": word(random, 8), "addr:housenumber": "12a"}
    if is_one_in(random, 3):
        properties |= {"building": "yes", "building:levels": random.choice(["3", 3, 3.5])}
    if is_one_in(random, 3):
        properties |= {"population": random.randrange(10**7), "area_km2": 891.7}
    if is_one_in(random, 4):
        properties |= {"marker-color": f"#{hexadecimal(random, 6)}", "Name": "Also a name"}
    if is_one_in(random, 5):
        properties |= {"check_date": "2024-05-01", "opening hours": "Mo-Fr 08:00-18:00"}
    return properties


def _geometry(random: Random) -> Record:
    kind = random.choice(["Point", "LineString", "Polygon", "MultiPolygon", "GeometryCollection"])
    if kind == "GeometryCollection":
        return {
            "type": kind,
            "geometries": [
                {"type": "Point", "coordinates": _position(random)},
                {"type": "LineString", "coordinates": _positions(random)},
            ],
        }
    ring = [_positions(random)]
    made: dict[str, Any] = {
        "Point": _position(random),
        "LineString": _positions(random),
        "Polygon": ring,
        "MultiPolygon": [ring],
    }
    return {"type": kind, "coordinates": made[kind]}


def _position(random: Random) -> list[float | int]:
    position: list[float | int] = [random.randrange(-180, 180), random.randrange(9000) / 100]
    return [*position, 34] if is_one_in(random, 5) else position


def _positions(random: Random) -> list[list[float | int]]:
    return [_position(random) for _ in range(random.randrange(2, 5))]


def _written(every: Sequence[Record]) -> Mapping[str, bytes]:
    names = ("berlin.geojson", "tokyo.geojson")
    return {name: _collection(part) for name, part in zip(names, halves(every), strict=True)}


def _collection(features: Sequence[Record]) -> bytes:
    name = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    document = {"type": "FeatureCollection", "crs": name, "features": features}
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


GEOJSON = Kind(
    name="geojson features",
    records=records,
    written=_written,
    source={"format": "json", "records": "features"},
)
