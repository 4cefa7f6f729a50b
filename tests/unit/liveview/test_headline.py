"""One sentence for all pipelines and tables: true of each that it counts, and the worst first."""

from dataclasses import replace

from blizzard.answers.answer import Problem, WayOut
from liveview.headline import overview_of
from liveview.model import Overview, PipelineSummary, Program, TableSummary

AT = "2026-03-14T12:00:00.000Z"


def pipeline(name: str, *problems: Problem) -> PipelineSummary:
    severities = {one.severity for one in problems}
    health = "failing" if "error" in severities else "warning" if severities else "ok"
    return PipelineSummary(
        name=name,
        table=f"{name}-t",
        table_uri=f"/{name}",
        sources=[],
        hand_off="outbox",
        health=health,  # type: ignore[arg-type]
        problems=list(problems),
        waiting_files=0,
        uncommitted_entries=0,
    )


def table_of(each: PipelineSummary) -> TableSummary:
    """Return the table of a pipeline, which has the problems of its commits."""
    late = [replace(one, subject=each.name) for one in each.problems if "commit" in one.code]
    health = each.health if late else "ok"
    return TableSummary(
        name=f"{each.name}-t", uri="", health=health, problems=late, pipelines=[each.name]
    )


def commits_late(entries: int, rows: int, since: str, code: str = "commit_late") -> Problem:
    return Problem(
        severity="error" if code == "commit_late" else "warning",
        code=code,
        message=f"{entries} entries ({rows} rows) are waiting to be committed",
        counts=(entries, rows),
        many="{0:,} entries ({1:,} rows) are waiting to be committed",
        since=since,
        way_out=WayOut(commands=("penguin -c lake.yaml",)),
    )


def failed(name: str, files: int) -> Problem:
    return Problem(
        severity="error",
        code="wrong_type",
        message=f"{files} source files failed (wrong_type)",
        counts=(files,),
        many="{0:,} source files failed (wrong_type)",
        way_out=WayOut(commands=(f"blizzard -c lake.yaml -p {name} dlq list",)),
    )


def overview(*pipelines: PipelineSummary, penguin: bool = True) -> Overview:
    programs = [
        Program(name="blizzard", reachable=True, address="127.0.0.1:9090"),
        Program(name="penguin", reachable=penguin, address="127.0.0.1:9091"),
    ]
    return overview_of(AT, programs, pipelines, list(map(table_of, pipelines)))


def test_a_program_that_does_not_answer_is_not_catching_up() -> None:
    behind = commits_late(2, 6, "2026-03-14T11:00:00.000Z", code="commit_behind")
    alive, dead = (
        overview(pipeline("orders", behind), penguin=reachable).headline.text
        for reachable in (True, False)
    )
    assert alive.endswith("the oldest since 11:00 UTC: penguin is catching up.")
    assert dead.endswith("the oldest since 11:00 UTC: penguin does not answer.")


def test_what_is_late_in_some_pipelines_is_counted_and_said_of_those_alone() -> None:
    late = (
        pipeline("orders", commits_late(2, 6, "2026-03-14T11:00:00.000Z")),
        pipeline("clicks", commits_late(5, 10, "2026-03-14T10:00:00.000Z")),
    )
    found = overview(*late, pipeline("visits"), penguin=False)
    assert found.headline.text == (
        "7 entries (16 rows) are waiting to be committed in 2 of 3 pipelines, the oldest since "
        "10:00 UTC: penguin does not answer."
    )
    assert found.headline.way_out == WayOut(commands=("penguin -c lake.yaml",))
    (problem,) = found.problems
    assert problem.problem.message == "7 entries (16 rows) are waiting to be committed"
    assert (problem.pipelines, problem.tables) == (["orders", "clicks"], ["orders-t", "clicks-t"])


def test_with_something_else_as_bad_the_sentence_counts_all_that_fail() -> None:
    late = pipeline("orders", commits_late(2, 6, "2026-03-14T11:00:00.000Z"))
    found = overview(late, pipeline("clicks", failed("clicks", 2)), pipeline("visits"))
    assert found.headline.text == (
        "2 of 3 pipelines and 1 table are failing: 2 entries (6 rows) are waiting to be committed "
        "(orders)"
    )


def test_a_problem_of_several_pipelines_counts_for_all_and_has_one_command_for_them() -> None:
    found = overview(
        pipeline("orders", failed("orders", 2)), pipeline("clicks", failed("clicks", 3))
    )
    (shared,) = found.problems
    assert shared.problem.message == "5 source files failed (wrong_type)"
    assert shared.problem.way_out == WayOut(commands=("blizzard -c lake.yaml dlq list",))
    assert found.headline.text == "Both pipelines are failing: 5 source files failed (wrong_type)"


def test_a_program_that_is_missed_is_named_although_nothing_is_late_yet() -> None:
    well = (pipeline("orders"), pipeline("clicks"))
    assert overview(*well).headline.text == "Both pipelines are up to date"
    missed = overview(*well, penguin=False).headline
    assert missed.text == "Both pipelines are up to date; penguin does not answer"
