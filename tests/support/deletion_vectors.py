"""Deletion vectors as another engine writes them, in every kind of container."""

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable

from lakebed.layout import log_version
from tests.support.desk import Desk
from tests.support.mapped import added

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
RFC1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""The digits of Python's base 85."""


def bitmap(places: Iterable[int], *, runs: bool = False) -> bytes:
    """Write a 64-bit bitmap in the portable format, all of its containers with runs or none."""
    uppers: dict[int, list[int]] = {}
    for place in sorted(places):
        uppers.setdefault(place >> 32, []).append(place & 0xFFFFFFFF)
    parts = [struct.pack("<I", upper) + _lower(lows, runs=runs) for upper, lows in uppers.items()]
    return struct.pack("<iq", 1681511377, len(parts)) + b"".join(parts)


def _lower(places: Sequence[int], *, runs: bool) -> bytes:
    parts: dict[int, list[int]] = {}
    for place in places:
        parts.setdefault(place >> 16, []).append(place & 0xFFFF)
    bodies = [_runs(one) if runs else _plain(one) for one in parts.values()]
    keys = b"".join(struct.pack("<HH", key, len(one) - 1) for key, one in parts.items())
    if runs:
        flags = (1 << len(parts)) - 1
        head = struct.pack("<HH", 12347, len(parts) - 1)
        head += flags.to_bytes((len(parts) + 7) // 8, "little")
    else:
        head = struct.pack("<II", 12346, len(parts))
    offsets = b"\0" * 4 * len(parts) if not runs or len(parts) >= 4 else b""
    return head + keys + offsets + b"".join(bodies)


def _plain(lows: Sequence[int]) -> bytes:
    if len(lows) <= 4096:
        return struct.pack(f"<{len(lows)}H", *lows)
    return sum(1 << low for low in lows).to_bytes(8192, "little")


def _runs(lows: Sequence[int]) -> bytes:
    found: list[list[int]] = []
    for low in lows:
        if found and low == sum(found[-1]) + 1:
            found[-1][1] += 1
        else:
            found.append([low, 0])
    return struct.pack("<H", len(found)) + b"".join(struct.pack("<HH", *one) for one in found)


def z85(body: bytes) -> str:
    """Write bytes in Z85, with zeros up to a multiple of four."""
    text = base64.b85encode(body + b"\0" * (-len(body) % 4)).decode()
    return text.translate(str.maketrans(RFC1924, Z85))


def delete_in_place(
    desk: Desk,
    path: str,
    places: Sequence[int],
    *,
    inline: bool = False,
    more: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Delete rows of a data file as DELETE does with deletion vectors; return the vector.

    An UPDATE adds `more`, the rows as they are now.
    """
    body = bitmap(places)
    vector: dict[str, Any] = {"sizeInBytes": len(body), "cardinality": len(places)}
    if inline:
        vector |= {"storageType": "i", "pathOrInlineDv": z85(body)}
    else:
        name = uuid4()
        stored = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
        (desk.table / "ab").mkdir(exist_ok=True)
        (desk.table / "ab" / f"deletion_vector_{name}.bin").write_bytes(b"\1" + stored)
        vector |= {"storageType": "u", "pathOrInlineDv": f"ab{z85(name.bytes)}", "offset": 1}
    before = added(desk)[path]
    names = ["deletionVectors"]
    gone = {"path": path, "dataChange": True, "size": before["size"], "deletionTimestamp": 1}
    if "deletionVector" in before:
        gone["deletionVector"] = before["deletionVector"]
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"operation": "DELETE", "engineInfo": "another"}},
        {"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": names, "writerFeatures": [*names, "invariants", "appendOnly"],
        }},
        {"remove": gone},
        {"add": {**before, "deletionVector": vector}},
        *more,
    ]  # fmt: skip
    version = DeltaTable(str(desk.table)).version() + 1
    desk.store.create(log_version(version), "\n".join(map(json.dumps, actions)).encode())
    return vector
