"""The arguments that both programs take, and the exit codes that both give."""

import atexit
import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, TextIO, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from lakebed.errors import ConfigInvalid, LakeError, ProtocolConflict, StoreMisconfigured
from lakebed.shown import printable
from lakebed.telemetry.levels import LogFormat, LogLevel
from lakebed.terminal.console import say_error

CHOICES = re.compile(r" <(?:list\[)?([^<>\[\]]*\|[^<>\[\]]*)\]?>")
"""How the library shows a value that is one of several."""
TYPE = re.compile(r" <[\w\[\], ]+>")
"""How it shows any other value."""
LEAST = re.compile(r"x>=([\d.]+)")


def plain_record(record: tuple[str, str]) -> tuple[str, str]:
    """Return an option or argument as a person would write it: `--output [text|json]`. Pure."""
    name, text = record
    name = TYPE.sub("", CHOICES.sub(r" [\1]", name))
    return name, LEAST.sub(r"at least \1", text)


def plain_usage(pieces: Iterable[str]) -> list[str]:
    """Return the words of a usage line: those in brackets may be left out. Pure."""
    return [re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1\2", piece) for piece in pieces]


DONE, FAILED, USAGE = 0, 1, 2
FILES_FAILED = 3
"""A run did its work, and some source files failed in it."""
Function = TypeVar("Function", bound=Callable[..., Any])

NEW_OBJECTS = 100_000
"""New objects after which unused ones are looked for; Python's own number is 700."""

TOO_SMALL = "Input should be greater than or equal to"
NO_INTEGER = "Input should be a valid integer, unable to parse"
"""How the library that checks values begins what it says of a text where a number should be."""

NOT_OF_A_RUN = frozenset(
    "-c --config -C --config-dir -p --pipeline --output -V --version".split()  # noqa: SIM905
)
"""Options that a run shares with most commands, and what has nothing to do with a run."""


class Output(StrEnum):
    """How results are printed."""

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
Shape = Annotated[Output, typer.Option("--output", help="Format of the result.")]
Sure = Annotated[
    bool, typer.Option("--yes", help="Do it; without this, only show what would be done.")
]
Least = Annotated[
    LogLevel, typer.Option("--log-level", case_sensitive=False, help="Lowest level to log.")
]
LineShape = Annotated[LogFormat, typer.Option("--log-format", help="Format of the log.")]


@dataclass(frozen=True, slots=True)
class DeferredCommand:
    """A command, or a group of them, whose module is imported when it is called.

    A list of commands shows its line of help without that: a program with many commands would
    otherwise import all that any of them needs to say what it can do.
    """

    module: str
    name: str
    """What the module calls it: a function, or an app."""
    help: str
    """The first line of its help, as the command itself says it."""

    def load(self, name: str) -> Any:  # noqa: ANN401 - typer's own types are private
        """Import the command, and return it under the name that it is called by."""
        found = getattr(import_module(self.module), self.name)
        around = program()
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name)
        else:
            around.command(name=name)(found)
        return get_group(around).commands[name]


def _write_options(command: Any, context: Any, formatter: Any) -> None:  # noqa: ANN401
    """Write the arguments and options of a command, in the words that a person types."""
    for kind, title in (("argument", "Arguments"), ("option", "Options")):
        params = [one for one in command.get_params(context) if one.param_type_name == kind]
        records = [one.get_help_record(context) for one in params]
        rows = [plain_record(record) for record in records if record is not None]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


@contextmanager
def _plain_faults() -> Iterator[None]:
    """Take from a fault what the library that checks values puts before it."""
    try:
        yield
    except typer.BadParameter as fault:
        found = fault.message.removeprefix("Value error, ")
        found = "must be a whole number" if found.startswith(NO_INTEGER) else found
        fault.message = found.replace(TOO_SMALL, "must be at least")
        raise


@contextmanager
def _owned_options(context: Any) -> Iterator[None]:  # noqa: ANN401 - typer's own types
    """Say of an option that a command does not have, but a run of the program does, whose it is.

    The error's own class is not exported; what it is about tells it apart.
    """
    try:
        yield
    except Exception as fault:
        option, root = getattr(fault, "option_name", None), context.find_root()
        if option in _options(root.command) - _options(context.command) - NOT_OF_A_RUN:
            fault.message = (  # type: ignore[attr-defined]
                f"{context.command_path} has no option {option}: it belongs to a run, "
                f"{root.command_path} {option} ..."
            )
        raise


