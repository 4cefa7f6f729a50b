"""Completion in the shell: what commands take, known without importing what they do.

A press of Tab starts the program anew. To import a command takes a second; to know its options
takes a table that is made from the commands beforehand (`make completion`). A test compares both.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

TABLE = "completion.json"
DEFAULT = "default"
"""The name of a pipeline that stands at the top of a configuration."""
SINGLE_FORM = frozenset({"source", "sink"})
"""What such a configuration has at its top. The models say it too; importing them takes long."""
ZSH = """
#compdef %(prog_name)s

%(complete_func)s() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" %(autocomplete_var)s=complete_zsh \\
    %(prog_name)s)
}

if [[ ${funcstack[1]} == _%(prog_name)s ]]; then
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi
"""
"""What zsh loads at the first Tab, and has to answer it: typer's own script answers the second."""


def mend_zsh() -> None:
    """Have the script for zsh answer the first Tab.

    Where a typer keeps it elsewhere, its own script is used: it answers from the second on.
    """
    with suppress(ImportError, AttributeError):
        from typer import _completion_shared as shared  # noqa: PLC0415 - it may not be there

        shared._completion_scripts["zsh"] = ZSH  # noqa: SLF001 - there is no other way in


def names_in(section: str) -> Callable[[typer.Context], list[str]]:
    """Return what completes the names of a section of the configuration: pipelines, or tables."""

    def complete(ctx: typer.Context) -> list[str]:
        found: list[str] = []
        for file in _configured(ctx):
            found += _keys(Path(file), section)
        return sorted(set(found))

    return complete


NAMES = {"--pipeline": names_in("pipelines"), "--table": names_in("tables")}
"""Options whose values stand in the configuration."""


def _configured(ctx: typer.Context) -> list[str]:
    """Return the configuration files of a line that is not finished.

    Those that are written before the command were passed on to it.
    """
    return [str(file) for file in ctx.params.get("files") or ()]


def _keys(file: Path, section: str) -> list[str]:
    """Return the names in a section of a file; none where it cannot be read: nobody would see."""
    import yaml  # noqa: PLC0415 - only where a name is completed

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(file.read_bytes(), Loader=loader)  # noqa: S506 - both are safe
    except (OSError, ValueError, yaml.YAMLError):
        return []
    if not isinstance(document, dict):
        return []
    found = document.get(section)
    named = [str(name) for name in found] if isinstance(found, dict) else []
    is_single = section == "pipelines" and not SINGLE_FORM.isdisjoint(document)
    return [*named, DEFAULT] if is_single else named


def described(command: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what a command takes, as the table has it."""
    told: dict[str, Any] = {"params": [_parameter(one) for one in command.params]}
    if getattr(command, "commands", None):
        told["commands"] = {
            name: {"help": one.help, **described(one)} for name, one in command.commands.items()
        }
    return told


def _parameter(one: Any) -> dict[str, Any]:  # noqa: ANN401
    kind = one.type_descriptor
    return {
        "names": list(one.opts) if one.param_type_name == "option" else [],
        "help": one.help,
        "flag": bool(getattr(one, "is_flag", False)),
        "several": bool(getattr(one, "multiple", False) or one.nargs != 1),
        "choices": [str(each) for each in kind.choices or ()] if kind.is_choice else [],
        "file": one.metavar in ("FILE", "DIR"),
    }


def table_of(package: str) -> Mapping[str, Any]:
    """Return the table of a program's commands; empty where there is none."""
    from importlib.resources import files  # noqa: PLC0415 - only where a line is completed

    place = files(package) / TABLE
    found: Mapping[str, Any] = json.loads(place.read_bytes()) if place.is_file() else {}
    return found


def stand_in(name: str, told: Mapping[str, Any], around: typer.Typer) -> None:
    """Add a command, or a group of them, that takes what the table says and does nothing."""
    if "commands" not in told:
        around.command(name=name, help=told.get("help"))(_function(told))
        return
    group = type(around)(cls=around.info.cls)
    group.callback(invoke_without_command=True)(_function(told))
    for below, one in told["commands"].items():
        stand_in(below, one, group)
    around.add_typer(group, name=name, help=told.get("help"))


def _function(told: Mapping[str, Any]) -> Callable[..., None]:
    """Return a function with the parameters of a command."""

    def nothing(**_given: Any) -> None:  # noqa: ANN401
        """Do nothing."""

    parameters = []
    for place, one in enumerate(told["params"]):
        kind = _annotated(one)
        # The name says where the configuration is: it is looked for in parameters of this name.
        name = "files" if "--config" in one["names"] else f"p{place}"
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=_default(one), annotation=kind
            )
        )
    nothing.__annotations__ = {one.name: one.annotation for one in parameters}
    nothing.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return nothing


def _default(one: Mapping[str, Any]) -> bool | None:
    return False if one["flag"] else None


def _annotated(one: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the type of a parameter, with what is known of it."""
    names = one["names"]
    more: dict[str, Any] = {"help": one["help"]}
    for name in names:
        if name in NAMES:
            more["autocompletion"] = NAMES[name]
    given = typer.Option(*names, **more) if names else typer.Argument(**more)
    return Annotated[bool, given] if one["flag"] else Annotated[_kind(one) | None, given]


def _kind(one: Mapping[str, Any]) -> Any:  # noqa: ANN401
    kind: Any = Path if one["file"] else str
    if one["choices"]:
        choice: Any = StrEnum
        kind = choice("Choice", {f"choice{n}": each for n, each in enumerate(one["choices"])})
    return list[kind] if one["several"] else kind
