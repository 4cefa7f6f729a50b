"""What a Delta log says of its table besides the data files. Pure.

Protocol, metadata, app transactions, domain metadata, and the timestamp of the last version: all
that a commit needs which only adds files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakebed.documents.reading import parse_json
from lakebed.layout import is_stranger_transaction

KINDS = ("protocol", "metaData", "txn", "domainMetadata")
"""The actions of a checkpoint that are not of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a table requires of its readers and writers."""

    reader: int = 1
    writer: int = 2
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    @property
    def features(self) -> frozenset[str]:
        """Return all table features, by name."""
        return self.reader_features | self.writer_features

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> "Protocol":
        """Read an action."""
        return cls(
            reader=int(action["minReaderVersion"]),
            writer=int(action["minWriterVersion"]),
            reader_features=frozenset(action.get("readerFeatures") or ()),
            writer_features=frozenset(action.get("writerFeatures") or ()),
        )


@dataclass(slots=True, kw_only=True)
class TableActions:
    """The actions of one or more files of a log; what is taken later replaces what came before."""

    protocol: Protocol | None = None
    metadata: Mapping[str, Any] | None = None
    transactions: dict[str, int] = field(default_factory=dict)
    """But those of single files that other programs wrote: there may be one for every file."""
    domains: dict[str, str | None] = field(default_factory=dict)
    """The configuration of each domain of metadata; None of one that was removed."""
    in_commit_timestamp: int | None = None
    """Milliseconds, as the last version that was taken says; None where it does not."""

    def take_version(self, body: bytes) -> dict[str, int]:
        """Take one version, and return the transactions that it carries, all of them.

        One that cannot be read, or that is empty, is a ValueError.
        """
        self.in_commit_timestamp = None
        carried: dict[str, int] = {}
        for action in _lines(body):
            match action:
                case {"txn": {"appId": str(app_id), "version": int(number)}}:
                    carried[app_id] = number
            self.take(action)
        return carried

    def take_timestamp(self, body: bytes) -> None:
        """Take only the timestamp of a version whose actions are known: it is in the first line."""
        self.in_commit_timestamp = None
        end = body.find(b"\n")
        for action in _lines(body if end < 0 else body[:end]):
            self.take(action)

    def take(self, action: object) -> None:
        """Take one action; what is not about the table is passed over."""
        match action:
            case {"txn": {"appId": str(app_id), "version": int(number)}}:
                if not is_stranger_transaction(app_id):
                    self.transactions[app_id] = number
            case {"domainMetadata": {"domain": str(domain)} as said}:
                configuration = None if said.get("removed") else str(said.get("configuration", ""))
                self.domains[domain] = configuration
            case {"commitInfo": {"inCommitTimestamp": int(at)}}:
                self.in_commit_timestamp = at
            case {"protocol": {"minReaderVersion": int(), "minWriterVersion": int()} as said}:
                self.protocol = Protocol.of(said)
            case {"metaData": dict(said)}:
                self.metadata = said
            case {"txn": _} | {"domainMetadata": _} | {"protocol": _} | {"metaData": _}:
                raise ValueError("an action of the Delta log is not as the protocol writes it")


def _lines(body: bytes) -> Iterator[object]:
    if not body or body.isspace():
        raise ValueError("a version of the Delta log is empty")
    for line in body.splitlines():
        if line.strip():
            yield parse_json(line)
