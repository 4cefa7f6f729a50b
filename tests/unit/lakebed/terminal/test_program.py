"""Options, complaints and reports of both programs on a terminal."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer import Typer
from typer.testing import CliRunner

import blizzard.cli.app
import penguin.cli.app
from lakebed.errors import LakeError
from lakebed.terminal.call import complain
from lakebed.terminal.console import Table, path_end, picked, print_json, print_text
from lakebed.terminal.program import called_as

BLIZZARD, PENGUIN = blizzard.cli.app.app, penguin.cli.app.app


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "in").mkdir()
    path = tmp_path / "both.yaml"
    path.write_text(
        "\n".join(
            [
                "pipelines:",
                *(
                    f"  {name}: {{source: {{path: {tmp_path}/in/{name}}}, sink: {{path: {tmp_path}"
                    f"/{name}}}, schema: {{fields: [{{name: id, type: int64}}]}}}}"
                    for name in ("a", "b")
                ),
                f"tables: {{a: {{table_uri: {tmp_path}/a}}}}",
            ]
        )
    )
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir()
        DeltaTable.create(str(tmp_path / name), pa.schema([("id", pa.int64())]))
    return str(path)


@pytest.mark.parametrize(
    ("app", "command"),
    [
        (BLIZZARD, ["status"]),
        (BLIZZARD, ["journal"]),
        (BLIZZARD, ["journal", "list"]),
        (BLIZZARD, ["gc"]),
        (BLIZZARD, ["redo"]),
        (BLIZZARD, ["dlq"]),
        (BLIZZARD, ["dlq", "list"]),
        (PENGUIN, ["status"]),
        (PENGUIN, ["plan"]),
        (PENGUIN, ["history", "3"]),
        (PENGUIN, ["replay"]),
        (PENGUIN, ["forget"]),
    ],
)
def test_an_option_before_a_command_is_as_good_as_behind_it(
    app: Typer, command: list[str], file: str
):
    """HOLES W42: `blizzard -c FILE status` is what people type."""
    behind = CliRunner().invoke(app, [*command, "-c", file, "--output", "json"])
    assert behind.exit_code == 0, behind.output
    before = CliRunner().invoke(app, ["-c", file, "--output", "json", *command])
    mixed = CliRunner().invoke(app, ["-c", file, *command, "--output", "json"])
    between = CliRunner().invoke(app, ["--output", "json", command[0], "-c", file, *command[1:]])
    for other in (before, mixed, between):
        assert (other.exit_code, other.stdout.split("lag_secs")[0]) == (
            behind.exit_code,
            behind.stdout.split("lag_secs")[0],
        )


@pytest.mark.parametrize("command", [["status"], ["dlq", "list"], ["--dry-run"], ["gc"]])
def test_one_pipeline_of_several_can_be_named(command: list[str], file: str):
    """HOLES W42: the page says that all commands take `-p NAME`."""
    for words in (["-p", "b", *command], [*command, "-p", "b"]):
        answer = CliRunner().invoke(BLIZZARD, [*words, "-c", file])
        assert answer.exit_code == 0, answer.output
        assert "pipeline b" in answer.stdout
        assert "pipeline a" not in answer.stdout
    unknown = CliRunner().invoke(BLIZZARD, [*command, "-p", "c", "-c", file])
    assert unknown.exit_code == 2
    assert "there is no pipeline 'c'; there are: a, b" in unknown.stderr


@pytest.mark.parametrize("group", ["source", "handoff"])
def test_a_group_that_does_nothing_by_itself_shows_its_commands(group: str, file: str):
    for words in ([group], ["-c", file, group]):
        answer = CliRunner().invoke(BLIZZARD, words)
        assert f"blizzard {group} [OPTIONS] COMMAND" in answer.output.replace("root", "blizzard")
        assert "set" in answer.output


@pytest.mark.parametrize(
    "words",
    [
        ["journal", "show", "7"],
        ["journal", "7"],
        ["journal", "new", "--empty"],
        ["dlq", "retry", "--all"],
        ["source", "set", "default", "--same-files"],
        ["handoff", "set", "staging"],
    ],
)
def test_a_command_of_a_group_finds_its_options_wherever_they_are_written(
    words: list[str], file: str
):
    """What it answers does not matter here, but that it is one answer, for the pipeline named."""
    shared = ["-c", file, "-p", "b"]
    # Whatever it changes, it has changed before the answers are compared.
    CliRunner().invoke(BLIZZARD, [*words, *shared])
    answers = {
        (answer.exit_code, answer.output)
        for at in (0, 1, len(words))
        for answer in [CliRunner().invoke(BLIZZARD, [*words[:at], *shared, *words[at:]])]
    }
    assert len(answers) == 1
    ((code, said),) = answers
    assert code in (0, 1)
    assert "/a" not in said


def test_what_is_written_later_counts(file: str):
    for words in (["-p", "a", "dlq", "-p", "b"], ["-p", "a", "dlq", "list", "-p", "b"]):
        answer = CliRunner().invoke(BLIZZARD, [*words, "-c", file])
        assert answer.stdout.startswith("pipeline b:")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-c", "FILE", "--once", "status"], "--once belongs to blizzard itself, not to status"),
        (["--once", "status", "-c", "FILE"], "--once belongs to blizzard itself, not to status"),
        (["journal", "-c", "FILE", "--limit", "3", "show", "7"], "--limit"),
        (["status", "-c", "FILE", "--wibble"], "No such option: --wibble"),
        (
            ["-c", "FILE", "source", "set", "-p", "a", "--same-files", "--", "-c"],
            "there is no source '-c'",  # A word that looks like an option stays a word.
        ),
        (["journal", "show", "abc", "-c", "FILE"], "Invalid value for 'N': "),
    ],
)
def test_what_does_not_belong_where_it_is_written_is_refused(
    words: list[str], told: str, file: str
):
    """HOLES W42: an option that a command does not have was ignored."""
    given = [file if word == "FILE" else word for word in words]
    refused = CliRunner().invoke(BLIZZARD, given, prog_name="blizzard")
    assert refused.exit_code == 2
    assert told in refused.stderr
    if "--once" in words:
        assert CliRunner().invoke(PENGUIN, given, prog_name="penguin").exit_code == 2


ENDING = """
import atexit, sys, threading, time
import typer
from lakebed.terminal.program import run_program