def _options(command: Any) -> set[str]:  # noqa: ANN401 - typer's own types
    return {name for one in command.params for name in one.opts}


class PlainCommand(TyperCommand):
    """A command whose help names what is typed, and no types of Python's."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own types
        """Return the words of the usage line."""
        return plain_usage(super().collect_usage_pieces(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read the arguments; what is wrong with one is told in words of our own."""
        with _plain_faults(), _owned_options(ctx):
            return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write arguments and options."""
        _write_options(self, ctx, formatter)


class ForwardingGroup(TyperGroup):
    """Commands whose shared options mean the same wherever they are written.

    `blizzard -c FILE dlq list` and `blizzard dlq -c FILE list` are `blizzard dlq list -c FILE`. Of
    an option that can be given once, what is written last counts. One that the command does not
    have is refused by the command, and never ignored.
    """

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {}
    """Commands that are imported when they are called; they are listed before the others."""

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*given, **named)
        listed = {name: PlainCommand(name, help=one.help) for name, one in self.deferred.items()}
        self.commands = {**listed, **self.commands}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read the arguments; what is wrong with one is told in words of our own."""
        with _plain_faults():
            return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write options, and each command with the whole first sentence of its help."""
        _write_options(self, ctx, formatter)
        rows = [
            (name, self.commands[name].get_short_help_str(limit=sys.maxsize))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 - typer's own types are private
        """Return the command, and pass on to it what was written before it."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.deferred:
            command = self.deferred[name].load(name)
        if not rest and getattr(command, "no_args_is_help", False):
            return name, command, rest  # It does nothing by itself, and shows its commands.
        return name, command, [*_given_before(ctx), *rest]


