"""What a file of another program is: by its footer, held against what its meta says."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.documents.pending_meta import Meta
from lakebed.errors import ObjectChanged, ObjectMissing, StoreDenied
from lakebed.layout import TablePath
from lakebed.storage.store import ObjectFacts, Reader
from penguin.foreign.rules import DENIED, MISSING, OF_BLIZZARD, REFUSED, UNFIT
from penguin.model.errors import FileUnfit
from penguin.model.foreign_file import Candidate, ForeignFile, LeftOut

if TYPE_CHECKING:
    from penguin.foreign.footer import Footer

CONCURRENT = 16


@dataclass(frozen=True, slots=True)
class BlizzardFile:
    """A file with the mark of blizzard: only an entry may name it."""


Verdict = ForeignFile | LeftOut | BlizzardFile


def candidate(facts: ObjectFacts, *, late: bool) -> Candidate:
    """Return a listed object as a file that may be new."""
    return Candidate(
        path=TablePath(facts.path),
        size=facts.size,
        etag=facts.etag,
        modified=facts.modified,
        late=late,
    )


def look_at(store: Reader, asked: Mapping[str, Meta]) -> tuple[dict[str, Candidate], list[LeftOut]]:
    """Look at the files that metas ask for; one that is not there may still come."""
    with ThreadPoolExecutor(CONCURRENT, thread_name_prefix="head") as pool:
        answers = pool.map(lambda meta: store.head(meta.filename), asked.values())
        looked = list(zip(asked.items(), answers, strict=True))
    there: dict[str, Candidate] = {}
    missing: list[LeftOut] = []
    for (path, meta), facts in looked:
        if facts is None:
            missing.append(
                LeftOut(
                    path=meta.filename,
                    code=MISSING,
                    reason="its meta is here, but the file is not",
                    asked_by=path,
                )
            )
            continue
        there[meta.filename] = Candidate(
            path=TablePath(meta.filename),
            size=facts.size,
            etag=facts.etag,
            modified=facts.modified,
            claim=meta,
            asked_by=path,
        )
    return there, missing


def verdict_on(store: Reader, one: Candidate) -> Verdict | None:
    """Read a file's footer and say what it is; None where it changes while it is looked at."""
    # Only here is Arrow needed: blizzard's own files are committed without it.
    from penguin.foreign.footer import read_footer  # noqa: PLC0415

    if one.claim is not None and one.claim.size != one.size:
        return leave_out(one, UNFIT, f"it has {one.size} bytes, but its meta says {one.claim.size}")
    try:
        footer = read_footer(store, one.path, size=one.size, etag=one.etag)
    except FileUnfit as unfit:
        return leave_out(one, UNFIT, unfit.message)
    except (ObjectChanged, ObjectMissing):
        return None
    except StoreDenied as denied:
        return leave_out(one, DENIED, denied.message)
    return _held_against(one, footer)


def _held_against(one: Candidate, footer: "Footer") -> Verdict:
    """Compare what a footer says with what a meta says."""
    claim = one.claim
    if footer.ours and claim is None:
        return BlizzardFile()
    if footer.ours:
        return leave_out(one, OF_BLIZZARD, "blizzard wrote it, and only its journal can commit it")
    if claim is not None and claim.record_count != footer.rows:
        return leave_out(
            one, UNFIT, f"it has {footer.rows} rows, but its meta says {claim.record_count}"
        )
    if not footer.schema["fields"] and not footer.reasons:
        return leave_out(one, UNFIT, "it has no columns")
    if footer.reasons:
        return leave_out(one, REFUSED, "; ".join(footer.reasons))
    return ForeignFile(
        found=one, rows=footer.rows, schema=footer.schema, statistics=footer.statistics
    )


def leave_out(one: Candidate, code: str, reason: str) -> LeftOut:
    """Return that a file is not committed, and why; a missing file has no modification time."""
    return LeftOut(
        path=one.path,
        code=code,
        reason=reason,
        asked_by=one.asked_by,
        modified=None if code == MISSING else one.modified,
    )
