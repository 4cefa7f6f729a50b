"""What the pages say can be typed, and whatever a user can meet stands on one of them."""

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from deltalake import DeltaTable
from typer import Typer
from typer.testing import CliRunner

import blizzard.cli.app
import blizzard.config.load
import penguin.cli.app
import penguin.config.load
from blizzard.cli.gc import NAMES
from blizzard.cli.surroundings import Surroundings
from blizzard.discover.finding import Reason
from blizzard.metrics import FAILURES
from blizzard.model.settings import BlizzardSettings
from blizzard.repair.redo import LOST
from lakebed.documents.entry import Kind
from lakebed.telemetry.events import Event
from lakebed.terminal.call import USAGE
from penguin.model.commit import HoldCode
from penguin.telemetry import LEFT_OUT
from tests.support.builders import Bench, ndjson, put
from tests.support.runner import inside
from tests.support.waits import hurried
from tests.unit.test_series_begin_at_zero import constants, errors, nodes

ROOT = Path(__file__).parents[2]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md")]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in [*TOP, *sorted((ROOT / "docs").glob("*.md"))]
}
APPS: dict[str, Typer] = {"blizzard": blizzard.cli.app.app, "penguin": penguin.cli.app.app}
AROUND = {"blizzard": Surroundings(make_runner=inside, clock=hurried()), "penguin": None}
"""What a command runs in: units run in this process, without Spark, and no wait takes time."""
COMMAND = re.compile(r"(?:\.venv/bin/)?(blizzard|penguin)((?: .*)?)")
SPAN = re.compile(r"`([^`]+)`")
BLOCK = re.compile(r"^ *```(\w*)[^\n`]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "bash", "console", "sh")
FOLLOWED = "docs/tutorial.md"
"""A page whose commands are run as they stand, by a test of its own."""

# ------------------------------------------------------------------------------- what is typed


@dataclass(frozen=True)
class Typed:
    """One command as a page shows it."""

    page: str
    program: str
    words: tuple[str, ...]
    whole: bool = True
    """Whether it is to be typed as it stands; else only its name is mentioned."""

    def __str__(self) -> str:
        return f"{self.page}: {self.program} {' '.join(self.words)}"


def variants(text: str) -> Iterator[str]:
    """Yield what a text with `[optional]` parts and `a | b` stands for."""
    parts = re.split(r"(\[[^\]]*\])", text)
    choices = [["", part[1:-1]] if part.startswith("[") else part.split(" | ") for part in parts]
    for chosen in itertools.product(*choices):
        yield " ".join("".join(chosen).split())


def shown(page: str, text: str, *, whole: bool) -> Iterator[Typed]:
    found = COMMAND.fullmatch(text.replace("…", "").strip())
    if found is None or not found[2].strip():
        return  # the name of a program
    for words in variants(found[2]):
        yield Typed(page, found[1], tuple(shlex.split(words)), whole)


def typed_on(page: str, text: str) -> Iterator[Typed]:
    for language, body in BLOCK.findall(text):
        lines = body.replace("\\\n", " ").splitlines() if language in SHELL else []
        for line in lines:
            typed = re.split(r"\s+#| \| jq ", line.strip().removeprefix("$ "))[0]
            yield from shown(page, typed, whole=page != FOLLOWED)
    for line in BLOCK.sub("", text).splitlines():
        for span in SPAN.findall(line):
            has_arguments = re.search(r" (-|[A-Z\[\d])", span) is not None
            whole = has_arguments or line.startswith(f"| `{span}`")
            yield from shown(page, span, whole=whole)


def all_typed() -> list[Typed]:
    found = {str(each): each for page, text in PAGES.items() for each in typed_on(page, text)}
    return list(found.values())


TYPED = all_typed()
STANDS_FOR = {
    "DIR": "{folder}",
    "FILE": "{file}",
    "pipeline.yaml": "{file}",
    "DAY": "yesterday",
    "bad-lines.json": "{file}",
    "PATH": "date=",
    "ID": "018cc4e5-2200-7000-8000-000000000001",
    "MODE": "journal",
    "N": "1",
    "318": "1",
    "NAME": "default",
    "OLD": "default",
    "URI": "{folder}/landing",
    "TABLE_URI": "{folder}/tables/events",
    "/data/landing": "{folder}/landing",
    "/data/tables/events": "{folder}/tables/events",
    "s3://my-bucket/events": "{folder}/landing",
    "FOLDER": "{folder}/landing",
    "": "name = 'x'",
    "id = 'x'": "name = 'x'",
    "id = 'x' and price > 10": "name = 'x' and id > 10",
    "user_id = 'x'": "name = 'x'",
}
"""What a word of the pages is here: places, and conditions on the columns of the table here."""
NEEDS_SPARK = {("blizzard", "demo"), ("blizzard", "warm")}
NOT_HERE = {"--watch", "--install-completion", "--show-completion"}
"""Options that go on for ever, or change the home of whoever runs the tests."""


def filled(typed: Typed, file: Path) -> list[str]:
    words = [STANDS_FOR.get(word, word) for word in typed.words]
    words = [word.format(file=file, folder=file.parent) for word in words]
    if words[:1] == ["init"]:
        return [*words, "--output", "-"]  # It makes configurations, and needs none.
    if words[:1] == ["adopt"]:
        return words  # It makes tables of folders that no configuration knows.
    return words if str(file) in words else [*words, "-c", str(file)]


def ends_by_itself(typed: Typed) -> bool:
    """Whether a command neither runs for ever nor starts Spark."""
    name = next((word for word in typed.words if not word.startswith("-")), "")
    if (typed.program, name) in NEEDS_SPARK or NOT_HERE & set(typed.words):
        return False
    runs = all(word.startswith("-") or word in STANDS_FOR for word in typed.words)
    return not runs or "--dry-run" in typed.words or typed.program == "penguin"


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The README's own configuration, on a disk of ours, after one batch of each program."""
    return as_the_readme_says(tmp_path_factory.mktemp("readme"))


def as_the_readme_says(root: Path) -> Path:
    (body,) = re.findall(r"```yaml\n(# pipeline\.yaml.*?)```", PAGES["README.md"], re.DOTALL)
    file = root / "pipeline.yaml"
    file.write_text(body.replace("/data/", f"{root}/"))
    rows = [{"id": n, "name": f"n{n}", "at": "2024-01-01T00:00:00Z"} for n in range(3)]
    put(root / "landing", "date=2024-01-01/a.ndjson", ndjson(rows))
    settings: BlizzardSettings = blizzard.config.load.load([file], [], {})
    (pipeline,) = settings.pipelines
    assert Bench(pipeline).pipeline().step()
    done = CliRunner().invoke(penguin.cli.app.app, ["-c", str(file), "--once"])
    assert done.exit_code == 0, done.output
    return file


def test_the_readmes_one_file_works_for_both_programs(used: Path):
    """HOLES W31, W42: word for word, but for the disk it is on."""
    table = DeltaTable(str(used.parent / "tables/events"))
    found = table.to_pyarrow_dataset().to_table().to_pydict()
    assert sorted(found["id"]) == [0, 1, 2]
    assert {str(day) for day in found["date"]} == {"2024-01-01"}


def test_there_are_commands_on_the_pages():
    assert len(TYPED) > 40
    assert {each.program for each in TYPED} == set(APPS)


@pytest.mark.parametrize("typed", TYPED, ids=str)
def test_a_command_of_the_pages_can_be_typed(typed: Typed, used: Path):
    """HOLES W42: every word of it is one that the program knows."""
    words = [*filled(typed, used)[: len(typed.words)], "--help"]
    answer = CliRunner().invoke(APPS[typed.program], words)
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    "typed", [each for each in TYPED if each.whole and ends_by_itself(each)], ids=str
)
def test_a_command_of_the_pages_does_something(typed: Typed, used: Path, tmp_path: Path):
    """HOLES W42: on a small table it answers; what it finds may be worth an exit code of 1."""
    changes = {"--yes", "--delete", "--empty", "--from", "handoff"} & set(typed.words)
    words = filled(typed, as_the_readme_says(tmp_path) if changes else used)
    if typed.program == "penguin" and typed.words[0].startswith("-") and "--once" not in words:
        words.append("--once")
    answer = CliRunner().invoke(APPS[typed.program], words, obj=AROUND[typed.program])
    assert isinstance(answer.exception, SystemExit | None), answer.exception
    assert answer.exit_code != USAGE, answer.output


