"""The pipelines and tables of one configuration, and requests to the programs that serve them.

Requests go to a program's metrics address, without proxies or redirects: the token is sent only to
the configured address. With TLS, only the configured certificate is trusted.
"""

import http.client
import re
import ssl
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from blizzard.answers.answer import CommandPrefix
from blizzard.config import load as blizzard_config
from blizzard.model.settings import BlizzardSettings, PipelineSettings
from lakebed.config.files import Given, options_of
from lakebed.errors import ConfigInvalid
from lakebed.layout import PIPELINE_NAME
from lakebed.locations import written_out
from lakebed.telemetry.http import secret_of
from lakebed.telemetry.settings import Guard
from lakebed.types import CommitMode
from liveview.model import Program
from penguin.config import load as penguin_config
from penguin.model.settings import PenguinSettings, TableSettings

ProgramName = Literal["blizzard", "penguin"]
LARGEST = 64 << 20
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - to be asked, not bound
"""Wildcard listen addresses and the loopback address to connect to instead."""

OTHER_LAKE = "a program with another configuration answers at {address}"

Document = TypeVar("Document")
_READERS: dict[type[Any], TypeAdapter[Any]] = {}


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The reason why a program does not answer."""

    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The pipelines, tables and program addresses of one configuration."""

    pipelines: Mapping[str, PipelineSettings] = field(default_factory=dict)
    tables: Mapping[str, TableSettings] = field(default_factory=dict)
    """By route name; a table without a `tables:` entry is named after its pipeline."""
    table_of: Mapping[str, str] = field(default_factory=dict)
    """The table of each pipeline."""
    addresses: Mapping[ProgramName, str | None] = field(default_factory=dict)
    """Each program's metrics address; None if it serves none."""
    guard: Guard = field(default_factory=Guard)
    notes: Mapping[ProgramName, str] = field(default_factory=dict)
    """Why a program is not needed or cannot run."""
    options: str = ""
    """The options that name the configuration in a command."""

    @property
    def table_uris(self) -> list[str]:
        """The tables of the configuration, valid from any working directory."""
        return [written_out(one.table_uri) for one in self.tables.values()]

    def shares(self, table_uris: Iterable[str]) -> bool:
        """Whether a program with these tables may run with the same configuration."""
        return not set(self.table_uris).isdisjoint(table_uris)

    def pipelines_of(self, table: str) -> list[str]:
        """Return the pipelines that write to a table."""
        return [name for name, of in self.table_of.items() if of == table]

    def line(self, pipeline: str | None = None) -> CommandPrefix:
        """Return the command prefix, with the pipeline if the configuration has several."""
        return CommandPrefix(self.options, pipeline if len(self.pipelines) > 1 else None)

    def unreachable(self, program: ProgramName, note: str | None) -> Program:
        """Return a program's record as not reachable."""
        return Program(
            name=program,
            reachable=False,
            needed=program not in self.notes,
            address=self.addresses.get(program),
            note=note,
        )

    def ask(
        self, program: ProgramName, path: str, kind: type[Document], *, timeout: float
    ) -> Document | Unreachable:
        """Request a document from a program."""
        address, note = self.addresses.get(program), self.notes.get(program)
        if note is not None:
            return Unreachable(note)
        if address is None:
            return Unreachable("metrics.enabled is off, so it has no address")
        return fetched(address, self.guard, path, kind, timeout=timeout)


def fetched(
    address: str, guard: Guard, path: str, kind: type[Document], *, timeout: float
) -> Document | Unreachable:
    """Request a document from the program at an address."""
    host, _colon, port = address.rpartition(":")
    host = EVERYWHERE.get(host.strip("[]"), host.strip("[]"))
    if not int(port):
        return Unreachable("its port is chosen when it starts, so its address is not known")
    try:
        with closing(_connection(host, int(port), guard, timeout)) as connection:
            secret = secret_of(guard)
            headers = {} if secret is None else {"Authorization": f"Bearer {secret.decode()}"}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                return Unreachable(f"it answers {answer.status} at {address}")
            if kind not in _READERS:  # Building a validator is slow, so it waits for an answer.
                _READERS[kind] = TypeAdapter(kind)
            found: Document = _READERS[kind].validate_json(answer.read(LARGEST))
            return found
    except ConfigInvalid:
        return Unreachable("the token or the certificate of the configuration cannot be read")
    except (OSError, http.client.HTTPException):
        return Unreachable(f"no answer at {address}")
    except ValidationError:
        return Unreachable(f"another version or another program answers at {address}")


