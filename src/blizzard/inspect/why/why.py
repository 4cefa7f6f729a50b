"""Why a file is not in the table, or how it came there: one answer for each file that is meant."""

from collections.abc import Sequence

from blizzard.inspect.why.answer import Answer, State
from blizzard.inspect.why.data_file import why_data_file
from blizzard.inspect.why.source_file import why_source_file
from blizzard.inspect.why.subject import Ask, Subject, subjects
from blizzard.journal.source_names import FileUnknown
from blizzard.model.settings import PipelineSettings

NOT_TAKEN = (State.SKIPPED, State.MISSING)


def why(name: str, pipelines: Sequence[PipelineSettings], ask: Ask) -> list[Answer]:
    """Return the answers about the files that a name means, nearly always one.

    Several pipelines may read the same folder, each with a pattern of its own: one that takes the
    file answers for it, and only where none does, each says why not.
    """
    found = subjects(name, pipelines, ask)
    if not found:
        return [
            Answer(
                kind="source",
                state=State.ELSEWHERE,
                uri=name,
                answer="It lies in no source and no table of this configuration, so no pipeline "
                "reads it.",
                next=("blizzard status shows where each pipeline reads from",),
            )
        ]
    answers = [answer for answer in map(_answer, found) if answer is not None]
    if not answers:
        raise FileUnknown(f"no entry of a journal names the data file {name!r}")
    return [each for each in answers if each.state not in NOT_TAKEN] or answers


def _answer(subject: Subject) -> Answer | None:
    asked, source = subject.asked, subject.source
    if source is not None:
        return why_source_file(asked, source, subject.path)
    return None if asked.store is None else why_data_file(asked, asked.store, subject.path)