def test_no_page_types_a_path_that_only_some_have():
    """HOLES W42: the README puts the programs on the path, once."""
    for page, text in PAGES.items():
        assert not re.search(r"\.venv/bin/(blizzard|penguin)", text), page


def test_every_target_of_make_and_every_script_on_the_pages_is_there():
    """HOLES W42: as the commands of the programs."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for page, text in PAGES.items():
        spans = [*SPAN.findall(text), *(body for _, body in BLOCK.findall(text))]
        for span in spans:
            for target in re.findall(r"^make ([\w-]+)", span, re.MULTILINE):
                assert target in targets, (page, target)
            for script in re.findall(r"(?<![\w/])scripts/[\w-]+", span):
                assert (ROOT / script).exists(), (page, script)


def test_every_link_between_pages_leads_somewhere():
    further = [ROOT / "CHANGELOG.md", *(ROOT / "docs/adr").glob("*.md")]
    others = {str(path.relative_to(ROOT)): path.read_text() for path in further}
    for page, text in (PAGES | others).items():
        here = (ROOT / page).parent
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target:
                continue
            path, _hash, anchor = target.partition("#")
            file = here / path if path else ROOT / page
            assert file.exists(), (page, target)
            if anchor:
                titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                slugs = {
                    re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles
                }
                assert anchor in slugs, (page, target)


# ------------------------------------------------------------------------------- what is met


def explained(*pages: str) -> set[str]:
    """Return the words in the first cells of tables whose other cells are not empty."""
    found: set[str] = set()
    for page in pages:
        for line in PAGES[page].splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| `") and all(cells[1:]) and len(cells) > 1:
                found |= set(SPAN.findall(cells[0]))
    return found


def codes() -> set[str]:
    """Return every code that an error, a failure, a held file or a file left out can have."""
    own: set[str] = {each.code for each in errors() if isinstance(vars(each).get("code"), str)}
    failures = {code for of_stage in FAILURES.values() for code in of_stage}
    halted = set(halted_codes(ROOT / "src"))
    return (
        own
        | failures
        | set(constants(ROOT / "src"))
        | set(HoldCode)
        | set(LEFT_OUT)
        | halted
        | {LOST}
    )


def halted_codes(folder: Path) -> Iterator[str]:
    """Return the codes that health tells without an error."""
    for node in nodes(folder):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Halted", "Ailing"):
            values: list[Any] = [getattr(each, "value", None) for each in node.args]
            yield from (each for each in values if isinstance(each, str))


def test_every_code_is_explained_on_a_page():
    """HOLES W42: with what it means and the way out."""
    found = explained("docs/errors.md", "docs/penguin.md", "docs/handoff.md")
    assert sorted(codes() - found) == []


def test_no_code_on_the_page_is_of_the_past():
    """HOLES W42: whatever is explained can be met."""
    table = PAGES["docs/errors.md"].partition("\n## Codes\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
    shown = {code for cell in cells for code in SPAN.findall(cell)}
    assert len(shown) > 60
    assert sorted(shown - texts_in_the_code()) == []


def texts_in_the_code() -> set[str]:
    return {
        node.value
        for node in nodes(ROOT / "src")
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_the_incident_page_quotes_only_what_the_programs_print():
    """A code or state that a table explains is a whole text of the code; others are a part."""
    page = BLOCK.sub("", PAGES["docs/incidents.md"])
    quoted = {span for span in SPAN.findall(page) if COMMAND.fullmatch(span) is None}
    names = {*events(), "full=True", "VACUUM … LITE"}  # Of events, and of other engines.
    quoted -= names | {span for span in quoted if span.endswith("/") or ": " in span}
    known = texts_in_the_code()
    together = "\n".join(known)
    assert len(quoted) > 60
    assert sorted(one for one in quoted if one not in together) == []
    assert sorted((explained("docs/incidents.md") & quoted) - known) == []


def test_every_reason_not_to_take_a_file_is_explained():
    """HOLES W42: as `--dry-run` gives them."""
    assert {each.value for each in Reason} <= explained("docs/operations.md")


def test_every_kind_of_entry_and_of_garbage_is_explained():
    assert set(get_args(Kind)) <= explained("docs/operations.md")
    assert {kind.value for kind in NAMES} <= explained("docs/operations.md")


BASES = {"PartEvent", "PipelineEvent", "TableEvent"}


def events() -> dict[str, type[Event]]:
    errors()  # imports every module
    found: dict[str, type[Event]] = {}
    left: list[type[Event]] = [Event]
    while left:
        for each in left.pop().__subclasses__():
            if not each.__module__.startswith("tests"):
                found[each.__name__] = each
                left.append(each)
    return {name: each for name, each in found.items() if name not in BASES}


def test_every_event_stands_on_the_page_of_the_log_with_its_level():
    """HOLES W42: a log line can be looked up."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| \S", PAGES["docs/log.md"], re.MULTILINE)
    assert dict(rows) == {name: each.level.name.lower() for name, each in events().items()}
    assert len(rows) == len(dict(rows))