def _given_before(context: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the options that were written before the command, as they could be written again."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params.get(option.name)
        if isinstance(value, bool):
            yield option.opts[0]
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            yield from (option.opts[0], str(each))


class Program(typer.Typer):
    """A command line, or a group of commands, whose help is plain."""

    def command(
        self,
        name: str | None = None,
        **given: Any,  # noqa: ANN401 - typer's own
    ) -> Callable[[Function], Function]:
        """Return what makes a function a command."""
        return super().command(name, **{"cls": PlainCommand, **given})


def program(commands: type[ForwardingGroup] = ForwardingGroup) -> Program:
    """Return a command line that looks like the other program's."""
    # Only of whole programs: a group inside of one completes as a part of it.
    is_whole = commands is not ForwardingGroup
    return Program(
        cls=commands,
        add_completion=is_whole,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        # Help and usage errors as plain text, like everything else that is printed.
        rich_markup_mode=None,
    )


class _OutputLost(OSError):
    """What was to be printed has nowhere to go."""


class _Output:
    """Standard output, whose errors can be told apart from those of other files."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - a stream, or what a test puts there
        self._stream = stream

    def write(self, text: str) -> int:
        with _told_apart():
            return int(self._stream.write(text))

    def flush(self) -> None:
        with _told_apart():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except OSError as trouble:
        raise _OutputLost(trouble.errno, trouble.strerror) from trouble


def called_as(path: str, name: str) -> str:
    """Return the name that a program was called by; its own where a script or Python called it.

    Help and completion are for the name that is typed: it may be a link, or one of two versions.
    Pure.
    """
    typed = Path(path).name
    return name if typed in ("", "-c", "-m") or typed.endswith(".py") else typed


def run_program(app: typer.Typer, name: str) -> None:
    """Run a command line; one that cannot print its results says so in a line and exits with 1."""
    # What a start makes, modules and classes, lives as long as the program: to look through it time
    # and again took a fifteenth of a short run, and once more at its end a fifth.
    gc.set_threshold(NEW_OBJECTS)
    gc.enable()
    atexit.register(gc.freeze)
    sys.stdout = output = cast("TextIO", _Output(sys.stdout))
    end = _End()
    try:
        try:
            app(prog_name=called_as(sys.argv[0], name))
        except SystemExit as asked:
            end.code = asked.code if isinstance(asked.code, int) else FAILED
            raise
        finally:
            output.flush()
    except _OutputLost as trouble:
        # Whatever is left to print has nowhere to go; the interpreter would try it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        sys.stderr.write(f"error: cannot write to standard output: {trouble.strerror}\n")
        end.code = FAILED
        raise SystemExit(FAILED) from None


class _End:
    """Leaves at once, as the last thing of all, while threads still run that nobody waits for.

    One that comes back from a library into an interpreter that is being taken apart would take the
    whole process down, after everything is done.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        # What is registered first is called last: what others have to do at the end is done.
        atexit.register(self)

    def __call__(self) -> None:
        if self.code is not None and any(each.daemon for each in threading.enumerate()):
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(self.code)


def version_option(name: str) -> Any:  # noqa: ANN401 - what typer.Option gives
    """Return the option that prints the version of a program and ends it."""

    def print_version(wanted: bool) -> None:
        if wanted:
            from importlib.metadata import version  # noqa: PLC0415 - it reads mail, at a price

            typer.echo(f"{name} {version('blizzard-penguin')}")
            raise typer.Exit

    show: Callable[[bool], None] = print_version
    return typer.Option("-V", "--version", callback=show, is_eager=True, help="Print the version.")


def complain(error: LakeError, who: str = "", shape: LogFormat = LogFormat.TEXT) -> None:
    """Write on standard error what is wrong, a line for each fault."""
    faults = error.faults if isinstance(error, ConfigInvalid) else [f"{who}: {error.after(who)}"]
    for fault in faults:
        if shape is LogFormat.JSON:
            from lakebed.telemetry.events import FaultFound  # noqa: PLC0415 - help logs nothing
            from lakebed.telemetry.logs import log_events  # noqa: PLC0415

            log_events(LogLevel.ERROR, shape)(FaultFound(code=error.code, error=fault))
        else:
            # What is wrong in a file of the configuration may be told in several lines.
            lines = "\n" if isinstance(error, ConfigInvalid) else ""
            say_error(f"error: {printable(fault, keep=lines)}")


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for an error: 2 where the configuration is what must be changed."""
    configured = ConfigInvalid | ProtocolConflict | StoreMisconfigured
    return USAGE if isinstance(error, configured) else FAILED


def exit_code_of_run(errors: Iterable[BaseException], *, stopped: bool, otherwise: int) -> int:
    """Return the exit code of a run with these errors, or `otherwise` without any.

    A run that a signal has stopped never ends with 2: a supervisor takes that for a run that ended
    by itself, because of its configuration, and does not start it again.
    """
    code = max(map(exit_code_of, errors), default=otherwise)
    return min(code, FAILED) if stopped else code


ExitCode = Callable[[LakeError], int]


class Outcome:
    """The exit code of a command for several pipelines or tables: none of them stops another."""

    def __init__(self, shape: LogFormat = LogFormat.TEXT) -> None:
        self.code = DONE
        self._shape = shape

    def at_least(self, code: int) -> None:
        """Raise the exit code to this one."""
        self.code = max(self.code, code)

    @contextmanager
    def of(self, who: str, code: ExitCode = lambda _error: FAILED) -> Iterator[None]:
        """Print an error in what is done for one of them, and continue."""
        try:
            yield
        except LakeError as error:
            complain(error, who, self._shape)
            self.at_least(code(error))


@contextmanager
def ends_on_error(who: str, code: ExitCode = lambda _error: FAILED) -> Iterator[None]:
    """End the program with an error in what is done for one pipeline or place, if there is one."""
    outcome = Outcome()
    with outcome.of(who, code):
        yield
    if outcome.code != DONE:
        raise typer.Exit(outcome.code)


@contextmanager
def usage_is_checked(shape: LogFormat = LogFormat.TEXT) -> Iterator[None]:
    """End the program with every fault of its configuration, should there be one."""
    try:
        yield
    except ConfigInvalid as invalid:
        complain(invalid, shape=shape)
        raise typer.Exit(USAGE) from None
