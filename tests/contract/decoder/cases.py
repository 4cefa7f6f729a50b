"""What every line means, as data: input, declared type, and the values or the failure.

The declared field is called `v`. Values are what Arrow gives back; timestamps and dates are
written as text here and compared as text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakebed.types import FieldType

STRING, BOOLEAN = FieldType.STRING, FieldType.BOOLEAN
INT32, INT64 = FieldType.INT32, FieldType.INT64
FLOAT32, FLOAT64 = FieldType.FLOAT32, FieldType.FLOAT64
TIMESTAMP, DATE = FieldType.TIMESTAMP, FieldType.DATE
JSON, BINARY = FieldType.JSON, FieldType.BINARY

Value = str | int | float | bool | bytes | None


@dataclass(frozen=True)
class Bad:
    code: str
    line: int = 1
    field: str | None = None


@dataclass(frozen=True)
class Case:
    name: str
    type: FieldType
    data: bytes
    expected: tuple[Value, ...] | Bad
    nullable: bool = True
    dropped: Mapping[str, int] = field(default_factory=dict)
    blank: int = 0
    only_at_start: bool = False  # means something else in the middle of a file
    exact: bool = False  # integers that a float cannot hold do not fit


GOOD: Mapping[FieldType, tuple[str, Value]] = {
    STRING: ('"good"', "good"),
    INT32: ("7", 7),
    INT64: ("7", 7),
    FLOAT32: ("0.5", 0.5),
    FLOAT64: ("0.5", 0.5),
    BOOLEAN: ("true", True),
    TIMESTAMP: ('"2024-01-02T03:04:05Z"', "2024-01-02T03:04:05"),
    DATE: ('"2024-01-02"', "2024-01-02"),
    JSON: ('{"a": [1, 2]}', '{"a": [1, 2]}'),
    BINARY: ('"aGk="', b"hi"),
}

WRONG, RANGE, SYNTAX, TEXT = "wrong_type", "out_of_range", "not_json", "not_utf8"

# One value in one line: the type, the value as it is written, what it becomes or why it does not.
TOKENS: list[tuple[FieldType, str, Value | Bad]] = [
    # strings are strings only
    (STRING, '"x"', "x"),
    (STRING, '""', ""),
    (STRING, '"7"', "7"),
    (STRING, '"ünï 🎉"', "ünï 🎉"),
    (STRING, r'"\ud83c\udf89 \u00fc"', "🎉 ü"),
    (STRING, r'"a\u0000b"', "a\x00b"),
    (STRING, r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
    (STRING, '"NaN"', "NaN"),
    (STRING, '"x, Infinity: -Infinity"', "x, Infinity: -Infinity"),
    (STRING, '"{[{["', "{[{["),
    (STRING, '"}null{"', "}null{"),
    (STRING, '"\ufeff"', "\ufeff"),
    (STRING, '"\u2028\x7f\x85"', "\u2028\x7f\x85"),
    (STRING, "7", Bad(WRONG)),
    (STRING, "1.5", Bad(WRONG)),
    (STRING, "true", Bad(WRONG)),
    (STRING, "{}", Bad(WRONG)),
    (STRING, '["x"]', Bad(WRONG)),
    (STRING, r'"\ud83c"', Bad(TEXT)),
    (STRING, r'"\udf89"', Bad(TEXT)),
    (STRING, r'"\udf89\ud83c"', Bad(TEXT)),
    (STRING, r'"\ud83cx"', Bad(TEXT)),
    (STRING, '"a\x00b"', Bad(SYNTAX)),
    (STRING, '"a\tb"', Bad(SYNTAX)),
    (STRING, '"a\rb"', Bad(SYNTAX)),
    (STRING, r'"\x"', Bad(SYNTAX)),
    (STRING, r'"\u12"', Bad(SYNTAX)),
    (STRING, r'"\u 123"', Bad(SYNTAX)),
    (STRING, r'"\u+123"', Bad(SYNTAX)),
    (STRING, "'x'", Bad(SYNTAX)),
    (STRING, '"x', Bad(SYNTAX)),
    # integers are integer tokens in range
    (INT64, "0", 0),
    (INT64, "-0", 0),
    (INT64, "9223372036854775807", 2**63 - 1),
    (INT64, "-9223372036854775808", -(2**63)),
    (INT64, "9223372036854775808", Bad(RANGE)),
    (INT64, "-9223372036854775809", Bad(RANGE)),
    (INT64, "9" * 5000, Bad(RANGE)),
    (INT64, "1.5", Bad(WRONG)),
    (INT64, "1.0", Bad(WRONG)),
    (INT64, "1e2", Bad(WRONG)),
    (INT64, "1E5", Bad(WRONG)),
    (INT64, "1e400", Bad(WRONG)),
    (INT64, '"7"', Bad(WRONG)),
    (INT64, "true", Bad(WRONG)),
    (INT64, "[7]", Bad(WRONG)),
    (INT64, "NaN", Bad(SYNTAX)),
    (INT64, "01", Bad(SYNTAX)),
    (INT64, "-01", Bad(SYNTAX)),
    (INT64, "+1", Bad(SYNTAX)),
    (INT64, "1.", Bad(SYNTAX)),
    (INT64, ".5", Bad(SYNTAX)),
    (INT64, "-", Bad(SYNTAX)),
    (INT64, "1e", Bad(SYNTAX)),
    (INT64, "0x1F", Bad(SYNTAX)),
    (INT64, "1_000", Bad(SYNTAX)),
    (INT64, "\u0661", Bad(SYNTAX)),
    (INT64, "1 2", Bad(SYNTAX)),
    (INT64, "", Bad(SYNTAX)),
    (INT32, "2147483647", 2**31 - 1),
    (INT32, "-2147483648", -(2**31)),
    (INT32, "2147483648", Bad(RANGE)),
    (INT32, "-2147483649", Bad(RANGE)),
    (INT32, "1.0", Bad(WRONG)),
    # floats take the nearest value; nothing becomes infinite
    (FLOAT64, "1", 1.0),
    (FLOAT64, "0.1", 0.1),
    (FLOAT64, "-0", -0.0),
    (FLOAT64, "-0.0", -0.0),
    (FLOAT64, "1E5", 1e5),
    (FLOAT64, "1e+2", 100.0),
    (FLOAT64, "5e-324", 5e-324),
    (FLOAT64, "1e-400", 0.0),
    (FLOAT64, "1.7976931348623157e308", 1.7976931348623157e308),
    (FLOAT64, "9007199254740993", 9007199254740992.0),
    (FLOAT64, "9007199254740993.00000000000000000000001", 9007199254740994.0),
    (FLOAT64, "1" + "0" * 300, 1e300),
    (FLOAT64, "0e99999999999999999999", 0.0),
    (FLOAT64, "1e400", Bad(RANGE)),
    (FLOAT64, "-1e400", Bad(RANGE)),
    (FLOAT64, "1" + "0" * 5000, Bad(RANGE)),
    (FLOAT64, "NaN", Bad(SYNTAX)),
    (FLOAT64, "-NaN", Bad(SYNTAX)),
    (FLOAT64, "Infinity", Bad(SYNTAX)),
    (FLOAT64, "-Infinity", Bad(SYNTAX)),
    (FLOAT64, "Inf", Bad(SYNTAX)),
    (FLOAT64, "-Inf", Bad(SYNTAX)),
    (FLOAT64, "nan", Bad(SYNTAX)),
    (FLOAT64, '"NaN"', Bad(WRONG)),
    (FLOAT64, '"1.5"', Bad(WRONG)),
    (FLOAT64, "false", Bad(WRONG)),
    (FLOAT64, "{}", Bad(WRONG)),
    (FLOAT32, "0.1", 0.10000000149011612),
    (FLOAT32, "-0", -0.0),
    (FLOAT32, "16777217", 16777216.0),
    (FLOAT32, "16777217.0000000000000001", 16777218.0),
    (FLOAT32, "3.4028234663852886e38", 3.4028234663852886e38),
    (FLOAT32, "3.40282356779733661637539395458142568447e38", 3.4028234663852886e38),
    (FLOAT32, "3.40282356779733661637539395458142568448e38", Bad(RANGE)),
    (FLOAT32, "1e39", Bad(RANGE)),
    (FLOAT32, "1e400", Bad(RANGE)),
    (FLOAT32, "1e-50", 0.0),
    (FLOAT32, "NaN", Bad(SYNTAX)),
    # booleans
    (BOOLEAN, "true", True),
    (BOOLEAN, "false", False),
    (BOOLEAN, '"true"', Bad(WRONG)),
    (BOOLEAN, "0", Bad(WRONG)),
    (BOOLEAN, "1", Bad(WRONG)),
    (BOOLEAN, "True", Bad(SYNTAX)),
    (BOOLEAN, "tru", Bad(SYNTAX)),
    (BOOLEAN, "truex", Bad(SYNTAX)),
    # timestamps
    (TIMESTAMP, '"2024-01-02T03:04:05Z"', "2024-01-02T03:04:05"),
    (TIMESTAMP, '"2024-01-02 03:04:05Z"', "2024-01-02T03:04:05"),
    (TIMESTAMP, '"2024-01-02T03:04:05"', "2024-01-02T03:04:05"),
    (TIMESTAMP, '"2024-01-02T03:04Z"', "2024-01-02T03:04:00"),
    (TIMESTAMP, '"2024-01-02T03:04"', "2024-01-02T03:04:00"),
    (TIMESTAMP, '"2024-01-02"', "2024-01-02T00:00:00"),
    (TIMESTAMP, '"2024-01-02T03:04:05+01:30"', "2024-01-02T01:34:05"),
    (TIMESTAMP, '"2024-01-02T03:04:05-0130"', "2024-01-02T04:34:05"),
    (TIMESTAMP, '"2024-01-02T03:04:05+05"', "2024-01-01T22:04:05"),
    (TIMESTAMP, '"2024-01-02T03:04-05"', "2024-01-02T08:04:00"),
    (TIMESTAMP, '"2024-01-02T03:04:05-00:00"', "2024-01-02T03:04:05"),
    (TIMESTAMP, '"2024-01-02T03:04:05+23:59"', "2024-01-01T03:05:05"),
    (TIMESTAMP, r'"2024-01-02\u005403:04:05Z"', "2024-01-02T03:04:05"),
    *[
        (TIMESTAMP, f'"2024-01-02T03:04:05.{"123456"[:digits]}{zone}"', stamp)
        for zone in ("Z", "")
        for digits in range(1, 7)
        for stamp in ["2024-01-02T03:04:05." + "123456"[:digits].ljust(6, "0")]
    ],
    (TIMESTAMP, '"2024-01-02T03:04:05.1234560Z"', "2024-01-02T03:04:05.123456"),
    (TIMESTAMP, '"2024-01-02T03:04:05.123456000"', "2024-01-02T03:04:05.123456"),
    (TIMESTAMP, '"2024-01-02T03:04:05.1234567Z"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T03:04:05.12345678Z"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T03:04:05.123456789Z"', Bad(RANGE)),
    (TIMESTAMP, '"0001-01-01T00:00:00Z"', "0001-01-01T00:00:00"),
    (TIMESTAMP, '"9999-12-31T23:59:59.999999Z"', "9999-12-31T23:59:59.999999"),
    (TIMESTAMP, '"0001-01-01T00:00:00-23:59"', "0001-01-01T23:59:00"),
    (TIMESTAMP, '"0001-01-01T00:00:00+00:01"', Bad(RANGE)),
    (TIMESTAMP, '"9999-12-31T23:59:59-00:01"', Bad(RANGE)),
    (TIMESTAMP, '"0000-01-01T00:00:00Z"', Bad(RANGE)),
    (TIMESTAMP, '"0000-12-31T23:59:59-01:00"', Bad(RANGE)),
    (TIMESTAMP, '"10000-01-01T00:00:00Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-02-30T00:00:00Z"', Bad(RANGE)),
    (TIMESTAMP, '"2024-13-01T00:00:00Z"', Bad(RANGE)),
    (TIMESTAMP, '"2016-12-31T23:59:60Z"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T24:00:00Z"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T03:60:00Z"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T03:04:05+24:00"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T03:04:05+01:60"', Bad(RANGE)),
    (TIMESTAMP, '"2024-01-02T03"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03+01"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03+0100"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03+01:00"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05."', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05.Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05,5Z"', "2024-01-02T03:04:05.500000"),
    (TIMESTAMP, '"2024-01-02 03:04:05 UTC"', "2024-01-02T03:04:05"),
    (TIMESTAMP, '"2024-01-02T03:04:05.25UTC"', "2024-01-02T03:04:05.250000"),
    (TIMESTAMP, '"2024-01-02 03:04:05 GMT"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02 UTC"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04.5Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02t03:04:05z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05 Z"', Bad(WRONG)),
    (TIMESTAMP, '" 2024-01-02T03:04:05Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05Z\\n"', Bad(WRONG)),
    (TIMESTAMP, '"2024-1-2T03:04:05Z"', Bad(WRONG)),
    (TIMESTAMP, '"20240102T030405Z"', Bad(WRONG)),
    (TIMESTAMP, '"2024-01-02T03:04:05 Europe/Berlin"', Bad(WRONG)),
    (TIMESTAMP, '"\u0662024-01-02T03:04:05Z"', Bad(WRONG)),
    (TIMESTAMP, '""', Bad(WRONG)),
    (TIMESTAMP, "1704164645", Bad(WRONG)),
    (TIMESTAMP, "1704164645.5", Bad(WRONG)),
    # dates
    (DATE, '"2024-02-29"', "2024-02-29"),
    (DATE, '"0001-01-01"', "0001-01-01"),
    (DATE, '"9999-12-31"', "9999-12-31"),
    (DATE, '"2024-02-30"', Bad(RANGE)),
    (DATE, '"2023-02-29"', Bad(RANGE)),
    (DATE, '"0000-01-01"', Bad(RANGE)),
    (DATE, '"2024-00-01"', Bad(RANGE)),
    (DATE, '"2024-1-1"', Bad(WRONG)),
    (DATE, '"2024-01-01T00:00:00Z"', Bad(WRONG)),
    (DATE, '"20240101"', Bad(WRONG)),
    (DATE, '"2024/01/01"', Bad(WRONG)),
    (DATE, '"2024-01-01 "', Bad(WRONG)),
    (DATE, '"-024-01-01"', Bad(WRONG)),
    (DATE, "19724", Bad(WRONG)),
    # json keeps the text as it is written
    (JSON, '{"b":1,  "a":[1.0e0,\t-0]}', '{"b":1,  "a":[1.0e0,\t-0]}'),
    (JSON, '"x\\u0041"', '"x\\u0041"'),
    (JSON, "1.50", "1.50"),
    (JSON, "true", "true"),
    (JSON, r'{"s":"\ud800"}', r'{"s":"\ud800"}'),
    (JSON, "9" * 5000, "9" * 5000),
    (JSON, "[" + "9" * 5000 + "]", "[" + "9" * 5000 + "]"),
    (JSON, "[NaN]", Bad(SYNTAX)),
    (JSON, '{"a":Infinity}', Bad(SYNTAX)),
    (JSON, "[1,]", Bad(SYNTAX)),
    (JSON, "[01]", Bad(SYNTAX)),
    # binary is base64
    (BINARY, '"aGk="', b"hi"),
    (BINARY, '""', b""),
    (BINARY, '"+/+/"', b"\xfb\xff\xbf"),
    (BINARY, '"aGk"', Bad(WRONG)),
    (BINARY, '"aG k="', Bad(WRONG)),
    (BINARY, '"aGk=="', Bad(WRONG)),
    # HOLES W26: nothing that is written is dropped, be it padding or bits behind the last byte
    (BINARY, '"AAAA"', b"\x00\x00\x00"),
    (BINARY, '"AAAA="', Bad(WRONG)),
    (BINARY, '"AAAA=="', Bad(WRONG)),
    (BINARY, '"AAAA===="', Bad(WRONG)),
    (BINARY, '"="', Bad(WRONG)),
    (BINARY, '"===="', Bad(WRONG)),
    (BINARY, '"aA=="', b"h"),
    (BINARY, '"aB=="', Bad(WRONG)),
    (BINARY, '"aA="', Bad(WRONG)),
    (BINARY, '"aGl="', Bad(WRONG)),
    (BINARY, '"aGk=aGk="', Bad(WRONG)),
    (BINARY, '"aGk=\\n"', Bad(WRONG)),
    (BINARY, '"-_-_"', Bad(WRONG)),
    (BINARY, '"ü==="', Bad(WRONG)),
    (BINARY, "7", Bad(WRONG)),
    # null is null in any nullable field
    *[(kind, "null", None) for kind in GOOD],
]

# Codes that are about a value name its field; those about the line do not.
ABOUT_THE_FIELD = {WRONG, RANGE, TEXT, "required_field_missing"}


def _token_cases(
    tokens: list[tuple[FieldType, str, Value | Bad]], *, exact: bool = False
) -> Iterator[Case]:
    for number, (kind, token, expected) in enumerate(tokens):
        name = f"{number}-{'exact ' if exact else ''}{kind}-{token[:30]}"
        data = f'{{"v":{token}}}\n'.encode()
        if isinstance(expected, Bad):
            outcome = Bad(expected.code, 1, "v" if expected.code in ABOUT_THE_FIELD else None)
            yield Case(name, kind, data, outcome, exact=exact)
        else:
            yield Case(name, kind, data, (expected,), exact=exact)


# As a float column takes them that may not round integers.
EXACT_TOKENS: list[tuple[FieldType, str, Value | Bad]] = [
    (FLOAT64, "7", 7.0),
    (FLOAT64, "-0", -0.0),
    (FLOAT64, "0.1", 0.1),
    (FLOAT64, "0.12345678901234567890", 0.12345678901234567890),
    (FLOAT64, "9007199254740991", 9007199254740991.0),
    (FLOAT64, "-9007199254740992", -9007199254740992.0),
    (FLOAT64, "9007199254740994", 9007199254740994.0),
    (FLOAT64, "1152921504606846976", 1152921504606846976.0),
    (FLOAT64, "1" + "0" * 22, 1e22),
    (FLOAT64, "9007199254740993.0", 9007199254740992.0),
    (FLOAT64, "9007199254740993e0", 9007199254740992.0),
    (FLOAT64, "9007199254740993", Bad(RANGE)),
    (FLOAT64, "-9007199254740993", Bad(RANGE)),
    (FLOAT64, "9223372036854775807", Bad(RANGE)),
    (FLOAT64, "123456789012345678901234567890", Bad(RANGE)),
    (FLOAT64, "1" + "0" * 23, Bad(RANGE)),
    (FLOAT64, "1" + "0" * 5000, Bad(RANGE)),
    (FLOAT64, '"7"', Bad(WRONG)),
    (FLOAT32, "9999999", 9999999.0),
    (FLOAT32, "0.1", 0.10000000149011612),
    (FLOAT32, "16777217.0", 16777216.0),
    (FLOAT32, "-16777216", -16777216.0),
    (FLOAT32, "16777218", 16777218.0),
    (FLOAT32, "16777217", Bad(RANGE)),
    (FLOAT32, "-16777219", Bad(RANGE)),
    (FLOAT32, "9007199254740993", Bad(RANGE)),
    (FLOAT32, "1" + "0" * 39, Bad(RANGE)),
]


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


MISSING = Bad("required_field_missing", 1, "v")
NO_JSON = Bad("not_json")
NO_OBJECT = Bad("not_an_object")
TOO_DEEP = Bad("too_deep")

LINES: list[Case] = [
    # null and missing
    Case("required null", INT64, b'{"v":null}\n', MISSING, nullable=False),
    Case("required missing", INT64, b"{}\n", MISSING, nullable=False),
    Case("required json null", JSON, b'{"v":null}\n', MISSING, nullable=False),
    Case("optional missing", INT64, b"{}\n", (None,)),
    Case("case of the name", INT64, b'{"V":1}\n', MISSING, nullable=False),
    # names
    Case("escaped name", INT64, b'{"\\u0076":1}\n', (1,)),
    Case("escaped name twice", INT64, b'{"\\u0076":1,"v":2}\n', Bad("duplicate_field", 1, "v")),
    Case("declared twice", INT64, b'{"v":1,"v":1}\n', Bad("duplicate_field", 1, "v")),
    Case("twice, once null", INT64, b'{"v":null,"v":1}\n', Bad("duplicate_field", 1, "v")),
    Case("undeclared twice", INT64, b'{"x":1,"v":1,"x":2}\n', Bad("duplicate_field", 1, "x")),
    Case("undeclared null twice", INT64, b'{"x":null,"x":null}\n', Bad("duplicate_field", 1, "x")),
    Case("nested twice", INT64, b'{"v":1,"x":{"a":1,"a":2}}\n', (1,), dropped={"x": 1}),
    Case("empty name", INT64, b'{"":1,"v":1}\n', (1,), dropped={"``": 1}),
    Case("name with NUL", INT64, b'{"v\\u0000":1,"v":1}\n', (1,), dropped={"v\x00": 1}),
    Case("name in half", INT64, b'{"\\ud800":1,"v":1}\n', Bad("not_utf8")),
    Case("name not UTF-8", INT64, b'{"\xff":1,"v":1}\n', Bad("not_utf8")),
    Case("name without quotes", INT64, b"{v:1}\n", NO_JSON),
    # undeclared fields are counted, and they must be JSON too
    Case(
        "undeclared",
        INT64,
        b'{"v":1,"x":"a","y":1}\n{"x":null,"v":2}\n{"y":true,"v":3}\n',
        (1, 2, 3),
        dropped={"x": 1, "y": 2},
    ),
    Case("undeclared nested", INT64, b'{"v":1,"x":{"a":[{}]}}\n', (1,), dropped={"x": 1}),
    Case("undeclared 1e400", INT64, b'{"v":1,"x":1e400}\n', (1,), dropped={"x": 1}),
    Case("undeclared long", INT64, b'{"v":1,"x":' + b"9" * 5000 + b"}\n", (1,), dropped={"x": 1}),
    Case("undeclared half", INT64, b'{"v":1,"x":"\\ud800"}\n', (1,), dropped={"x": 1}),
    Case("undeclared NaN", INT64, b'{"v":1,"x":NaN}\n', NO_JSON),
    Case("undeclared -Inf", INT64, b'{"v":1,"x": -Inf}\n', NO_JSON),
    Case("undeclared Infinity", INT64, b'{"v":1,"x":Infinity}\n', NO_JSON),
    Case("undeclared -Infinity", INT64, b'{"v":1,"x":-Infinity}\n', NO_JSON),
    Case("undeclared nested NaN", INT64, b'{"v":1,"x":{"a":NaN}}\n', NO_JSON),
    Case("undeclared list NaN", INT64, b'{"v":1,"x":[1.5,NaN]}\n', NO_JSON),
    Case("undeclared list -Inf", INT64, b'{"v":1,"x":[[-Infinity]]}\n', NO_JSON),
    Case("undeclared 01", INT64, b'{"v":1,"x":01}\n', NO_JSON),
    Case("undeclared not UTF-8", INT64, b'{"v":1,"x":"\xff"}\n', Bad("not_utf8")),
    Case("undeclared surrogate bytes", INT64, b'{"x":"\xed\xa0\x80"}\n', Bad("not_utf8")),
    Case("undeclared tab", INT64, b'{"v":1,"x":"\t"}\n', NO_JSON),
    Case("undeclared and bad", INT64, b'{"v":1.5,"x":1}\n', Bad("wrong_type", 1, "v")),
    # lines and records
    Case("two on a line", INT64, b'{"v":1}{"v":2}\n', NO_JSON),
    Case("two on a line, space", INT64, b'{"v":1} {"v":2}\n', NO_JSON),
    Case("two on a line, comma", INT64, b'{"v":1},{"v":2}\n', NO_JSON),
    Case("two and a blank", INT64, b'{"v":1}{"v":2}\n\n', NO_JSON),
    Case("null between", INT64, b'{"v":1}null{"v":2}\n', NO_JSON),
    Case("one over two", INT64, b'{"v":\n1}\n', NO_JSON),
    Case("one over two, two on one", INT64, b'{"v":1}{"v":2}\n{"v":\n3}\n', NO_JSON),
    Case("nested over two, two on one", INT64, b'{"x":\n{}}\n{"v":1}{"v":2}\n', NO_JSON),
    Case("newline in a string", STRING, b'{"v":"a\nb"}\n', NO_JSON),
    Case("trailing text", INT64, b'{"v":1}x\n', NO_JSON),
    Case("trailing brace", INT64, b'{"v":1}}\n', NO_JSON),
    Case("trailing comma", INT64, b'{"v":1,}\n', NO_JSON),
    Case("leading comma", INT64, b'{,"v":1}\n', NO_JSON),
    Case("comment", INT64, b'{"v":1/*x*/}\n', NO_JSON),
    Case("unclosed", INT64, b'{"v":1\n', NO_JSON),
    Case("null line", INT64, b"null\n", NO_OBJECT),
    Case("null lines", INT64, b"null\nnull\n", NO_OBJECT),
    Case("list line", INT64, b"[]\n", NO_OBJECT),
    Case("list of records", INT64, b'[{"v":1}]\n', NO_OBJECT),
    Case("number line", INT64, b"1\n", NO_OBJECT),
    Case("string line", INT64, b'"x"\n', NO_OBJECT),
    Case("word line", INT64, b"hello\n", NO_JSON),
    Case("NaN line", INT64, b"NaN\n", NO_JSON),
    Case("empty object", INT64, b"{}\n", (None,)),
    Case("second line", INT64, b'{"v":1}\n{"v":x}\n', Bad("not_json", 2)),
    Case("after blanks", INT64, b'\n \n{"v":1.5}\n', Bad("wrong_type", 3, "v")),
    # space
    Case("blank lines", INT64, b'\n{"v":1}\n\n \t\r\n{"v":2}\n\n', (1, 2), blank=4),
    Case("only blank", INT64, b"\n\n", (), blank=2),
    Case("space around", INT64, b' \t{ "v" :\t1 } \r\n', (1,)),
    Case("return inside", INT64, b'{"v":\r1}\n', (1,)),
    Case("CRLF", INT64, b'{"v":1}\r\n{"v":2}\r\n\r\n', (1, 2), blank=1),
    Case("form feed line", INT64, b"\x0c\n", NO_JSON),
    Case("vertical tab line", INT64, b"\x0b\n", NO_JSON),
    Case("form feed inside", INT64, b'{"v":\x0c1}\n', NO_JSON),
    Case("no-break space", INT64, b'{"v":\xc2\xa01}\n', NO_JSON),
    Case("no-break space line", INT64, b"\xc2\xa0\n", NO_JSON),
    Case("NUL line", INT64, b"\x00\n", NO_JSON),
    Case("NUL after", INT64, b'{"v":1}\x00\n', NO_JSON),
    Case("NUL inside", INT64, b'{"v":1\x00}\n', NO_JSON),
    Case("no newline", INT64, b'{"v":1}\n{"v":2}', (1, 2)),
    Case("no newline, bad", INT64, b'{"v":1}\n{"v":2', Bad("not_json", 2)),
    Case("blank without newline", INT64, b'{"v":1}\n  ', (1,), blank=1),
    Case("nothing", INT64, b"", ()),
    # byte order mark
    Case("mark", INT64, b'\xef\xbb\xbf{"v":1}\n', (1,), only_at_start=True),
    Case("mark alone", INT64, b"\xef\xbb\xbf", (), only_at_start=True),
    Case("two marks", INT64, b'\xef\xbb\xbf\xef\xbb\xbf{"v":1}\n', NO_JSON),
    Case("mark later", INT64, b'{"v":1}\n\xef\xbb\xbf{"v":2}\n', Bad("not_json", 2)),
    Case("half a mark", INT64, b'\xef\xbb{"v":1}\n', Bad("not_utf8")),
    # text
    Case("not UTF-8", STRING, b'{"v":"\xff"}\n', Bad("not_utf8")),
    Case("Latin-1", STRING, b'{"v":"\xfc"}\n', Bad("not_utf8")),
    Case("overlong", STRING, b'{"v":"\xc0\x80"}\n', Bad("not_utf8")),
    Case("cut character", STRING, b'{"v":"\xf0\x9f\x8e"}\n', Bad("not_utf8")),
    Case("UTF-16", INT64, '{"v":1}\n'.encode("utf-16"), Bad("not_utf8")),
    # nesting
    Case("100 deep", INT64, b'{"v":1,"x":' + _nested(100) + b"}\n", (1,), dropped={"x": 1}),
    Case("300 deep", INT64, b'{"v":1,"x":' + _nested(300) + b"}\n", (1,), dropped={"x": 1}),
    Case("1,000 deep", INT64, b'{"v":1,"x":' + _nested(1000) + b"}\n", TOO_DEEP),
    Case("100,000 deep", INT64, b'{"v":1,"x":' + _nested(100_000) + b"}\n", TOO_DEEP),
    Case("100,000 deep objects", INT64, b'{"v":' * 100_000 + b"1" + b"}" * 100_000, TOO_DEEP),
    Case("100,000 open", INT64, b"[" * 100_000 + b"\n", TOO_DEEP),
    Case("300 deep json", JSON, b'{"v":' + _nested(300) + b"}\n", (_nested(300).decode(),)),
    Case("100,000 deep json", JSON, b'{"v":' + _nested(100_000) + b"}\n", TOO_DEEP),
    Case("wide", INT64, b'{"v":1,"x":[' + b"[]," * 9999 + b"[]]}\n", (1,), dropped={"x": 1}),
    Case("brackets in text", STRING, b'{"v":"' + b"[" * 9999 + b'"}\n', ("[" * 9999,)),
    Case("quoted quotes", STRING, b'{"v":"' + b'\\"[' * 999 + b'"}\n', ('"[' * 999,)),
    # length
    Case("10 MB line", STRING, b'{"v":"' + b"x" * 10**7 + b'"}\n', ("x" * 10**7,)),
    Case("10 MB bad line", INT64, b'{"v":"' + b"x" * 10**7 + b'"}\n', Bad("wrong_type", 1, "v")),
]

CASES: list[Case] = [*_token_cases(TOKENS), *_token_cases(EXACT_TOKENS, exact=True), *LINES]
