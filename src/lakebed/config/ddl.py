"""Parse types in Spark's and SQL's names, Spark's DDL, and the JSON of Spark and Delta. Pure.

The result is what the `fields` of a configuration would be; a ValueError says what is wrong.
"""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from lakebed.types import DEEPEST_COLUMN, NESTED_TYPES, FieldType

Declared = dict[str, Any]
"""A field or a type in the form of `schema.fields`."""
_OWN_NAMES = {
    kind.value: kind.value for kind in FieldType if kind not in {*NESTED_TYPES, FieldType.DECIMAL}
}
_OTHER_NAMES: Mapping[str, str] = {
    "varchar": "string",
    "text": "string",
    "tinyint": "int8",
    "byte": "int8",
    "smallint": "int16",
    "short": "int16",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "float": "float32",
    "real": "float32",
    "double": "float64",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
}
_TYPES: Mapping[str, str] = {**_OWN_NAMES, **_OTHER_NAMES}
"""The plain types by their names here, in Spark and in SQL, in lower case."""
DECIMAL = re.compile(
    r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE
)
_SPARK_DECIMAL = "decimal(10,0)"
"""Spark's decimal without digits."""
_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<word>\w+)|(?P<sign>[<>(),:]))"
)


_TOO_DEEP = f"is nested deeper than {DEEPEST_COLUMN} levels, the maximum; declare it as json"


def schema_from(text: str) -> list[Declared]:
    """Parse a schema in Spark's or Delta's JSON, or in DDL; a ValueError says what is wrong."""
    if not text.lstrip().startswith("{"):
        return fields_from_ddl(text)
    try:
        return _not_empty(fields_from_json(json.loads(text)))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except json.JSONDecodeError as wrong:
        where = f"line {wrong.lineno} column {wrong.colno}"
        raise ValueError(f"is not JSON: {wrong.msg} at {where}") from None


def _not_empty(fields: list[Declared]) -> list[Declared]:
    if not fields:
        raise ValueError("declares no column")
    return fields


def fields_from_json(document: Any, depth: int = 1) -> list[Declared]:  # noqa: ANN401 - any JSON
    """Parse a StructType of Spark or Delta."""
    if not isinstance(document, dict) or document.get("type") != "struct":
        raise ValueError('is not a schema of Spark or Delta, which begins {"type": "struct"')
    fields = document.get("fields", [])
    if not isinstance(fields, list):
        raise ValueError("has fields that are not a list")  # noqa: TRY004 - a fault of a file
    found = []
    for one in fields:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise ValueError("has a field without a name")  # noqa: TRY004 - as above
        name, nullable = one["name"], one.get("nullable", True)
        found.append(
            Declared(name=name, **_json_type(one.get("type"), name, depth), nullable=nullable)
        )
    return found


def _json_type(kind: Any, path: str, depth: int) -> Declared:  # noqa: ANN401
    if depth > DEEPEST_COLUMN:
        raise ValueError(f"{path}: {_TOO_DEEP}")
    if isinstance(kind, str):
        return Declared(type=_plain(kind, path))
    match kind:
        case {"type": "struct"}:
            return Declared(type="struct", fields=fields_from_json(kind, depth + 1))
        case {"type": "array", "elementType": element}:
            items = _json_type(element, f"{path}[]", depth + 1)
            nullable = kind.get("containsNull", True)
            return Declared(type="list", items={**items, "nullable": nullable})
        case {"type": "map", "keyType": key, "valueType": value}:
            _require_text_keys(key, path)
            values = _json_type(value, f"{path}[]", depth + 1)
            nullable = kind.get("valueContainsNull", True)
            return Declared(type="map", values={**values, "nullable": nullable})
    raise ValueError(f"{path}: has no known type")


def _plain(name: str, path: str) -> str:
    if digits := DECIMAL.fullmatch(name):
        return f"decimal({digits[1]},{digits[2] or 0})" if digits[1] else _SPARK_DECIMAL
    found = plain_type(name)
    if found is None:
        raise ValueError(_at(path, f"the type {name} is not known; {suggestion(name)}"))
    return found


def plain_type(name: str) -> str | None:
    """Return the type of a name, ours or others'; None without one."""
    return _TYPES.get(name.strip().lower())


def type_names() -> list[str]:
    """List the names of types without parameters, ours first."""
    return [*_OWN_NAMES, *sorted(NESTED_TYPES), *sorted(_OTHER_NAMES)]


