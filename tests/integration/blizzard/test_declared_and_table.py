"""The declared fields are compared with the table before anything is read or written."""

import pytest
import yaml
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from blizzard.config import load as blizzard_config
from blizzard.execute.spark.runner import SparkRunner
from blizzard.service import Service
from lakebed.deltalog.snapshot import LogReader
from lakebed.errors import ProtocolConflict, SchemaConflict, TableUnsupported
from lakebed.polling import Stop
from lakebed.storage.options import StorageOptions
from lakebed.storage.store import Reader
from penguin.config import load as penguin_config
from tests.support.builders import tree
from tests.support.commands import told
from tests.support.desk import Desk
from tests.support.runner import InProcessRunner

IN_WORDS = "name: the table has type string, the files have type long"


@pytest.fixture
def desk(tmp_path):
    """A table with rows, whose field `name` is declared as an integer from now on."""
    desk = Desk(tmp_path)
    desk.arrives("a.ndjson", 5)
    desk.declare("name", "int64")
    desk.landing.write("b.ndjson", b'{"id": 1, "name": 7}\n')
    return desk


def start(desk, *, table_of=None):
    """Start blizzard as the command does, without Spark."""
    desk.ends_well()
    tables = penguin_config.load([desk.file], [], {}).tables

    def from_file(_pipeline):
        return next(iter(tables), None)

    (result,) = Service(
        settings=blizzard_config.load([desk.file], [], {}),
        emit=lambda _event: None,
        stop=Stop(),
        once=True,
        make_runner=SparkRunner,
        table_of=table_of or from_file,
    ).run_on(InProcessRunner(), lambda _event: None)
    return result


def test_a_start_is_refused_where_every_file_would_be_held(desk):
    """HOLES W24: the field and both types are named, nothing is read, nothing is written."""
    before = tree(desk.table)
    error = start(desk).error
    assert isinstance(error, SchemaConflict)
    assert isinstance(error, ProtocolConflict)  # which ends the program with exit code 2
    assert IN_WORDS in str(error)
    assert "schema_evolution merge" in str(error)
    left = {name: told for name, told in tree(desk.table).items() if "writer.json" not in name}
    assert left == {name: told for name, told in before.items() if "writer.json" not in name}


def test_a_dry_run_refuses_it_in_the_same_words(desk):
    """HOLES W24: exit code 2, since the configuration contradicts the table."""
    done = desk.cli("--dry-run", "--output", "json")
    (plan,) = told(done)
    assert (done.exit_code, plan["refusal"]["code"]) == (2, "schema_conflict")
    assert IN_WORDS in plan["refusal"]["error"]
    desk.declare("name", "string")
    assert desk.cli("--dry-run").exit_code == 0


def test_what_the_mode_lets_in_is_not_refused(desk):
    """HOLES W24: a wider type goes in with overwrite, and not with merge."""
    desk.declare("name", "string")
    desk.declare("small", "int64")
    assert isinstance(start(desk).error, SchemaConflict)
    desk.let("schema_evolution: overwrite")
    desk.landing.write("b.ndjson", b'{"id": 1, "small": 7}\n')
    assert start(desk).error is None


def test_of_a_penguin_that_is_configured_elsewhere_only_what_no_mode_lets_in_is_refused(desk):
    """HOLES W24."""
    assert "in every mode" in str(start(desk, table_of=lambda _name: None).error)
    desk.declare("name", "string")
    desk.declare("small", "int64")
    desk.landing.write("b.ndjson", b'{"id": 1, "small": 7}\n')
    assert start(desk, table_of=lambda _name: None).error is None


@pytest.mark.unbalanced("unreadable")
def test_a_log_that_cannot_be_read_is_penguin_s_to_tell(desk):
    """Files are written and wait for it, as ever."""
    desk.declare("name", "string")
    desk.landing.land("c.ndjson", 1)
    version = DeltaTable(str(desk.table)).version()
    (desk.table / f"_delta_log/{version:020d}.json").write_text("{")
    assert start(desk).error is None


def test_of_a_table_without_a_file_nothing_is_foretold(tmp_path):
    """What becomes of it is penguin's to say when the first files are there."""
    desk = Desk(tmp_path)
    desk.landing.land("a.ndjson", 5)
    DeltaTable.create(str(desk.table), Schema([Field("id", PrimitiveType("string"))]))
    assert start(desk).error is None


@pytest.mark.parametrize("declared", [True, False])
def test_a_table_that_penguin_refuses_is_refused_at_the_start_in_its_words(tmp_path, declared):
    """A CHECK constraint, a default or a generated column: no file would ever be committed."""
    desk = Desk(tmp_path)
    desk.arrives("a.ndjson", 5)
    if not declared:
        document = yaml.safe_load(desk.file.read_text())
        desk.file.write_text(yaml.safe_dump({**document, "schema": {"infer": True}}))
    DeltaTable(str(desk.table)).alter.add_constraint({"positive": "id > 0"})
    desk.landing.land("b.ndjson", 1)
    with pytest.raises(TableUnsupported) as refused:
        LogReader(Reader(str(desk.table), StorageOptions())).open()
    error = start(desk).error
    assert isinstance(error, TableUnsupported)
    assert error.message == refused.value.message
    done = desk.cli("--dry-run", "--output", "json")
    (plan,) = told(done)
    assert (done.exit_code, plan["refusal"]["code"]) == (2, "table_unsupported")
    checks = told(desk.cli("validate", "--online", "--output", "json"))
    assert any(refused.value.message in one["message"] for one in checks)
    DeltaTable(str(desk.table)).alter.drop_constraint("positive")
    assert desk.cli("--dry-run").exit_code == 0
