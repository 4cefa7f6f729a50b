"""What a line means in nested columns and in other ways of writing: fields, line, value or failure.

Fields are written as in a configuration. Values are what Arrow gives back, times as text.
"""

from dataclasses import dataclass
from typing import Any

Fields = list[dict[str, Any]]


@dataclass(frozen=True)
class Bad:
    code: str
    path: str


@dataclass(frozen=True)
class Nested:
    name: str
    fields: Fields
    line: str
    expected: Any
    """The row, or why there is none."""
    rescued: str | None = None
    """What is in `_rescued` where what does not fit, and what nobody declared, is kept."""
    row: Any = None
    """The row where what does not fit is kept; None where it is the expected one."""


def one(**declared: Any) -> Fields:
    return [{"name": "v", **declared}]


def refused(name: str, fields: Fields, line: str, code: str) -> Nested:
    """Return a line with a value that does not fit, which is rescued whole."""
    return Nested(name, fields, line, Bad(code, "v"), line, {"v": None})


ID_AND_TAGS = [{"name": "id", "type": "int64"}, {"name": "tags", "type": "list", "items": "string"}]
A: dict[str, Any] = {"type": "struct", "fields": [{"name": "a", "type": "int64"}]}
USER = one(type="struct", fields=ID_AND_TAGS)
TAGS = one(type="list", items="string")
LABELS = one(type="map", values="int32")
DEEP = one(
    type="list",
    items={
        "type": "struct",
        "fields": [{"name": "m", "type": "map", "values": {"type": "list", "items": "int64"}}],
    },
)
STRICT = one(
    type="struct",
    fields=[
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "x", "type": "list", "items": {"type": "int64", "nullable": False}},
    ],
)

