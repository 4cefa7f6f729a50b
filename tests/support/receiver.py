"""A server on the loopback that takes documents, as a collector of traces or lineage does."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if receiver.holds is not None:
                receiver.holds.wait(300)
            status = receiver.status  # Whoever sees the request may change it for the next one.
            receiver.received.append(Received(self.path, dict(self.headers), json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Location", receiver.url + "/elsewhere")
            self.end_headers()

        def log_message(self, *_given: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            if receiver.holds is not None:
                receiver.holds.set()
            server.shutdown()
            thread.join()
