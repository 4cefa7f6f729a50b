"""Load YAML files into one valid document, or report all faults at once.

Files are read, merged section by section, interpolated, then validated. If every section is valid
by itself, they are compared with each other.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakebed import types
from lakebed.config.checks import check_sections
from lakebed.config.ddl import Declared, schema_from, type_names
from lakebed.config.faults import ConfigFault, in_words, kind_of, value_at, with_profiles
from lakebed.config.files import Given, Merged, merge, read_all
from lakebed.config.models import Document, KeyPath
from lakebed.errors import ConfigInvalid

OPENING = re.compile(
    r"(?P<escape>\$\$\{)|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?"
)


def interpolate(text: str, environment: Mapping[str, str]) -> str:
    """Fill in the variables of a text; a ValueError names a wrong one, never its value.

    As in a shell, `:-` gives a default to a variable that is unset or empty. `$${` is `${` itself.
    """

    def fill(found: re.Match[str]) -> str:
        if found["escape"]:
            return "${"
        name, default = found["name"], found["default"]
        if name is None:
            raise ValueError(
                "`${` does not start a variable; write ${NAME}, ${NAME:-default} or $${"
            )
        value = environment.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise ValueError(f"the environment variable {name} is not set, and has no default")
        return value

    return OPENING.sub(fill, text)


Check = Callable[[Document], Iterable[ConfigFault]]


def load_document(
    files: Sequence[Given], folders: Sequence[Path], environment: Mapping[str, str], check: Check
) -> Document:
    """Load a configuration; ConfigInvalid carries the faults of all sections.

    If each section is valid by itself, it carries the faults between them, and those of `check`.
    """
    merged = merge(read_all(files, folders))
    faults = list(merged.faults)
    tree = _interpolated(merged.tree, environment, (), faults)
    written_as = {
        (*path, "fields"): (*path, _declare(path, section, merged, faults))
        for path, section in _schemas(tree)
    }
    document = _validated(tree, merged.tree, faults)
    if document is not None and not faults:
        document = with_profiles(document)
        faults = [*check_sections(document), *check(document)]
    if document is None or faults:
        named = (_as_written(fault, written_as, tree) for fault in faults)
        raise ConfigInvalid([merged.line(fault) for fault in named])
    return document


def _interpolated(
    value: Any,  # noqa: ANN401 - any YAML value
    environment: Mapping[str, str],
    path: KeyPath,
    faults: list[ConfigFault],
) -> Any:  # noqa: ANN401
    """Fill in the variables of every text below; a failure yields None and a fault."""
    match value:
        case dict():
            return {
                key: _interpolated(item, environment, (*path, key), faults)
                for key, item in value.items()
            }
        case list():
            return [
                _interpolated(item, environment, (*path, index), faults)
                for index, item in enumerate(value)
            ]
        case str():
            try:
                return interpolate(value, environment)
            except ValueError as fault:
                faults.append(ConfigFault(path, str(fault)))
                return None
        case _:
            return value


def _schemas(tree: Any) -> Iterator[tuple[KeyPath, dict[str, Any]]]:  # noqa: ANN401
    """Yield every `schema` section with its path."""
    named = tree.get("pipelines")
    pipelines = named.items() if isinstance(named, dict) else ()
    for path, holder in [((), tree), *((("pipelines", name), one) for name, one in pipelines)]:
        if isinstance(holder, dict) and isinstance(holder.get("schema"), dict):
            yield (*path, "schema"), holder["schema"]


def _declare(
    path: KeyPath, section: dict[str, Any], merged: Merged, faults: list[ConfigFault]
) -> str:
    """Convert fields written as DDL, or in a separate file, to `fields`.

    Return the key under which they are written.
    """
    given = [key for key in ("fields", "ddl", "file") if section.get(key) is not None]
    if len(given) > 1:
        ways = " and ".join(given)
        faults.append(ConfigFault(path, f"has {ways}, which mean the same; keep one of them"))
    for key in ("ddl", "file"):
        if (value := section.pop(key, None)) is not None:
            try:
                section["fields"] = _fields((*path, key), value, merged)
            except ValueError as wrong:
                faults.append(ConfigFault((*path, key), str(wrong)))
                section["fields"] = None
    return given[-1] if given else "fields"


def _fields(path: KeyPath, value: object, merged: Merged) -> list[Declared]:
    """Return the fields that a text, or the file that it names, declares.

    A variable may hold a secret, so a ValueError quotes only literal text of the configuration.
    """
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {kind_of(value)}")  # noqa: TRY004 - a fault of a file
    if not value:
        raise ValueError("must not be empty")
    is_written = value_at(merged.tree, path) == value
    try:
        if path[-1] == "file":
            value, is_written = merged.text_of(path, value), True
        return schema_from(value)
    except ValueError:
        if is_written:
            raise
        raise ValueError(f"{path[-1]} cannot be read, with its variables") from None


def _as_written(
    fault: ConfigFault,
    written_as: Mapping[KeyPath, KeyPath],
    tree: Any,  # noqa: ANN401
) -> ConfigFault:
    """Return a fault of fields under the key as written, with the field's name."""
    for length in range(len(fault.path) + 1):
        fields, rest = fault.path[:length], fault.path[length:]
        if written_as.get(fields, fields) != fields:
            names = ".".join(_fields_above(value_at(tree, fields), rest))
            message = f"{names}: {fault.message}" if names else fault.message
            return replace(fault, path=written_as[fields], message=message)
    return fault


def _fields_above(fields: Any, path: KeyPath) -> Iterator[str]:  # noqa: ANN401
    """Yield the names of the declared fields on a path in `fields`."""
    for part in path:
        try:
            fields = fields[part]
        except (LookupError, TypeError):
            return
        if isinstance(fields, dict) and isinstance(part, int):
            yield fields["name"]


def _validated(
    tree: Any,  # noqa: ANN401
    written: Any,  # noqa: ANN401
    faults: list[ConfigFault],
) -> Document | None:
    """Return the document; None if a section is invalid, whose faults are added."""
    try:
        return Document.model_validate(tree)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_input=False)
    for error in errors:
        path = error["loc"]
        # A part that could not be read counts as missing, which its own fault explains.
        if not any(known.path[: len(path)] == path for known in faults):
            faults.append(ConfigFault(path, in_words(error, written, tree)))
    return None


FILE = "configuration.schema.json"


def schema_text() -> str:
    """Return the JSON Schema by which an editor completes and checks a configuration.

    Enums are filled in from the code, so a new member needs no change of the file.
    """
    document = json.loads((files(__package__) / FILE).read_text(encoding="utf-8"))
    for name, node in document["$defs"].items():
        if kind := getattr(types, name, None):
            node["anyOf"][0]["enum"] = [*kind]
    document["$defs"]["TypeName"]["anyOf"][0]["enum"] = type_names()
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
