"""What a unit looks at to find columns."""

from collections.abc import Generator

from blizzard.model.limits import BLOCK_BYTES
from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.progress import NoProgressChannel
from blizzard.worker.unit_look import UnitLook
from lakebed.columns.schema import Schema
from lakebed.types import UnknownFields
from tests.support.builders import source_file


def seen_in(*blocks: bytes) -> set[str]:
    look = UnitLook(UnknownFields.ADD)
    body = b"".join(block.ljust(BLOCK_BYTES - 1) + b"\n" for block in blocks)

    def pieces() -> Generator[bytes]:
        yield body

    decoder = Decoder(Schema(()), unknown=UnknownFields.ADD)
    look.at_file(source_file("a.ndjson"), pieces, decoder, 1.0, NoProgressChannel())
    return set(look.seen)


def test_after_a_block_with_nothing_new_the_next_is_passed_over():
    old = b'{"a":1}'
    assert seen_in(old, b'{"b":1}') == {"a", "b"}
    assert seen_in(old, old, b'{"b":1}', b'{"c":1}') == {"a", "c"}
    assert seen_in(old, old, b'{"b":1}', b'{"c":1}', b'{"d":1}') == {"a", "c", "d"}