def _connection(host: str, port: int, guard: Guard, timeout: float) -> http.client.HTTPConnection:
    if guard.tls_cert_file is None:
        return http.client.HTTPConnection(host, port, timeout=timeout)
    # Both programs serve the same certificate, which is trusted with any issuer and name.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=guard.tls_cert_file)
    except (ssl.SSLError, ValueError) as cause:
        raise ConfigInvalid([f"metrics.tls_cert_file: {guard.tls_cert_file}"]) from cause
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)


def lake_of(
    own: BlizzardSettings | PenguinSettings,
    files: Sequence[Given],
    folders: Sequence[Path],
    environment: Mapping[str, str],
) -> Lake:
    """Combine a program's own settings with the other program's, loaded now."""
    notes: dict[ProgramName, str] = {}
    blizzard = own if isinstance(own, BlizzardSettings) else None
    penguin = own if isinstance(own, PenguinSettings) else None
    if blizzard is None:
        try:
            blizzard = blizzard_config.load(files, folders, environment)
        except ConfigInvalid:
            notes["blizzard"] = "this configuration has no pipelines that blizzard can run"
    if penguin is None:
        try:
            penguin = penguin_config.load(files, folders, environment)
        except ConfigInvalid:
            notes["penguin"] = "this configuration has no tables that penguin can commit to"
    given = [file.absolute() if isinstance(file, Path) else file for file in files]
    options = options_of(given, [folder.absolute() for folder in folders])
    return replace(joined(blizzard, penguin, notes), options=options)


def joined(
    blizzard: BlizzardSettings | None,
    penguin: PenguinSettings | None,
    notes: Mapping[ProgramName, str] | None = None,
) -> Lake:
    """Combine the settings of both programs. Pure."""
    tables = {} if penguin is None else _by_route(penguin.tables)
    routes = {table.name: name for name, table in tables.items()}
    pipelines = {} if blizzard is None else {each.name: each for each in blizzard.pipelines}
    table_of: dict[str, str] = {}
    by_uri: dict[str, str] = {}
    for name, settings in pipelines.items():
        sink = settings.sink
        known = None if blizzard is None else routes.get(blizzard.tables.get(name, ""))
        if known is None:
            known = by_uri.get(sink.table_uri)
        if known is None:
            known = name if name not in tables else f"{name}-table"
            tables[known] = TableSettings(
                name=sink.table_uri,
                table_uri=sink.table_uri,
                storage_options=sink.storage_options,
            )
            by_uri[sink.table_uri] = known
        table_of[name] = known
    reasons = dict(notes or {})
    theirs = {table_of[n] for n, p in pipelines.items() if p.sink.commit is not CommitMode.INLINE}
    if pipelines and not theirs and set(tables) == set(table_of.values()):
        reasons["penguin"] = "not needed: blizzard commits itself (sink.commit: inline)"
    some = blizzard if blizzard is not None else penguin
    return Lake(
        pipelines=pipelines,
        tables=tables,
        table_of=table_of,
        addresses={
            "blizzard": None if blizzard is None else blizzard.metrics_address,
            "penguin": None if penguin is None else penguin.metrics_address,
        },
        guard=Guard() if some is None else some.metrics_guard,
        notes=reasons,
    )


def _by_route(tables: Sequence[TableSettings]) -> dict[str, TableSettings]:
    """Return tables by names that are valid in a URL path."""
    found: dict[str, TableSettings] = {}
    for table in tables:
        name = table.name
        if not PIPELINE_NAME.fullmatch(name):
            name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"table-{name}")[:90]
        while name in found:
            name = f"{name}-2"
        found[name] = table
    return found
