"""Read YAML files and merge them by section; each key remembers its file and line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from lakebed.config.faults import ConfigFault, dotted, kind_of, value_at
from lakebed.config.models import KeyPath
from lakebed.errors import ConfigInvalid

Given = Path | Mapping[str, Any]
"""A YAML file, or its content as a mapping."""
IN_CODE = "given in Python"


def options_of(files: Sequence[Given], folders: Sequence[Path] = ()) -> str:
    """Return the options that name a configuration in a command: ` -c lake.yaml`."""
    given = [f" -c {quote(str(file))}" for file in files if isinstance(file, Path)]
    return "".join([*given, *(f" -C {quote(str(folder))}" for folder in folders)])


NAMED_SECTIONS = ("pipelines", "tables")
"""Sections whose entries belong to one file each."""


class ConfigLoader(yaml.SafeLoader):
    """YAML whose scalars stay text: `0123`, `1.10` and `no` are taken literally."""

    yaml_implicit_resolvers = {
        start: [pair for pair in pairs if pair[0].endswith((":null", ":merge"))]
        for start, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _mapping(loader: ConfigLoader, node: yaml.MappingNode) -> dict[str, Any]:
    first: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
        if key.value in first:
            raise yaml.MarkedYAMLError(
                problem=f"the key {key.value} is given twice, first on line {first[key.value]}",
                problem_mark=key.start_mark,
            )
        first[key.value] = key.start_mark.line + 1
    loader.flatten_mapping(node)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _list(loader: ConfigLoader, node: yaml.SequenceNode) -> list[Any]:
    return [loader.construct_object(item, deep=True) for item in node.value]


ConfigLoader.add_constructor("tag:yaml.org,2002:map", _mapping)
ConfigLoader.add_constructor("tag:yaml.org,2002:seq", _list)


@dataclass(frozen=True, slots=True)
class Written:
    """One file's content, with the positions of its parts."""

    file: str
    content: dict[str, Any]
    node: yaml.Node | None = None
    """None if given in Python."""

    def place(self, path: KeyPath) -> str:
        """Return file and line of a key, or of its innermost existing section."""
        node, line = self.node, None
        for part in path:
            found = _below(node, part)
            if found is None:
                break
            mark, node = found
            line = mark.line + 1
        return self.file if line is None else f"{self.file}:{line}"


