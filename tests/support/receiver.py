"""A server on the loopback that takes documents, as a collector of traces or lineage does."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.answering import Asked, Given, answering
from tests.support.waits import until


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    document: dict[str, Any]


@dataclass
class Receiver:
    """Where it listens, what it got, and how it answers."""

    url: str = ""
    status: int = 200
    received: list[Received] = field(default_factory=list)
    holds: threading.Event | None = None
    """No answer is given until this is set."""

    def wait_for(self, requests: int) -> list[Received]:
        until(lambda: len(self.received) >= requests)
        return self.received

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [each.document for each in self.received]

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Return every span of OTLP that was received, with the service that it is of."""
        return [
            {**span, "service": _service(of_resource)}
            for document in self.documents
            for of_resource in document["resourceSpans"]
            for of_scope in of_resource["scopeSpans"]
            for span in of_scope["spans"]
        ]


def _service(of_resource: Mapping[str, Any]) -> str:
    (name,) = (
        each["value"]["stringValue"]
        for each in of_resource["resource"]["attributes"]
        if each["key"] == "service.name"
    )
    return str(name)


@contextmanager
def receiving(**given: Any) -> Iterator[Receiver]:
    """Receive documents for as long as a test takes."""
    receiver = Receiver(**given)

    def take(asked: Asked) -> Given:
        if receiver.holds is not None:
            receiver.holds.wait(300)
        status = receiver.status  # Whoever sees the request may change it for the next one.
        receiver.received.append(Received(asked.path, asked.headers, json.loads(asked.body)))
        return Given(status, headers={"Location": receiver.url + "/elsewhere"})

    with answering() as here:
        here.answer = take
        receiver.url = here.address
        try:
            yield receiver
        finally:
            if receiver.holds is not None:
                receiver.holds.set()
