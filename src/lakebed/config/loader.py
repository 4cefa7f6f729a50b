"""From YAML files to one document without a fault, or to all faults at once.

Files are read, merged section by section, interpolated, then validated. What is faulty is left out
and the rest is checked on, so that one run of the program tells a person everything there is to
mend.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lakebed.config.addresses import address_faults
from lakebed.config.interpolate import interpolate
from lakebed.config.models import Document, KeyPath, Pipeline, Section, Sink, same_place
from lakebed.errors import ConfigInvalid

NAMED_SECTIONS = ("pipelines", "tables")
"""Sections whose entries belong to one file each."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to mend, and where."""

    path: KeyPath
    message: str
    near: tuple[KeyPath, ...] | None = None
    """Where a fault already reported makes this one idle; unless told, at its own path."""


Check = Callable[[Document], Iterable[Fault]]


def load_document(
    files: Sequence[Path], folders: Sequence[Path], environment: Mapping[str, str], check: Check
) -> Document:
    """Read a configuration; ConfigInvalid carries every fault, those found by `check` too."""
    merged = _merge(_read_all(files, folders))
    faults = list(merged.faults)
    tree = _interpolated(merged.tree, environment, (), faults)
    document = _validated(tree, merged.tree, faults)
    for fault in [*_check_sections(document), *check(document)]:
        _report(fault, faults)
    if faults:
        raise ConfigInvalid([merged.line(fault) for fault in faults])
    return document


def dotted(path: KeyPath) -> str:
    """Write a path as a person does: `schema.fields[2].type`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


class _YamlLoader(yaml.SafeLoader):
    """Plain YAML whose scalars stay text: `0123`, `1.10` and `no` mean what they say."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own way to declare them
        start: [pair for pair in pairs if pair[0].endswith((":null", ":merge"))]
        for start, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _mapping(loader: _YamlLoader, node: yaml.MappingNode) -> dict[str, Any]:
    first: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
        if key.value in first:
            raise yaml.MarkedYAMLError(
                problem=f"the key {key.value} is given twice, first in line {first[key.value]}",
                problem_mark=key.start_mark,
            )
        first[key.value] = key.start_mark.line + 1
    loader.flatten_mapping(node)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _list(loader: _YamlLoader, node: yaml.SequenceNode) -> list[Any]:
    return [loader.construct_object(item, deep=True) for item in node.value]


_YamlLoader.add_constructor("tag:yaml.org,2002:map", _mapping)
_YamlLoader.add_constructor("tag:yaml.org,2002:seq", _list)


def _read_all(files: Sequence[Path], folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Read every file once; if any cannot be read, say so of all of them and stop.

    Half a configuration would only make faults that are none.
    """
    faults: list[str] = []
    if not files and not folders:
        faults.append("no configuration is given: name a file with -c or a folder with -C")
    wanted = list(files)
    for folder in folders:
        names = [path for path in folder.glob("[!.]*") if path.suffix in (".yaml", ".yml")]
        if not names:
            what = "holds no *.yaml or *.yml file" if folder.is_dir() else "there is no such folder"
            faults.append(f"{folder}: {what}")
        wanted += sorted(names)
    documents: dict[Path, tuple[str, dict[str, Any]]] = {}
    for path in wanted:
        try:
            documents.setdefault(path.absolute(), (str(path), _read(path)))
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise ConfigInvalid(faults)
    return dict(documents.values())


def _read(path: Path) -> dict[str, Any]:
    """Read one file; a ValueError names it and says what is wrong, without quoting from it."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name it with -C")
    try:
        loader = _YamlLoader(path.read_text(encoding="utf-8"))
        try:
            content = loader.get_single_data()
        finally:
            loader.dispose()
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except OSError as cause:
        raise ValueError(f"{path}: cannot be read: {cause.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not text in UTF-8") from None
    except yaml.MarkedYAMLError as cause:
        mark = cause.problem_mark or cause.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise ValueError(f"{path}{where}: {cause.problem or cause.context}") from None
    except yaml.YAMLError:
        raise ValueError(f"{path}: holds a character that YAML does not allow") from None
    if content is None:
        raise ValueError(f"{path}: is empty")
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a mapping of sections, is {_kind(content)}")  # noqa: TRY004
    return content


