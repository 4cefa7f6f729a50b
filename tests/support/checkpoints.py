"""Checkpoints in the forms that other engines give them: in parts, and with sidecars."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.layout import DELTA_LOG, LAST_CHECKPOINT

SIDECAR = "016ae953-37a9-438e-8683-9a9a4a79a395"


def classic(root: Path) -> Path:
    """Return the only checkpoint of a table."""
    (whole,) = (root / DELTA_LOG).glob("*.checkpoint.parquet")
    return whole


def in_parts(root: Path) -> None:
    """Divide the checkpoint of a table into two parts."""
    whole = classic(root)
    rows = pq.read_table(whole)
    half = len(rows) // 2
    for number, part in enumerate((rows.slice(0, half), rows.slice(half)), start=1):
        name = whole.name.replace(".parquet", f".{number:010d}.{2:010d}.parquet")
        pq.write_table(part, whole.with_name(name))
    whole.unlink()
    note = root / LAST_CHECKPOINT
    note.write_text(json.dumps({**json.loads(note.read_text()), "parts": 2}))


def with_sidecar(root: Path, name: str = "checkpoint") -> Path:
    """Move the files of a checkpoint into a sidecar, as the second kind of checkpoint has them."""
    whole = classic(root)
    rows = pq.read_table(whole)
    is_file = pc.or_(pc.is_valid(rows["add"]), pc.is_valid(rows["remove"]))
    sidecar = whole.parent / "_sidecars" / f"{SIDECAR}.parquet"
    sidecar.parent.mkdir()
    pq.write_table(rows.filter(is_file).select(["add", "remove"]), sidecar)
    others = rows.filter(pc.invert(is_file)).drop_columns("sidecar")
    told = {"path": sidecar.name, "sizeInBytes": sidecar.stat().st_size, "modificationTime": 0}
    named = pa.array([told, *[None] * (len(others) - 1)], rows.schema.field("sidecar").type)
    whole.unlink()
    second = whole.with_name(whole.name.replace("checkpoint", name))
    pq.write_table(others.append_column("sidecar", named), second)
    return sidecar
