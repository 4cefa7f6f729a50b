"""A port of the loopback that is ours, and where nobody listens unless we do."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Keep a port from everybody else; who allows an address to be used again may listen there."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


@contextmanager
def reserved_pair() -> Iterator[tuple[int, int]]:
    """Keep two ports that follow each other, the lower one first."""
    while True:
        with socket.socket() as lower, socket.socket() as upper:
            for held in (lower, upper):
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            upper.bind(("127.0.0.1", 0))
            port = int(upper.getsockname()[1])
            try:
                lower.bind(("127.0.0.1", port - 1))
            except OSError:
                continue  # Somebody has it; another pair will do.
            yield port - 1, port
            return