@dataclass(frozen=True, slots=True)
class _Merged:
    """All files as one tree, and which file each part of it came from."""

    tree: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def line(self, fault: Fault) -> str:
        """Write a fault for a person, with the file it stands in where that is known."""
        if not fault.path:
            return fault.message
        above = (fault.path[:length] for length in range(len(fault.path), -1, -1))
        origin = next((self.origins[path] for path in above if path in self.origins), None)
        first, newline, rest = fault.message.partition("\n")
        text = f"{dotted(fault.path)}: {first}"
        # What stands on further lines is to be copied, so nothing is put behind it.
        return f"{text}  ({origin}){newline}{rest}" if origin else f"{text}{newline}{rest}"

    def add(self, into: dict[str, Any], content: dict[str, Any], path: KeyPath, file: str) -> None:
        """Merge one file's section into the tree."""
        for key, value in content.items():
            here = (*path, key)
            known = into.get(key)
            if known is None:
                into[key] = {} if isinstance(value, dict) else value
                self.origins[here] = file
                if isinstance(value, dict):
                    self.add(into[key], value, here, file)
            elif len(path) == 1 and path[0] in NAMED_SECTIONS:
                self.faults.append(Fault(here, f"is defined again in {file}"))
            elif isinstance(known, dict) and isinstance(value, dict):
                self.add(known, value, here, file)
            elif value is not None and known != value:
                self.faults.append(Fault(here, f"has another value in {file}"))


def _merge(documents: Mapping[str, dict[str, Any]]) -> _Merged:
    merged = _Merged()
    for file, content in documents.items():
        merged.add(merged.tree, content, (), file)
    if len(documents) == 1:
        merged.origins[()] = next(iter(documents))
    return merged


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


def _validated(tree: Any, written: Any, faults: list[Fault]) -> Document:  # noqa: ANN401
    """Give the document without its faulty parts, which are reported as they are cut out."""
    while True:
        try:
            return Document.model_validate(tree)
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False, include_input=False)
        for error in errors:
            _report(Fault(error["loc"], _in_words(error, written)), faults)
        # A section without a required key is cut out whole.
        cut = {error["loc"][: -1 if error["type"] == "missing" else None] for error in errors}
        tree = _without(tree, cut)


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


_WORDS = {
    "missing": "is required",
    "greater_than": "must be greater than {gt:g}, is {value}",
    "greater_than_equal": "must be {ge:g} or greater, is {value}",
    "enum": "must be {expected}; is {value}",
    "string_too_short": "must not be empty",
    "string_type": "must be text, is {kind}",
    "list_type": "must be a list, is {kind}",
    "dict_type": "must be a section with keys of its own, is {kind}",
    "model_type": "must be a section with keys of its own, is {kind}",
    "value_error": "{error}",
}


def _in_words(error: ErrorDetails, written: object) -> str:
    """Say what is wrong with a value. It is shown as it was written, variables not filled in."""
    if error["type"] == "extra_forbidden":
        return f"unknown key; {_nearest(error['loc'])}"
    found = _at(written, error["loc"])
    kind = _kind(found)
    facts = error.get("ctx", {}) | {"kind": kind, "value": found if kind == "text" else kind}
    if "expected" in facts:
        facts["expected"] = facts["expected"].replace("'", "")
    number = "a whole number" if error["type"].startswith("int_") else "a number"
    return _WORDS.get(error["type"], f"must be {number}, is {{value}}").format(**facts)


def _at(tree: Any, path: KeyPath) -> object:  # noqa: ANN401
    for part in path:
        try:
            tree = tree[part]
        except (LookupError, TypeError):
            return None
    return tree


def _kind(value: object) -> str:
    match value:
        case None | "":
            return "empty"
        case dict():
            return "a section"
        case list():
            return "a list"
        case _:
            return "text"


def _nearest(path: KeyPath) -> str:
    """Name the key that was probably meant, or else all keys that could stand there."""
    section: type[Section] = Document
    parts = iter(path[:-1])
    for part in parts:
        annotation = section.model_fields[section.attributes()[str(part)]].annotation
        if get_origin(annotation) in (dict, list):
            next(parts)
        section = next(
            kind
            for kind in (annotation, *get_args(annotation))
            if isinstance(kind, type) and issubclass(kind, Section)
        )
    close = difflib.get_close_matches(str(path[-1]), section.attributes(), n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(section.attributes())}"