app = typer.Typer()

class Late:
    def __del__(self):
        print("taken apart", file=sys.stderr)

@app.command()
def main(threads: int) -> None:
    sys.modules["late"] = Late()
    atexit.register(print, "registered later", file=sys.stderr)
    for _ in range(threads):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    print("the result")
    raise typer.Exit(3)

run_program(app, "program")
"""


@pytest.mark.parametrize(("threads", "told"), [(0, True), (1, False)])
def test_the_interpreter_is_not_taken_apart_under_threads_that_still_run(
    threads: int, told: bool
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, str(threads)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3
    assert ended.stdout == "the result\n"
    assert "registered later" in ended.stderr
    assert ("taken apart" in ended.stderr) is told


UNUSED = """
import atexit, gc, sys
import typer
from lakebed.terminal.program import run_program

gc.disable()
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 10_000, file=sys.stderr))
app = typer.Typer()

@app.command()
def main() -> None:
    print("looked for", gc.isenabled(), file=sys.stderr)

run_program(app, "program")
"""


def test_unused_objects_are_looked_for_while_a_program_runs_and_not_at_its_end() -> None:
    """The last look is at all that was imported, and took a fifth of a short run."""
    ended = subprocess.run(
        [sys.executable, "-c", UNUSED], capture_output=True, text=True, check=True
    )
    assert ended.stderr.splitlines() == ["looked for True", "frozen True"]


def test_an_error_that_begins_with_the_pipeline_does_not_name_it_twice(
    capsys: pytest.CaptureFixture[str],
):
    complain(LakeError("default:a.ndjson failed"), "default")
    complain(LakeError("a.ndjson failed"), "default")
    assert capsys.readouterr().err.splitlines() == [
        "error: default:a.ndjson failed",
        "error: default: a.ndjson failed",
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/opt/bin/blizzard", "blizzard"),
        ("/opt/bin/blizzard-next", "blizzard-next"),
        ("/opt/lib/blizzard/__main__.py", "blizzard"),
        ("-c", "blizzard"),
        ("", "blizzard"),
    ],
)
def test_a_program_goes_by_the_name_that_it_is_called_by(path: str, name: str):
    """What --show-completion prints is for the name that is typed."""
    assert called_as(path, "blizzard") == name


def test_completion_is_for_the_name_that_is_typed(tmp_path: Path):
    link = tmp_path / "snow"
    link.write_text(f"#!{sys.executable}\nfrom penguin.cli.app import main\nmain()\n")
    link.chmod(0o755)
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [str(link), "--show-completion", "zsh"],
        capture_output=True,
        text=True,
        check=True,
        env=env,
        timeout=60,
    )
    assert done.stdout.startswith("#compdef snow\n")
    assert "penguin" not in done.stdout


AS_JSON = ("--log-format", "json")
PIPELINE = (
    "pipelines: {{a: {{source: {{path: {0}/in}}, sink: {{path: {0}/t}}, "
    "schema: {{fields: [{{name: id, type: int64}}]}}}}}}\n"
    "tables: {{a: {{table_uri: {0}/t}}}}\n"
)


def told(app: Typer, *arguments: str) -> list[dict[str, str]]:
    """Run a program that is refused; every line of its log must be an object."""
    ended = CliRunner().invoke(app, [*AS_JSON, *arguments])
    assert ended.exit_code == 2, ended.output
    return [json.loads(line) for line in ended.stderr.splitlines()]


@pytest.mark.parametrize("app", [BLIZZARD, PENGUIN])
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_faults_of_the_configuration_are_json_lines_one_for_each(
    app: Typer, more: list[str], tmp_path: Path
):
    """HOLES W42: whoever reads the log by machine learns why there is none."""
    missing = told(app, "-c", str(tmp_path / "none.yaml"), *more)
    assert [line["level"] for line in missing] == ["error"]
    assert "none.yaml" in missing[0]["message"]
    file = tmp_path / "c.yaml"
    file.write_text(PIPELINE.format(tmp_path) + "metrics: {enabled: 7, speed: 1}\n")
    faults = told(app, "-c", str(file), *more)
    assert len(faults) == 2
    assert {(line["event"], line["code"]) for line in faults} == {("FaultFound", "config_invalid")}


def test_a_missing_java_and_an_unknown_pipeline_are_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """HOLES W42: they are noticed once the configuration is read."""
    file = tmp_path / "c.yaml"
    file.write_text(PIPELINE.format(tmp_path))
    assert "'b'" in told(BLIZZARD, "-c", str(file), "-p", "b")[0]["message"]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    (fault,) = told(BLIZZARD, "-c", str(file), "--once")
    assert "Java" in fault["message"]


def test_a_start_that_would_be_refused_is_a_json_line_of_a_dry_run(tmp_path: Path):
    """HOLES W42: its answer goes to standard output, its trouble to the log."""
    file = tmp_path / "c.yaml"
    file.write_text(PIPELINE.format(tmp_path))
    ended = CliRunner().invoke(BLIZZARD, [*AS_JSON, "-c", str(file), "--dry-run"])
    assert ended.exit_code == 1
    (line,) = map(json.loads, ended.stderr.splitlines())
    assert line["code"] == "object_missing"


@pytest.mark.parametrize("app", [BLIZZARD, PENGUIN])
def test_a_log_level_may_be_written_in_any_case(app: Typer, tmp_path: Path):
    """HOLES W42: the log itself writes it in capitals."""
    (fault,) = told(app, "--log-level", "DEBUG", "-c", str(tmp_path / "none.yaml"))
    assert "none.yaml" in fault["message"]


def table_lines(table: Table, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_text([table])
    return capsys.readouterr().out.splitlines()


def test_numbers_end_together_and_an_empty_column_of_remarks_is_left_out(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table(("table", ">rows", ""), [("orders", 1234, ""), ("x", None, "")])
    assert table_lines(table, capsys) == [
        "table    rows",
        "─" * 13,
        "orders  1,234",
        "x           -",
    ]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a.ndjson", "a.ndjson"),
        ("region=eu/date=2024/a.ndjson", "…/date=2024/a.ndjson"),
        ("region=eu/a-name-of-twenty-characters.ndjson", "…/a-name-of-twenty-characters.ndjson"),
        ("a-name-of-twenty-characters.ndjson", "a-name-of-twenty-characters.ndjson"),
    ],
)
def test_a_long_path_is_shown_by_its_end_and_a_name_is_never_cut(path: str, shown: str):
    assert path_end(path, 20) == shown


def test_a_document_picks_attributes_under_its_own_keys() -> None:
    keys = "name folder=parent.name"
    assert picked(Path("/a/b.txt"), keys) == {"name": "b.txt", "folder": "a"}
    assert picked(None, keys) == {"name": None, "folder": None}


def test_json_has_no_character_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x7f\x9b\u202e\u2028\U000e0041ü😀"
    print_json({"name": name})
    printed = capsys.readouterr().out
    assert printed == '{"name": "a\\u007f\\u009b\\u202e\\u2028\\udb40\\udc41ü😀"}\n'
    assert json.loads(printed) == {"name": name}
