"""From YAML files to one document without a fault, or to all faults at once.

Files are read, merged section by section, interpolated, then validated. What is faulty is left out
and the rest is checked on, so that one run of the program reports everything there is to fix.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakebed.config.checks import check_sections
from lakebed.config.ddl import schema_from
from lakebed.config.faults import Fault, in_words
from lakebed.config.files import Given, Merged, merge, read_all
from lakebed.config.interpolate import interpolate
from lakebed.config.models import Document, KeyPath
from lakebed.config.profiles import with_profiles
from lakebed.errors import ConfigInvalid

Check = Callable[[Document], Iterable[Fault]]


def load_document(
    files: Sequence[Given], folders: Sequence[Path], environment: Mapping[str, str], check: Check
) -> Document:
    """Read a configuration; ConfigInvalid carries every fault, those found by `check` too."""
    merged = merge(read_all(files, folders))
    faults = list(merged.faults)
    tree = _interpolated(merged.tree, environment, (), faults)
    written_as = {
        (*path, "fields"): (*path, _declare(path, section, merged, faults))
        for path, section in _schemas(tree)
    }
    document = with_profiles(_validated(tree, merged.tree, faults))
    for fault in [*check_sections(document), *check(document)]:
        _report(fault, faults)
    if faults:
        named = (_as_written(fault, written_as, tree) for fault in faults)
        raise ConfigInvalid([merged.line(fault) for fault in named])
    return document


def _interpolated(
    value: Any,  # noqa: ANN401 - whatever YAML holds
    environment: Mapping[str, str],
    path: KeyPath,
    faults: list[Fault],
) -> Any:  # noqa: ANN401
    """Fill in the variables of every text below; where that fails there is no value."""
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
                faults.append(Fault(path, str(fault)))
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


def _declare(path: KeyPath, section: dict[str, Any], merged: Merged, faults: list[Fault]) -> str:
    """Bring fields that are written as DDL, or in a file of their own, into `fields`.

    Return the key that they are written under.
    """
    given = [key for key in ("fields", "ddl", "file") if section.get(key) is not None]
    if len(given) > 1:
        ways = " and ".join(given)
        faults.append(Fault(path, f"has {ways}, which mean the same; keep one of them"))
    for key, read in (("ddl", _as_it_is), ("file", merged.text_of)):
        text = section.pop(key, None)
        if isinstance(text, str):
            try:
                section["fields"] = schema_from(read((*path, key), text))
            except ValueError as wrong:
                # What a variable holds may be a secret, and the message quotes from it.
                written = _at(merged.tree, (*path, key)) == text
                message = str(wrong) if written else f"{key} cannot be read, with its variables"
                faults.append(Fault((*path, key), message, near=()))
                section["fields"] = None
    return given[-1] if given else "fields"


def _as_written(fault: Fault, written_as: Mapping[KeyPath, KeyPath], tree: Any) -> Fault:  # noqa: ANN401
    """Return a fault of fields under the key that somebody has written, with the field's name."""
    for length in range(len(fault.path) + 1):
        fields, rest = fault.path[:length], fault.path[length:]
        if written_as.get(fields, fields) != fields:
            names = list(_names(_at(tree, fields), rest))
            message = f"{'.'.join(names)}: {fault.message}" if names else fault.message
            return replace(fault, path=written_as[fields], message=message)
    return fault


def _names(fields: Any, path: KeyPath) -> Iterator[str]:  # noqa: ANN401
    """Yield the names of the fields that lead to a place in `fields`."""
    for part in path:
        try:
            fields = fields[part]
        except (LookupError, TypeError):
            return
        if isinstance(part, int):
            yield fields["name"]


def _at(tree: Any, path: KeyPath) -> object:  # noqa: ANN401
    for part in path:
        tree = tree[part]
    return tree


def _as_it_is(_path: KeyPath, text: str) -> str:
    return text


def _validated(tree: Any, written: Any, faults: list[Fault]) -> Document:  # noqa: ANN401
    """Return the document without its faulty parts, which are reported as they are cut out."""
    while True:
        try:
            return Document.model_validate(tree)
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False, include_input=False)
        for error in errors:
            _report(Fault(error["loc"], in_words(error, written)), faults)
        # A section without a required key is cut out whole.
        cut = {error["loc"][: -1 if error["type"] == "missing" else None] for error in errors}
        tree = _without(tree, {_within(tree, path) for path in cut})


def _within(tree: Any, path: KeyPath) -> KeyPath:  # noqa: ANN401
    """Return a path as far as the tree has it: what stands in a short form has no keys there."""
    for length, part in enumerate(path):
        try:
            tree = tree[part]
        except (LookupError, TypeError):
            return path[:length]
        if isinstance(tree, str):
            return path[: length + 1]
    return path


def _report(fault: Fault, faults: list[Fault]) -> None:
    """Add a fault, unless it only follows from one that is known, there or below."""
    near = (fault.path,) if fault.near is None else fault.near
    if not any(known.path[: len(path)] == path for known in faults for path in near):
        faults.append(fault)


def _without(value: Any, cut: set[KeyPath], path: KeyPath = ()) -> Any:  # noqa: ANN401
    match value:
        case dict():
            kept = {key: item for key, item in value.items() if (*path, key) not in cut}
            return {key: _without(item, cut, (*path, key)) for key, item in kept.items()}
        case list():
            return [
                _without(item, cut, (*path, index))
                for index, item in enumerate(value)
                if (*path, index) not in cut
            ]
        case _:
            return value