def _check_sections(document: Document) -> Iterator[Fault]:
    """Check what no section can know alone, for both programs alike."""
    if document.has_single_form and document.pipelines:
        yield Fault(
            ("pipelines",),
            "stands beside a pipeline at the top of the document; move that one below pipelines",
            near=(),
        )
    yield from (Fault(path, message) for path, message in address_faults(document))
    sinks: dict[str, tuple[KeyPath, Sink]] = {}
    times: dict[str, set[str | None]] = {}
    for path, _, pipeline in document.named_pipelines():
        yield from _check_pipeline(path, pipeline)
        if pipeline.sink is not None and pipeline.sink.uri is not None:
            found = ((*path, "sink"), pipeline.sink)
            first = sinks.setdefault(same_place(pipeline.sink.uri), found)
            times.setdefault(same_place(pipeline.sink.uri), set()).add(_time(pipeline.sink))
            yield from _check_shared_table(first, found)
    names: dict[str, str] = {}
    for name, table in document.tables.items():
        place, here = same_place(table.table_uri), ("tables", name)
        if names.setdefault(place, name) != name:
            yield Fault((*here, "table_uri"), f"is the same table as tables.{names[place]}")
        if place in sinks and table.partition_by:
            path, sink = sinks[place]
            if _template(sink) != table.partition_by.prefix_template:
                yield _disagreement((*here, "partition_by"), (*path, "partition_by"))
            elif table.partition_by.timestamp_field not in {None, *times[place]}:
                key = ("partition_by", "timestamp_field")
                yield _disagreement((*here, *key), (*path, *key))


def _check_pipeline(path: KeyPath, pipeline: Pipeline) -> Iterator[Fault]:
    if pipeline.source is not None and pipeline.sources:
        yield Fault(
            (*path, "source"), "stands beside sources; give it a name and move it there", near=()
        )
    if pipeline.source is None and not pipeline.sources:
        yield Fault((*path, "source"), "is required", near=((*path, "source"), (*path, "sources")))
    sink, schema = pipeline.sink, pipeline.schema_
    if sink is None:
        yield Fault((*path, "sink"), "is required")
    elif sink.uri is None:
        near = ((*path, "sink", "path"), (*path, "sink", "table_uri"))
        yield Fault((*path, "sink", "path"), "is required", near=near)
    elif sink.path and sink.table_uri and same_place(sink.path) != same_place(sink.table_uri):
        yield Fault((*path, "sink", "path"), "means the same as table_uri, and they differ")
    yield from _check_names(path, [item.name for item in schema.fields_] if schema else [])


def _check_names(path: KeyPath, names: list[str]) -> Iterator[Fault]:
    """Refuse fields that Delta would take for one."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.casefold(), []).append(name)
    for _name, given in sorted(spellings.items()):
        if len(given) > 1:
            yield Fault((*path, "schema", "fields"), _given_twice(given), near=())


def _given_twice(given: list[str]) -> str:
    """Say of a field that is declared twice what can be done about it."""
    if len(set(given)) == 1:
        return f"the name {given[0]} is given twice"
    return (
        f"{' and '.join(dict.fromkeys(given))} differ only in case, and Delta takes them for one "
        "column; declare the one to keep (values of the other are left out and counted), and "
        "rename one in the data to keep both"
    )


def _check_shared_table(
    first: tuple[KeyPath, Sink], second: tuple[KeyPath, Sink]
) -> Iterator[Fault]:
    if first[1].handoff != second[1].handoff:
        yield _disagreement((*second[0], "handoff"), (*first[0], "handoff"))
    if _template(first[1]) != _template(second[1]):
        yield _disagreement((*second[0], "partition_by"), (*first[0], "partition_by"))


def _disagreement(path: KeyPath, other: KeyPath) -> Fault:
    return Fault(
        path, f"is not the same as {dotted(other)}, and both mean one table", near=(path, other)
    )


def _template(sink: Sink) -> str | None:
    return sink.partition_by.prefix_template if sink.partition_by else None


def _time(sink: Sink) -> str | None:
    return sink.partition_by.timestamp_field if sink.partition_by else None
