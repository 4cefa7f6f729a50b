"""Programs with commands that are imported when called."""

import atexit
import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from lakebed.terminal.call import FAILED, bound

ROOT = Path(__file__).parents[2]
"""The folder of the packages."""
COMMAND = re.compile(r"`\w+ (\w+)`")
"""A command in the first line of its module's docstring."""
NEW_OBJECTS = 100_000
"""The garbage collector's threshold of new objects; Python's default is 700."""
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class DeferredCommand:
    """A command that is imported when it is called."""

    module: str
    sentence: str
    """The first sentence of its help."""


@cache
def _commands_in(packages: tuple[str, ...]) -> Mapping[str, DeferredCommand]:
    """Find the commands in the sources of packages: importing them all takes a second."""
    found = {}
    for package in packages:
        for file in (ROOT / package.replace(".", "/")).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            for name in COMMAND.findall(text.partition("\n")[0]):
                said = re.search(rf'(?ms)^def {name}\(.*?"""(.*?)(?:\n\n|""")', text)
                module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                if said is not None:
                    found[name] = DeferredCommand(module, " ".join(said[1].split()))
    return dict(sorted(found.items()))


class ForwardingGroup(TyperGroup):
    """Commands whose shared options may be written at any level.

    `blizzard -c FILE dlq list` and `blizzard dlq -c FILE list` are `blizzard dlq list -c FILE`. Of
    an option that can be given once, the last one counts. A command refuses an option that it does
    not have.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    """Packages whose modules have commands, which are imported when they are called.

    The first line of such a module names them as a user types them: `blizzard gc`. Each is a
    function of that name, or the callback of the group `app` in the module.
    """

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*given, **named)
        listed = {
            name: TyperCommand(name, help=each.sentence, short_help=each.sentence)
            for name, each in self.deferred().items()
        }
        self.commands = {**listed, **self.commands}

    @classmethod
    def deferred(cls) -> Mapping[str, DeferredCommand]:
        """Return the commands of the packages by name."""
        return _commands_in(cls.packages)

    @classmethod
    def load(cls, name: str) -> Any:  # noqa: ANN401 - typer's own types are private
        """Import a deferred command."""
        module = import_module(cls.deferred()[name].module)
        found = getattr(module, "app", None) or getattr(module, name)
        around = program()
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name)
        else:
            around.command(name=name)(found)
        return get_group(around).commands[name]

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401
        """Return the command, with the options that were written before it."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.deferred():
            command = self.load(name)
        if not rest and getattr(command, "no_args_is_help", False):
            return name, command, rest  # It only shows its commands.
        return name, command, [*_given_before(ctx, command), *rest]


def _given_before(context: Any, command: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the options written before a command in a form valid after it."""
    known = {name for option in command.params for name in option.opts}
    for option in context.command.params:
        source = context.get_parameter_source(option.name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if known.isdisjoint(option.opts):
            whose = f"{context.info_name} itself, not to {command.name}"
            context.fail(f"{option.opts[-1]} belongs to {whose}")
        value = context.params.get(option.name)
        if isinstance(value, bool):
            yield option.opts[0]
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            yield from (option.opts[0], str(each))


class CommandLine(typer.Typer):
    """A command line or a group of commands; a command function may take a `Call` first."""

    def command(
        self,
        name: str | None = None,
        **given: Any,  # noqa: ANN401 - typer's own
    ) -> Callable[[Function], Function]:
        """Return the decorator that makes a function a command."""
        register = super().command

        def add(function: Function) -> Function:
            # Lists of commands show the whole first sentence.
            sentence = " ".join((function.__doc__ or "").split("\n\n")[0].split())
            register(name, **{"short_help": sentence, **given})(bound(function))
            return function

        return add

    def callback(self, **given: Any) -> Callable[[Function], Function]:  # noqa: ANN401
        """Return the decorator that gives a group its options."""
        register = super().callback(**given)

        def add(function: Function) -> Function:
            register(bound(function))
            return function

        return add


def program(commands: type[ForwardingGroup] = ForwardingGroup, **given: Any) -> CommandLine:  # noqa: ANN401
    """Return a command line in the style of both programs."""
    # Only for whole programs: inner groups complete as parts of one.
    is_whole = commands is not ForwardingGroup
    return CommandLine(
        cls=commands,
        add_completion=is_whole,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        # Help and usage errors as plain text, like all other output.
        rich_markup_mode=None,
        **given,
    )


def called_as(path: str, name: str) -> str:
    """Return the name under which a program was called; its own if by a script or Python.

    Help and completion use the typed name: it may be a link, or one of two versions. Pure.
    """
    typed = Path(path).name
    return name if typed in ("", "-c", "-m") or typed.endswith(".py") else typed


def run_program(app: typer.Typer, name: str) -> None:
    """Run a command line; one that cannot print its results says so and exits with 1."""
    # Modules and classes live as long as the program: collecting among them took
    # a fifteenth of a short run, and a fifth at its end.
    gc.set_threshold(NEW_OBJECTS)
    gc.enable()
    # Searching every installed package for plugins took a twentieth of a short run.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    atexit.register(gc.freeze)
    end = _End()
    try:
        try:
            app(prog_name=called_as(sys.argv[0], name))
        except SystemExit as asked:
            end.code = asked.code if isinstance(asked.code, int) else FAILED
            raise
        finally:
            sys.stdout.flush()
    except OSError as trouble:
        # A command reports the errors of its stores: only those of the terminal get here.
        # Discard remaining output, which the interpreter would try to write again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"error: cannot write to standard output: {trouble.strerror}\n")
        end.code = FAILED
        raise SystemExit(FAILED) from None


class _End:
    """Exits at once, after all other exit handlers, if daemon threads still run.

    A thread that returns from a library into an interpreter that is shutting down would crash the
    process after everything is done.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        # Handlers run in reverse order of registration, so this one runs last.
        atexit.register(self)

    def __call__(self) -> None:
        if self.code is not None and any(each.daemon for each in threading.enumerate()):
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(self.code)


def version_option(name: str) -> Any:  # noqa: ANN401 - what typer.Option gives
    """Return the option that prints the version of a program and exits."""

    def print_version(wanted: bool) -> None:
        if wanted:
            from importlib.metadata import version  # noqa: PLC0415 - it is slow to import

            typer.echo(f"{name} {version('blizzard-penguin')}")
            raise typer.Exit

    show: Callable[[bool], None] = print_version
    return typer.Option("-V", "--version", callback=show, is_eager=True, help="Print the version.")
