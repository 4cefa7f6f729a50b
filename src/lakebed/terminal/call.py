"""The call of a command: the shared options, its reports and its exit code."""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer

from lakebed.errors import (
    ArgumentInvalid,
    ConfigInvalid,
    LakeError,
    ProtocolConflict,
    StoreMisconfigured,
    printable,
)
from lakebed.terminal.console import Line, print_error, print_json, print_text
from lakebed.types import LogFormat, LogLevel
from lakebed.units import plural

if TYPE_CHECKING:
    from rich.status import Status

DONE, FAILED, USAGE = 0, 1, 2
FILES_FAILED = 3
"""A run finished, and some source files failed in it."""


class Output(StrEnum):
    """Format of a report."""

    TEXT = "text"
    JSON = "json"


Files = Annotated[
    list[Path] | None,
    typer.Option("-c", "--config", metavar="FILE", help="Configuration file; repeatable."),
]
Folders = Annotated[
    list[Path] | None,
    typer.Option("-C", "--config-dir", metavar="DIR", help="Folder of YAML files; repeatable."),
]
Confirmed = Annotated[
    bool, typer.Option("--yes", help="Do it; without this, only show what would be done.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")]
MinLogLevel = Annotated[
    LogLevel, typer.Option("--log-level", case_sensitive=False, help="Lowest level to log.")
]
LogShape = Annotated[LogFormat, typer.Option("--log-format", help="Format of the log.")]


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for an error: 2 if the call or the configuration must be changed."""
    configured = ArgumentInvalid | ConfigInvalid | ProtocolConflict | StoreMisconfigured
    return USAGE if isinstance(error, configured) else FAILED


def exit_code_of_run(errors: Iterable[BaseException], *, stopped: bool, otherwise: int) -> int:
    """Return the exit code of a run with these errors, or `otherwise` without any.

    A run stopped by a signal never exits with 2: a supervisor reads that as a fault of the
    configuration, and does not start the run again.
    """
    code = max(map(exit_code_of, errors), default=otherwise)
    return min(code, FAILED) if stopped else code


def refuse(text: str, code: int = USAGE) -> NoReturn:
    """Exit with an error about the arguments."""
    print_error(f"error: {text}")
    raise typer.Exit(code)


def complain(error: LakeError, who: str = "", shape: LogFormat = LogFormat.TEXT) -> None:
    """Write an error to standard error, a line for each fault."""
    message = error.after(who)
    # A source often has the name of its pipeline, and begins the key of its file.
    before = f"{who}: " if who and not message.startswith(f"{who}:") else ""
    invalid = isinstance(error, ConfigInvalid)
    faults = error.faults if isinstance(error, ConfigInvalid) else [before + message]
    for fault in faults:
        if shape is LogFormat.TEXT:
            # A fault of a configuration file may take several lines.
            lines = "\n" if invalid else ""
            print_error(f"error: {printable(fault, keep=lines)}")
            continue
        from lakebed.telemetry.events import FaultFound  # noqa: PLC0415 - help logs nothing
        from lakebed.telemetry.logs import log_events  # noqa: PLC0415

        log_events(LogLevel.ERROR, shape)(FaultFound(code=error.code, error=fault))


@dataclass(frozen=True, slots=True)
class Waiting:
    """Progress of a command, shown on a terminal only."""

    what: str
    status: "Status | None" = None

    @property
    def write(self) -> Callable[[str], None] | None:
        """Print log lines above a status; None without a status."""
        if self.status is None:
            return None
        return partial(self.status.console.print, markup=False, highlight=False, soft_wrap=True)

    def rewritten(self, done: int, groups: int) -> None:
        """Show how many groups of files are rewritten."""
        if self.status is not None:
            from rich.text import Text  # noqa: PLC0415 - most commands do without it

            of = plural(groups, "group")
            self.status.update(Text(f"{self.what}: {done:,} of {of} of files rewritten"))


@contextmanager
def reading(what: str, output: Output) -> Iterator[Waiting]:
    """Show on a terminal that stores are being read."""
    if output is not Output.TEXT or not sys.stderr.isatty():
        yield Waiting(what)
        return
    from rich.console import Console  # noqa: PLC0415 - most commands do without it
    from rich.text import Text  # noqa: PLC0415

    with Console(stderr=True).status(Text(f"{what}: reading")) as status:
        yield Waiting(what, status)


ExitCode = Callable[[LakeError], int]


@dataclass(kw_only=True)
class Call:
    """The shared options of a command, and its exit code.

    A command function takes a call first; `bound` replaces it by the options of the call, and takes
    the help of the other parameters from the section `Args` of its docstring.
    """

    context: typer.Context
    files: Files = None
    folders: Folders = None
    output: Annotated[Output, typer.Option("--output", help="Format of the result.")] = Output.TEXT
    code: int = field(default=DONE, init=False)
    who: str = field(default="", init=False)
    """The pipeline or table that an escaping error concerns."""
    log_format: LogFormat = field(default=LogFormat.TEXT, init=False)

    @property
    def has_subcommand(self) -> bool:
        """Whether a command of this group follows."""
        return self.context.invoked_subcommand is not None

    def at_least(self, code: int) -> None:
        """Raise the exit code to at least this one."""
        self.code = max(self.code, code)

    def fail_if(self, failed: object) -> None:
        """Exit with at least 1 if something failed."""
        self.at_least(FAILED if failed else DONE)

    def show(self, lines: Iterable[Line], *documents: object) -> None:
        """Print a report: its documents as lines of JSON, or its lines as text."""
        if self.output is Output.TEXT:
            print_text(lines)
        else:
            for document in documents:
                print_json(document)

    def needs_yes(self) -> None:
        """Print that `--yes` carries the plan out, and exit with 1."""
        sys.stderr.write("add --yes to do it\n")
        self.at_least(FAILED)

    @contextmanager
    def guard(self, who: str, code: ExitCode = exit_code_of) -> Iterator[None]:
        """Report an error of one pipeline or table, and continue with the others."""
        try:
            yield
        except LakeError as error:
            complain(error, who, self.log_format)
            self.at_least(code(error))


def bound(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer, with the options of its call in place of the call.

    An error that escapes it is reported, and sets the exit code.
    """
    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())
    kind = hints.get(own[0].name) if own else None
    call_type = kind if isinstance(kind, type) and issubclass(kind, Call) else None
    options = [each for each in fields(call_type) if each.init] if call_type else []

    def run(**given: Any) -> None:  # noqa: ANN401 - what typer has parsed
        if call_type is None:
            function(**given)
            return
        call = call_type(**{each.name: given.pop(each.name) for each in options})
        try:
            function(call, **given)
        except LakeError as error:
            complain(error, call.who, call.log_format)
            call.at_least(exit_code_of(error))
        if not call.has_subcommand:
            raise typer.Exit(call.code)

    text, documented = _documented(function)
    parameters: dict[str, tuple[Any, Any]] = {
        each.name: (_parameter(hints[each.name], each, documented), each.default)
        for each in (own[1:] if call_type else own)
    }
    parameters |= {each.name: (each.type, each.default) for each in options}
    run.__annotations__ = {name: hint for name, (hint, _default) in parameters.items()}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is MISSING else default,
                annotation=hint,
            )
            for name, (hint, default) in parameters.items()
        ]
    )
    run.__doc__, run.__name__ = text, function.__name__
    return run


ENTRY = re.compile(r"^    (\w+)(?: (\S+))?: (.*?)(?=^    \w|\Z)", re.DOTALL | re.MULTILINE)
"""A parameter in the section `Args` of a docstring: name, metavar and help."""


def _documented(function: Callable[..., None]) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a docstring without its section `Args`, and each parameter's metavar and help."""
    text, _, section = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    return text, {name: (metavar, words) for name, metavar, words in ENTRY.findall(section)}


def _parameter(
    hint: Any,  # noqa: ANN401 - any type
    parameter: inspect.Parameter,
    documented: Mapping[str, tuple[str, str]],
) -> Any:  # noqa: ANN401
    """Return the annotation of a parameter for typer, with its metavar and help.

    One with a default value is an option of its name; a flag has no negative form.
    """
    if parameter.name not in documented:
        return hint
    metavar, words = documented[parameter.name]
    if get_origin(hint) is Annotated:
        hint, info = get_args(hint)
    elif parameter.default is inspect.Parameter.empty:
        info = typer.Argument()
    else:
        info = typer.Option(f"--{parameter.name.replace('_', '-')}")
    info = copy(info)
    info.metavar, info.help = metavar or None, " ".join(words.split())
    return Annotated[hint, info]
