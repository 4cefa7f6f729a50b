"""`penguin plan` and `penguin --dry-run`: what the next commit of each table would do."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from lakebed.errors import LakeError
from lakebed.telemetry.events import code_of
from lakebed.terminal.call import exit_code_of
from lakebed.terminal.console import picked
from lakebed.units import entries_from, plural
from penguin.cli.app import LEFT_OUT, TableCall, document_of, known, sentence, unclaimed
from penguin.model.commit import CommitPlan, CommitProposal
from penguin.model.settings import TableSettings
from penguin.pipeline import is_missing, nothing_at, open_reader
from penguin.plan.commit import empty_plan
from penguin.status import NextCommit, explain

NAMES = {"retract": "retraction", "erase": "erasure", "compact": "compaction"}


def plan(call: TableCall) -> None:
    """Show what the next commit would do, as --dry-run does.

    Nothing is written.
    """
    settings = call.settings()
    for table in settings.tables:
        found, error, missing = None, None, True
        try:
            reader = open_reader(table)
            found = None if reader is None else explain(table, reader)
            missing = is_missing(reader)
        except LakeError as trouble:
            error = sentence(trouble)
            call.at_least(exit_code_of(trouble))
        document = _document(table, found, error)
        nothing = nothing_at(table) if missing else None
        call.show(_text(table, document, error or nothing), known(document, error))
        call.fail_if(document["stopped"] or document["held"] or document["still_held"])
    call.show(unclaimed(settings))


def _document(table: TableSettings, found: NextCommit | None, error: str | None) -> dict[str, Any]:
    """Return the plan as a JSON document."""
    proposal = CommitProposal() if found is None else found.proposal
    commit = proposal.commit or empty_plan(None)
    return {
        **document_of(table),
        "version": None if found is None else found.view.version,
        "creates_table": proposal.commit is not None and commit.table.version is None,
        **_committed(commit),
        "released": len(commit.released),
        "still_held": 0 if found is None else _still_held(found, commit),
        "others": len(commit.others.taken) if commit.others else 0,
        "left_out": [picked(one, LEFT_OUT) for one in (found.left_out if found else ())],
        "stopped": [
            {"pipeline": one.pipeline, "code": code_of(one.error), "error": str(one.error)}
            for one in proposal.stopped
        ],
        "waiting": [picked(one, "pipeline entry=sequence reason") for one in proposal.waiting],
        "replaced": len(commit.removes),
        "retracted": commit.left_out,
        "rejected": [
            picked(one, "pipeline=entry.pipeline entry=entry.sequence kind reasons")
            for one in commit.rejected
        ],
        "error": error,
    }


def _committed(commit: CommitPlan) -> dict[str, Any]:
    # Files of one entry held for the same reasons are one item.
    held = Counter((hold.entry, hold.code, hold.reasons) for hold in commit.holds)
    return {
        "entries": commit.entries,
        "files": len(commit.adds),
        "rows": commit.rows,
        **picked(commit.changes, "columns_added=added columns_dropped=dropped"),
        "columns_widened": commit.changes.widened,
        "pipelines": [{"pipeline": name, **one} for name, one in commit.settled().items()],
        "held": [
            {
                **picked(entry, "pipeline entry=sequence"),
                "files": count,
                "code": code,
                "reasons": reasons,
            }
            for (entry, code, reasons), count in held.items()
        ],
    }


def _still_held(found: NextCommit, commit: CommitPlan) -> int:
    """Count the held files that the commit does not settle."""
    settled = {*commit.released, *commit.discarded}
    return sum(one.name not in settled for one in found.view.held)


def _text(table: TableSettings, found: dict[str, Any], why: str | None) -> Iterator[str]:
    """Yield the plan in words, a line for each part; or why there is none."""
    yield f"{table.name}: {why or _in_short(table, found)}"
    for part in found["pipelines"]:
        yield f"  commit  {part['pipeline']}: {entries_from(part['first'], part['last'])}"
    if found["others"]:
        yield f"  commit  {plural(found['others'], 'file')} of other programs"
    for one in found["held"]:
        files, why = plural(one["files"], "file"), "; ".join(one["reasons"])
        yield f"  hold    {one['pipeline']}: entry {one['entry']}: {files}: {why} [{one['code']}]"
    if found["released"]:
        yield f"  release {plural(found['released'], 'file that was', 'files that were')} held"
    if found["replaced"]:
        rows = plural(found["retracted"], "row")
        gone = f", take out {rows}" if found["retracted"] else ""
        yield f"  replace {plural(found['replaced'], 'file')}{gone}"
    for verb, key in (("add", "added"), ("drop", "dropped"), ("widen", "widened")):
        if names := found[f"columns_{key}"]:
            yield f"  {verb:<7} {'column' if len(names) == 1 else 'columns'} {', '.join(names)}"
    yield from _left(found)


def _in_short(table: TableSettings, found: dict[str, Any]) -> str:
    if not (found["entries"] or found["released"] or found["others"]):
        stopped = plural(len(found["stopped"]), "pipeline is", "pipelines are")
        return (
            f"nothing can be committed: {stopped} stopped"
            if found["stopped"]
            else "nothing to commit"
        )
    version = 0 if found["version"] is None else found["version"] + 1
    verb = "create the table and commit" if found["creates_table"] else "commit"
    entries = plural(found["entries"], "entry", "entries")
    files, rows = plural(found["files"], "file"), plural(found["rows"], "row")
    what = f"{entries}, {files}, {rows} (version {version} or later)"
    return f"would {verb} {what} to {table.table_uri}"


def _left(found: dict[str, Any]) -> Iterator[str]:
    """Yield what the plan leaves out, and why."""
    for one in found["rejected"]:
        what, reasons = NAMES.get(one["kind"], "promotion"), "; ".join(one["reasons"])
        yield f"  leave   {one['pipeline']}: {what} in entry {one['entry']}: {reasons}"
    for one in found["waiting"]:
        yield f"  wait    {one['pipeline']}: entry {one['entry']}: {one['reason']}"
    if found["still_held"]:
        files = plural(found["still_held"], "file that is", "files that are")
        yield f"  leave   {files} held; `penguin held` says why"
    for one in found["left_out"]:
        yield f"  leave   {one['file']}: {one['reason']} [{one['code']}]"
    for one in found["stopped"]:
        yield f"  leave   {one['pipeline']}: {one['error']} [{one['code']}]"