def _below(node: yaml.Node | None, part: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    """Return the position of an entry of a mapping or a list, and its value."""
    match node:
        case yaml.MappingNode():
            # Of two, one came from `<<`; the last one counts, as in the content.
            named = (entry for entry in reversed(node.value) if entry[0].value == part)
            entry = next(named, None)
            return (entry[0].start_mark, entry[1]) if entry else None
        case yaml.SequenceNode() if isinstance(part, int) and part < len(node.value):
            return node.value[part].start_mark, node.value[part]
        case _:
            return None


def read_all(files: Sequence[Given], folders: Sequence[Path]) -> list[Written]:
    """Read every file once; if any cannot be read, report all of them and stop.

    Half a configuration would only produce false faults.
    """
    faults: list[str] = []
    if not files and not folders:
        faults.append("no configuration given: pass a file with -c or a folder with -C")
    wanted = [file for file in files if isinstance(file, Path)]
    for folder in folders:
        names = [path for path in folder.glob("[!.]*") if path.suffix in (".yaml", ".yml")]
        if not names:
            faults.append(f"{folder}: is not a folder with *.yaml or *.yml files")
        wanted += sorted(names)
    documents: dict[Path, Written] = {}
    for path in wanted:
        try:
            documents.setdefault(path.absolute(), _read(path))
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        raise ConfigInvalid(faults)
    in_code = (file for file in files if not isinstance(file, Path))
    return [
        *documents.values(),
        *(Written(IN_CODE, _as_text(each)) for each in in_code),
    ]


def _as_text(value: Any) -> Any:  # noqa: ANN401 - any YAML value
    """Return values as our YAML loader would: every scalar is text."""
    match value:
        case Mapping():
            return {str(key): _as_text(each) for key, each in value.items()}
        case list() | tuple():
            return [_as_text(each) for each in value]
        case bool():
            return str(value).lower()
        case None:
            return None
        case _:
            return str(value)


def _read(path: Path) -> Written:
    """Read one file; a ValueError names it and says what is wrong, without quoting it."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name it with -C")
    try:
        node, content = parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except OSError as cause:
        raise ValueError(f"{path}: cannot be read: {cause.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as cause:
        raise ValueError(f"{path}{_wrong_yaml(cause)}") from None
    except yaml.YAMLError:
        raise ValueError(f"{path}: contains a character that YAML does not allow") from None
    if content is None:
        raise ValueError(f"{path}: is empty")
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a mapping of sections, not {kind_of(content)}")  # noqa: TRY004
    return Written(str(path), content, node)


def parsed(text: str) -> tuple[yaml.Node | None, Any]:
    """Parse a text into its node tree and its content; raise YAMLError for faults. Pure."""
    loader = ConfigLoader(text)
    node = loader.get_single_node()
    return node, loader.construct_document(node) if node else None


def _wrong_yaml(cause: yaml.MarkedYAMLError) -> str:
    """Return where a file is wrong, and what the parser says of it."""
    mark, begun = cause.problem_mark or cause.context_mark, cause.context_mark
    where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    within = f", {cause.context} from line {begun.line + 1} on" if cause.context and begun else ""
    return f"{where}: {cause.problem or cause.context}{within}"


@dataclass(frozen=True, slots=True)
class Merged:
    """All files as one tree, with the file of each part."""

    tree: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, Written] = field(default_factory=dict)
    faults: list[ConfigFault] = field(default_factory=list)
    named: dict[KeyPath, str] = field(default_factory=dict)
    """The files that keys name and that were read."""

    def line(self, fault: ConfigFault) -> str:
        """Return a fault as a line of text, with its position if known."""
        if not fault.path:
            return fault.message
        above = (fault.path[:length] for length in range(len(fault.path), -1, -1))
        origin = next((self.origins[path] for path in above if path in self.origins), None)
        first, newline, rest = fault.message.partition("\n")
        where = f"  ({self._place(fault, origin)})" if origin else ""
        # Further lines are to be copied, so nothing is appended to them.
        return f"{dotted(fault.path)}: {first}{where}{newline}{rest}"

    def _place(self, fault: ConfigFault, origin: Written) -> str:
        place = origin.place(fault.path)
        file = self.named.get(fault.path)
        return place if file is None else f"{file}, named in {place}"

    def text_of(self, path: KeyPath, name: str) -> str:
        """Return the text of a file that a key names; raise ValueError if it cannot be read.

        A relative name is resolved against the folder of the configuration file.
        """
        origin = self.origins.get(path)
        beside = Path(origin.file if origin else "").parent
        file = beside / name
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ValueError(f"there is no file {file}") from None
        except OSError as cause:
            raise ValueError(f"{file} cannot be read: {cause.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{file} is not UTF-8 text") from None
        # Show it as written: variables may hold secrets.
        self.named[path] = str(beside / str(value_at(self.tree, path)))
        return text

    def add(
        self, into: dict[str, Any], content: dict[str, Any], path: KeyPath, written: Written
    ) -> None:
        """Merge one file's section into the tree."""
        for key, value in content.items():
            here = (*path, key)
            known = into.get(key)
            if known is None:
                into[key] = {} if isinstance(value, dict) else value
                self.origins[here] = written
                if isinstance(value, dict):
                    self.add(into[key], value, here, written)
            elif len(path) == 1 and path[0] in NAMED_SECTIONS:
                self.faults.append(ConfigFault(here, f"is defined again in {written.place(here)}"))
            elif isinstance(known, dict) and isinstance(value, dict):
                self.add(known, value, here, written)
            elif value is not None and known != value:
                self.faults.append(ConfigFault(here, f"has another value in {written.place(here)}"))


def merge(documents: Sequence[Written]) -> Merged:
    """Merge the files into one tree."""
    merged = Merged()
    for written in documents:
        merged.add(merged.tree, written.content, (), written)
    if len(documents) == 1:
        merged.origins[()] = documents[0]
    return merged
