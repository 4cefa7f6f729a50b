"""The protocol of a table directory, written before any data file and followed from then on."""

from lakebed import layout
from lakebed.documents.entry import Protocol, decode_protocol, encode
from lakebed.errors import ProtocolConflict, StoreUnavailable
from lakebed.storage.create_only import probe
from lakebed.storage.store import Reader, Store
from lakebed.types import Handoff


def agree_on_protocol(store: Store, handoff: Handoff) -> None:
    """Write down how files are handed off before any data file, or obey what is written."""
    if latest_protocol(store) is None:
        store.create(layout.protocol(1), encode(Protocol(handoff=handoff)))
    latest = latest_protocol(store)
    if latest is None:
        raise StoreUnavailable("the protocol that was written cannot be read", path=store.uri)
    probe(store, layout.protocol(1))
    _refuse_other_handoff(latest, handoff, store)


def require_handoff(store: Reader, handoff: Handoff) -> None:
    """Refuse a hand-off other than the table's; where nothing is written yet, any may come."""
    latest = latest_protocol(store)
    if latest is not None:
        _refuse_other_handoff(latest, handoff, store)


def _refuse_other_handoff(latest: Protocol, handoff: Handoff, store: Reader) -> None:
    if latest.handoff is not handoff:
        raise ProtocolConflict(
            f"this table's hand-off is {latest.handoff.value!r}, but the configuration says "
            f"{handoff.value!r}; set sink.handoff: {latest.handoff.value}, or change the table's "
            "hand-off with blizzard handoff set",
            path=store.uri,
        )


def latest_protocol(store: Reader) -> Protocol | None:
    """Read the protocol in force: the document with the highest number."""
    number = latest_protocol_number(store)
    if number is None:
        return None
    path = layout.protocol(number)
    body = store.get(path)
    return None if body is None else decode_protocol(body, path)


def latest_protocol_number(store: Reader) -> int | None:
    """Return the highest number of a protocol document; None where there is none yet."""
    listed = (layout.protocol_number(facts.path) for facts in store.objects(layout.PROTOCOL))
    return max((number for number in listed if number is not None), default=None)
