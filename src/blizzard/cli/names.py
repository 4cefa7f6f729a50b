"""The source files of each pipeline that an operator has named."""

import re
from collections.abc import Iterable, Sequence

from blizzard.answers.progress import PipelineEvidence
from blizzard.cli.call import PipelineCall
from blizzard.journal.source_names import FileUnknown, files_in_full, files_meant
from blizzard.model.bad_lines import GROUP_DIGITS
from lakebed.clock import Clock
from lakebed.layout import file_name

_GROUP = re.compile(f"[0-9a-f]{{{GROUP_DIGITS}}}")


def scopes_of(call: PipelineCall) -> list[PipelineEvidence]:
    """Open the pipelines that a name may belong to; report those that cannot be opened."""
    scopes = []
    for settings in call.pipelines():
        with call.guard(settings.name):
            scopes.append(PipelineEvidence.read(settings, Clock()))
    return scopes


def resolved(
    names: Iterable[str], scopes: Sequence[PipelineEvidence], *, parts: bool = True
) -> dict[str, dict[str, str]]:
    """Return what names mean, by pipeline: `source:path`, each with the name that was typed.

    Groups, quarantine files, and names of no source file are returned as they are.
    """
    found: dict[str, dict[str, str]] = {scope.settings.name: {} for scope in scopes}
    for name in names:
        for pipeline, key in _meant(name, scopes, parts=parts):
            found[pipeline][key] = name
    return found


def _meant(name: str, scopes: Sequence[PipelineEvidence], *, parts: bool) -> list[tuple[str, str]]:
    as_it_is = [(scope.settings.name, name) for scope in scopes]
    if any(_is_quarantine_file(name, scope) for scope in scopes):
        return as_it_is
    if _GROUP.fullmatch(name) and not files_in_full(name, scopes):
        return as_it_is
    try:
        files = files_meant(name, scopes, parts=parts)
    except FileUnknown:
        return as_it_is
    return [(scope.settings.name, key) for scope, key in files] or as_it_is


def _is_quarantine_file(name: str, scope: PipelineEvidence) -> bool:
    files = (waiting.file.filename for waiting in scope.history.books.waiting_files())
    return any(name in (file, file_name(file)) for file in files)