def suggestion(name: str) -> str:
    """Return the known type that an unknown one resembles, else all known types."""
    close = difflib.get_close_matches(name.strip().lower(), _TYPES, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return (
        f"known types are {', '.join(_OWN_NAMES)}, decimal(p,s), list<T>, map<string,T>, and "
        "struct<name: T>"
    )


def type_from_ddl(text: str) -> Declared:
    """Parse one type of DDL: `array<string>`, `map<string, struct<id: long>>`."""
    return _Ddl(text).only_type()


def _require_text_keys(key: object, path: str) -> None:
    if key != "string":
        raise ValueError(_at(path, "the keys of a map are strings in JSON; write map<string, …>"))


def _at(path: str, message: str) -> str:
    """Return a message with the path of its field, if it has one."""
    return f"{path}: {message}" if path else message


def fields_from_ddl(text: str) -> list[Declared]:
    """Parse columns of Spark's DDL: `id BIGINT NOT NULL, tags ARRAY<STRING>`."""
    return _not_empty(_Ddl(text).fields("", ends=None))


class _Ddl:
    """Parser of DDL."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def only_type(self) -> Declared:
        found = self._type("")
        if not self._takes(None):
            self._wrong("the end")
        return found

    def fields(self, above: str, ends: str | None) -> list[Declared]:
        found: list[Declared] = []
        while not self._takes(ends):
            if found:
                self._require(",", "a comma or the end")
            name = self._name()
            self._takes(":")
            path = f"{above}.{name}" if above else name
            kind = self._type(path)
            found.append(Declared(name=name, **kind, nullable=self._nullable()))
        return found

    def _type(self, path: str) -> Declared:
        if self._depth == DEEPEST_COLUMN:
            raise ValueError(_at(path.partition(".")[0].partition("[")[0], _TOO_DEEP))
        self._depth += 1
        found = self._named_type(path)
        self._depth -= 1
        return found

    def _named_type(self, path: str) -> Declared:
        name = self._word("a type")
        match name.lower():
            case "struct":
                self._require("<", "<")
                return Declared(type="struct", fields=self.fields(path, ends=">"))
            case "array" | "list":
                self._require("<", "<")
                items = self._type(f"{path}[]")
                self._require(">", ">")
                return Declared(type="list", items=items)
            case "map":
                self._require("<", "<")
                _require_text_keys(self._type(f"{path}[key]")["type"], path)
                self._require(",", "a comma")
                values = self._type(f"{path}[]")
                self._require(">", ">")
                return Declared(type="map", values=values)
            case "decimal" | "dec" | "numeric" if self._takes("("):
                digits = self._word("digits")
                scale = self._word("digits") if self._takes(",") else "0"
                self._require(")", "a closing parenthesis")
                return Declared(type=f"decimal({digits},{scale})")
        return Declared(type=_plain(name, path))

    def _nullable(self) -> bool:
        nullable = True
        while True:
            if self._takes("not"):
                self._require("null", "NULL after NOT")
                nullable = False
            elif self._takes("comment"):
                found = self._next()
                if found is None or found["text"] is None:
                    self._wrong("a text in quotes after COMMENT")
                self._at = found.end()
            else:
                return nullable

    def _name(self) -> str:
        found = self._next()
        if found is not None and found["quoted"] is not None:
            self._at = found.end()
            return found["quoted"][1:-1].replace("``", "`")
        return self._word("the name of a column")

    def _word(self, expected: str) -> str:
        found = self._next()
        if found is None or found["word"] is None:
            self._wrong(expected)
        self._at = found.end()
        return str(found["word"])

    def _takes(self, wanted: str | None) -> bool:
        """Consume a token if it comes next, and return whether it did; None is the end."""
        found = self._next()
        if wanted is None:
            return found is None and not self._text[self._at :].strip()
        if found is None or (found["sign"] or found["word"] or "").lower() != wanted:
            return False
        self._at = found.end()
        return True

    def _require(self, wanted: str, expected: str) -> None:
        if not self._takes(wanted):
            self._wrong(expected)

    def _next(self) -> re.Match[str] | None:
        return _TOKEN.match(self._text, self._at)

    def _wrong(self, expected: str) -> NoReturn:
        rest = self._text[self._at :].lstrip()
        found = f"at {rest[:20].rstrip()!r}" if rest else "at its end"
        raise ValueError(f"expected {expected} {found}")
