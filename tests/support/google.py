"""A store that speaks as Google's does: a proxy on loopback that translates for an S3.

The library speaks Google's XML API, which is that of S3 but for the names of some headers. The
emulators of Google's store speak the JSON API alone. It is a program of its own: the libraries do
not always let other threads of a process run while they wait for an answer.
"""

import http.client
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COPY = "x-goog-copy-source"
CREATE_ONLY = ("x-goog-if-generation-match", "0")
OURS_ALONE = {"connection", "transfer-encoding", "date", "server", "content-length"}


def for_s3(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request of Google's as S3 has them. Pure."""
    # moto checks no signature, but takes a request without one for a stranger's.
    translated = {"Authorization": "AWS4-HMAC-SHA256 Credential=tests/20240101/x/s3/aws4_request"}
    for name, value in headers.items():
        key = name.lower()
        if key == CREATE_ONLY[0]:
            assert value == CREATE_ONLY[1], "only create-only writes are known"
            translated["If-None-Match"] = "*"
        elif key == COPY:
            translated["x-amz-copy-source"] = value
        elif key not in ("connection", "authorization"):
            translated[name] = value
    return translated


def main(s3: str) -> None:
    """Serve until the end of the process, and say where."""
    host = urlsplit(s3).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 120
        disable_nagle_algorithm = True  # Else each answer waits 40 ms between its head and body.

        def log_message(self, *_given: object) -> None:
            pass

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return lambda: _serve(self, host)
            raise AttributeError(name)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 64

        def handle_error(self, *_given: object) -> None:
            pass  # Clients that hang up are part of the game.

    server = Server(("127.0.0.1", 0), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)  # noqa: T201
    server.serve_forever()


def _serve(handler: BaseHTTPRequestHandler, host: str) -> None:
    body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    connection = http.client.HTTPConnection(host, timeout=300)
    try:
        headers = for_s3(dict(handler.headers.items()))
        connection.request(handler.command, handler.path, body or None, headers)
        answer = connection.getresponse()
        status, given, content = answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()
    length = answer.getheader("Content-Length") if handler.command == "HEAD" else None
    handler.send_response(status)
    for name, value in given:
        if name.lower() not in OURS_ALONE:
            handler.send_header(name, value)
    handler.send_header("Content-Length", length or str(len(content)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(content)
    handler.wfile.flush()


if __name__ == "__main__":
    main(sys.argv[1])