CASES = [
    # structs
    Nested("struct", USER, '{"v":{"id":1,"tags":["a"]}}', {"v": {"id": 1, "tags": ["a"]}}),
    Nested("null struct", USER, '{"v":null}', {"v": None}),
    Nested("absent struct", USER, "{}", {"v": None}),
    Nested("empty struct", USER, '{"v":{}}', {"v": {"id": None, "tags": None}}),
    Nested("struct with nulls", USER, '{"v":{"id":null}}', {"v": {"id": None, "tags": None}}),
    refused("string for a struct", USER, '{"v":"x"}', "wrong_type"),
    refused("array for a struct", USER, '{"v":[1]}', "wrong_type"),
    Nested("wrong leaf", USER, '{"v":{"id":"x","tags":[]}}', Bad("wrong_type", "v.id"),
           '{"v.id":"x"}', {"v": {"id": None, "tags": []}}),
    Nested("doubled inner field", USER, '{"v":{"id":1,"id":2}}', Bad("duplicate_field", "v.id"),
           '{"v":{"id":1,"id":2}}', {"v": None}),
    Nested("unknown inner field", USER, '{"v":{"id":1,"x": [1, 2]},"y":1.50}',
           {"v": {"id": 1, "tags": None}}, '{"v.x":[1, 2],"y":1.50}'),
    Nested("unknown null", USER, '{"v":{"id":1,"x":null}}', {"v": {"id": 1, "tags": None}}),
    Nested("odd names", USER, '{"v":{"id":1,"a.b":1,"":2},"v.x":3,"`":4}',
           {"v": {"id": 1, "tags": None}}, '{"v.`a.b`":1,"v.``":2,"`v.x`":3,"````":4}'),
    # lists
    Nested("list", TAGS, '{"v":["a",null,"c"]}', {"v": ["a", None, "c"]}),
    Nested("empty list", TAGS, '{"v":[ ]}', {"v": []}),
    Nested("null list", TAGS, '{"v":null}', {"v": None}),
    Nested("wrong element", TAGS, '{"v":["a", 7 ,"c"]}', Bad("wrong_type", "v[1]"), '{"v[1]":7}',
           {"v": ["a", None, "c"]}),
    refused("object for a list", TAGS, '{"v":{}}', "wrong_type"),
    # maps
    Nested("map", LABELS, '{"v":{"a":1,"b":null}}', {"v": [("a", 1), ("b", None)]}),
    Nested("empty map", LABELS, '{"v":{}}', {"v": []}),
    Nested("odd keys", LABELS, '{"v":{"":1,"a.b":2}}', {"v": [("", 1), ("a.b", 2)]}),
    Nested("key twice", LABELS, '{"v":{"a":1,"a":2}}', Bad("duplicate_field", "v.a"),
           '{"v":{"a":1,"a":2}}', {"v": None}),
    Nested("wrong value", LABELS, '{"v":{"a":1,"b.c":"x"}}', Bad("wrong_type", "v.`b.c`"),
           '{"v.`b.c`":"x"}', {"v": [("a", 1), ("b.c", None)]}),
    # deeper
    Nested("deep", DEEP, '{"v":[{"m":{"k":[1,2]}},null,{}]}',
           {"v": [{"m": [("k", [1, 2])]}, None, {"m": None}]}),
    Nested("wrong deep", DEEP, '{"v":[{"m":{"k":[1,true]}}]}', Bad("wrong_type", "v[0].m.k[1]"),
           '{"v[0].m.k[1]":true}', {"v": [{"m": [("k", [1, None])]}]}),
    Nested("unknown deep", DEEP, '{"v":[{},{"n":{"a":1}}]}', {"v": [{"m": None}, {"m": None}]},
           '{"v[1].n":{"a":1}}'),
    # required inner fields: the next holder that may be null is
    Nested("required inner field missing", STRICT, '{"v":{"x":[1],"y":2}}',
           Bad("required_field_missing", "v.id"), '{"v":{"x":[1],"y":2}}', {"v": None}),
    Nested("required element null", STRICT, '{"v":{"id":1,"x":[1,null]}}',
           Bad("required_field_missing", "v.x[1]"), '{"v.x":[1,null]}',
           {"v": {"id": 1, "x": None}}),
    # decimals
    Nested("decimal", one(type="decimal(5,2)"), '{"v":123.4}', {"v": "123.40"}),
    Nested("decimal integer", one(type="decimal(5,2)"), '{"v":-7}', {"v": "-7.00"}),
    Nested("decimal exponent", one(type="decimal(5,2)"), '{"v":1.25e1}', {"v": "12.50"}),
    Nested("decimal zeros", one(type="decimal(5,2)"), '{"v":1.2300}', {"v": "1.23"}),
    Nested("decimal zero", one(type="decimal(5,2)"), '{"v":0e9}', {"v": "0.00"}),
    refused("decimal fine", one(type="decimal(5,2)"), '{"v":1.234}', "out_of_range"),
    refused("decimal large", one(type="decimal(5,2)"), '{"v":1234}', "out_of_range"),
    refused("decimal huge", one(type="decimal(38,0)"), '{"v":1e999999999}', "out_of_range"),
    refused("decimal text", one(type="decimal(5,2)"), '{"v":"1.2"}', "wrong_type"),
    Nested("decimal of 38 digits", one(type="decimal(38,0)"), '{"v":' + "9" * 38 + "}",
           {"v": "9" * 38}),
    Nested("decimal with zeros beyond all room", one(type="decimal(18,2)"), f'{{"v":1.{"0" * 41}}}',
           {"v": "1.00"}),
    Nested("decimal of zeros and an exponent", one(type="decimal(18,2)"),
           f'{{"v":725{"0" * 39}e-41}}', {"v": "7.25"}),
    refused("decimal that overflows where the point is moved", one(type="decimal(38,38)"),
            '{"v":11.100910019009000}', "out_of_range"),
    refused("decimal too fine by its exponent", one(type="decimal(38,0)"),
            '{"v":9001919009.0910901e-76}', "out_of_range"),
    # small integers
    Nested("int8", one(type="int8"), '{"v":-128}', {"v": -128}),
    refused("int8 beyond", one(type="int8"), '{"v":128}', "out_of_range"),
    Nested("int16", one(type="int16"), '{"v":32767}', {"v": 32767}),
    # times
    Nested("ntz", one(type="timestamp_ntz"), '{"v":"2024-01-02T03:04:05.5"}',
           {"v": "2024-01-02T03:04:05.500000"}),
    refused("ntz with a zone", one(type="timestamp_ntz"),
            '{"v":"2024-01-02T03:04:05Z"}', "wrong_type"),
    Nested("epoch_s", one(type="timestamp", format="epoch_s"), '{"v":1700000000}',
           {"v": "2023-11-14T22:13:20"}),
    Nested("epoch_s with a fraction", one(type="timestamp", format="epoch_s"),
           '{"v":1700000000.123456}', {"v": "2023-11-14T22:13:20.123456"}),
    refused("epoch_s too fine", one(type="timestamp", format="epoch_s"),
            '{"v":1700000000.1234560000000000000001}', "out_of_range"),
    Nested("epoch_ms", one(type="timestamp", format="epoch_ms"), '{"v":-1}',
           {"v": "1969-12-31T23:59:59.999000"}),
    Nested("epoch_us", one(type="timestamp", format="epoch_us"), '{"v":1700000000123456}',
           {"v": "2023-11-14T22:13:20.123456"}),
    refused("epoch_ns", one(type="timestamp", format="epoch_ns"),
            '{"v":1700000000123456789}', "out_of_range"),
    Nested("epoch_ns cut", one(type="timestamp", format="epoch_ns", truncate=True),
           '{"v":1700000000123456789}', {"v": "2023-11-14T22:13:20.123456"}),
    Nested("epoch_ns cut towards the past", one(type="timestamp", format="epoch_ns", truncate=True),
           '{"v":-1}', {"v": "1969-12-31T23:59:59.999999"}),
    refused("epoch beyond all years", one(type="timestamp", format="epoch_ns"),
            '{"v":1e30}', "out_of_range"),
    refused("epoch with an exponent of many digits", one(type="timestamp", format="epoch_s"),
            '{"v":1e99999999999999999999}', "out_of_range"),
    refused("epoch in a string", one(type="timestamp", format="epoch_s"),
            '{"v":"1700000000"}', "wrong_type"),
    Nested("epoch in a string, coerced", one(type="timestamp", format="epoch_s", coerce=True),
           '{"v":"1700000000"}', {"v": "2023-11-14T22:13:20"}),
    Nested("nanoseconds cut", one(type="timestamp", truncate=True),
           '{"v":"2024-01-02T03:04:05.123456789Z"}', {"v": "2024-01-02T03:04:05.123456"}),
    Nested("pattern", one(type="timestamp", format="%d/%b/%Y:%H:%M:%S %z"),
           '{"v":"10/Oct/2000:13:55:36 -0700"}', {"v": "2000-10-10T20:55:36"}),
    Nested("pattern of a tweet", one(type="timestamp", format="%a %b %d %H:%M:%S %z %Y"),
           '{"v":"Wed Oct 10 20:19:24 +0000 2018"}', {"v": "2018-10-10T20:19:24"}),
    refused("weekday of another date", one(type="timestamp", format="%a %b %d %H:%M:%S %z %Y"),
            '{"v":"Thu Oct 10 20:19:24 +0000 2018"}', "out_of_range"),
    Nested("weekday where it was written", one(type="timestamp", format="%A %F %T%z"),
           '{"v":"wednesday 2018-10-10 23:00:00-0700"}', {"v": "2018-10-11T06:00:00"}),
    refused("pattern not met", one(type="timestamp", format="%d.%m.%Y"),
            '{"v":"2024-01-02"}', "wrong_type"),
    refused("pattern with no such day", one(type="date", format="%d.%m.%Y"),
            '{"v":"30.02.2024"}', "out_of_range"),
    Nested("half past noon", one(type="timestamp", format="%m/%d/%y %I:%M %p"),
           '{"v":"12/31/99 12:30 PM"}', {"v": "1999-12-31T12:30:00"}),
    Nested("formats in turn", one(type="timestamp", format=["iso", "epoch_ms", "%d.%m.%Y"]),
           '{"v":"24.12.2020"}', {"v": "2020-12-24T00:00:00"}),
    Nested("formats in turn, a number", one(type="timestamp", format=["iso", "epoch_ms"]),
           '{"v":0}', {"v": "1970-01-01T00:00:00"}),
    Nested("a date in digits", one(type="date", format="%Y%m%d"), '{"v":"20240131"}',
           {"v": "2024-01-31"}),
    Nested("a date of an epoch", one(type="date", format="epoch_s"), '{"v":1700006400}',
           {"v": "2023-11-15"}),
    refused("a date of an epoch by day", one(type="date", format="epoch_s"),
            '{"v":1700006401}', "out_of_range"),
    Nested("a date of a time, cut", one(type="date", truncate=True),
           '{"v":"2024-01-31T23:00:00-02:00"}', {"v": "2024-02-01"}),
    refused("a date of a time", one(type="date"), '{"v":"2024-01-31T00:00:00Z"}', "wrong_type"),
    # coercion
    Nested("integer in a string", one(type="int64", coerce=True), '{"v":"7"}', {"v": 7}),
    Nested("integer with a point", one(type="int64", coerce=True), '{"v":1.0}', {"v": 1}),
    Nested("with an exponent", one(type="int64", coerce=True), '{"v":"12.5e1"}', {"v": 125}),
    refused("no integer", one(type="int64", coerce=True), '{"v":1.5}', "wrong_type"),
    refused("leading zeros", one(type="int64", coerce=True), '{"v":"007"}', "wrong_type"),
    Nested("number to string", one(type="string", coerce=True), '{"v":1.50}', {"v": "1.50"}),
    Nested("boolean to string", one(type="string", coerce=True), '{"v":true}', {"v": "true"}),
    refused("object to string", one(type="string", coerce=True), '{"v":{}}', "wrong_type"),
    Nested("string to boolean", one(type="boolean", coerce=True), '{"v":"true"}', {"v": True}),
    refused("one to boolean", one(type="boolean", coerce=True), '{"v":1}', "wrong_type"),
    Nested("string to float", one(type="float64", coerce=True), '{"v":"0.1"}', {"v": 0.1}),
    refused("not a number", one(type="float64", coerce=True), '{"v":"NaN"}', "wrong_type"),
    Nested("to decimal", one(type="decimal(5,2)", coerce=True), '{"v":"1.5"}', {"v": "1.50"}),
    refused("not coerced", one(type="int64"), '{"v":"7"}', "wrong_type"),
    # null values
    Nested("a dash for null", one(type="int64", null_values=["", "-"]), '{"v":"-"}', {"v": None}),
    Nested("a dash for null in a list",
           one(type="list", items={"type": "string", "null_values": ["-"]}),
           '{"v":["-","a"]}', {"v": [None, "a"]}),
    Nested("a required dash", one(type="string", null_values=["-"], nullable=False), '{"v":"-"}',
           Bad("required_field_missing", "v")),
    # from
    Nested("renamed", [{"name": "v", "type": "int64", "from": "x"}], '{"x":1}', {"v": 1}),
    Nested("flattened", [{"name": "v", "type": "int64", "from": "meta.ts"}],
           '{"meta":{"ts":1,"b":2},"c":3}', {"v": 1}, '{"meta.b":2,"c":3}'),
    Nested("through a null", [{"name": "v", "type": "int64", "from": "meta.ts"}], '{"meta":null}',
           {"v": None}),
    Nested("through no object", [{"name": "v", "type": "int64", "from": "meta.ts"}],
           '{"meta":5}', Bad("wrong_type", "meta"), '{"meta":5}', {"v": None}),
    Nested("of a date in MongoDB", [{"name": "v", "type": "timestamp", "from": "t.$date"}],
           '{"t":{"$date":"2024-01-02T03:04:05Z"}}', {"v": "2024-01-02T03:04:05"}),
    Nested("a name with a dot", [{"name": "v", "type": "int64", "from": ["a.b"]}], '{"a.b":1}',
           {"v": 1}),
    Nested("twice", [{"name": "v", "type": "int64", "from": "u.id"},
                     {"name": "u", "type": "struct", "fields": [{"name": "id", "type": "int64"}]}],
           '{"u":{"id":1,"x":2}}', {"v": 1, "u": {"id": 1}}, '{"u.x":2}'),
    Nested("taken from a struct that is declared without it",
           [{"name": "x", "type": "int64", "from": "m.x"},
            {"name": "m", "type": "struct", "fields": [{"name": "y", "type": "int64"}]}],
           '{"m":{"x":1,"y":2,"z":3}}', {"x": 1, "m": {"y": 2}}, '{"m.z":3}'),
    Nested("two structs of one object",
           [{"name": "u", "type": "struct", "fields": [{"name": "a", "type": "int64"}]},
            {"name": "w", "type": "struct", "from": "u",
             "fields": [{"name": "b", "type": "int64"}]}],
           '{"u":{"a":1,"b":2,"c":3}}', {"u": {"a": 1}, "w": {"b": 2}},
           '{"u.b":2,"u.c":3,"u.a":1}'),
    Nested("a struct out of a struct",
           [{"name": "w", "type": "struct", "fields": [{"name": "b", "type": "int64"}],
             "from": "u.i"},
            {"name": "u", "type": "struct", "fields": [
                {"name": "i", "type": "struct", "fields": [{"name": "a", "type": "int64"}]}]}],
           '{"u":{"i":{"a":1,"b":2,"c":3}}}', {"w": {"b": 2}, "u": {"i": {"a": 1}}},
           '{"u.i.a":1,"u.i.c":3,"u.i.b":2}'),
    Nested("a struct takes from inside what another field takes whole",
           [{"name": "v", "type": "map", "values": "int64", "from": "u.a"},
            {"name": "u", "type": "struct", "fields": [
                {"name": "x", "type": "int64", "from": "a.b"}]}],
           '{"u":{"a":{"b":1,"c":2},"d":3}}', {"v": [("b", 1), ("c", 2)], "u": {"x": 1}},
           '{"u.d":3}'),
    Nested("a struct beside the text of its object",
           [{"name": "x", **A}, {"name": "w", "type": "json", "from": "x"}],
           '{"x":{"a":1,"b":2},"k":4}', {"x": {"a": 1}, "w": '{"a":1,"b":2}'}, '{"k":4}'),
    Nested("the text of an object inside a struct",
           [{"name": "w", "type": "json", "from": "x.q"},
            {"name": "x", "type": "struct", "fields": [{"name": "q", **A}]}],
           '{"x":{"q":{"a":1,"b":2},"k":4}}', {"w": '{"a":1,"b":2}', "x": {"q": {"a": 1}}},
           '{"x.k":4}'),
    Nested("a struct from inside of a text",
           [{"name": "v", "from": "x.q", **A},
            {"name": "w", "type": "json", "from": "x"}],
           '{"x":{"q":{"a":1,"b":2},"k":4}}',
           {"v": {"a": 1}, "w": '{"q":{"a":1,"b":2},"k":4}'}),
    Nested("a list of structs beside its text",
           [{"name": "w", "type": "json", "from": "x"},
            {"name": "x", "type": "list", "items": A}],
           '{"x":[{"a":1},{"b":2}],"k":4}',
           {"w": '[{"a":1},{"b":2}]', "x": [{"a": 1}, {"a": None}]}, '{"k":4}'),
    Nested("taken twice and fitting neither",
           [{"name": "a", "type": "int64", "from": "v"},
            {"name": "b", "type": "float64", "from": "v"}],
           '{"v":"7"}', Bad("wrong_type", "v"), '{"v":"7"}', {"a": None, "b": None}),
    Nested("inside a struct",
           one(type="struct", fields=[{"name": "a", "type": "int64", "from": "b.c"}]),
           '{"v":{"b":{"c":1,"d":2}}}', {"v": {"a": 1}}, '{"v.b.d":2}'),
]  # fmt: skip
