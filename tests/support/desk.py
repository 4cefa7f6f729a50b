"""Both programs on one table, in one process, for what an operator orders of either."""

import json
import re
from datetime import timedelta
from functools import lru_cache

from typer.testing import CliRunner

from blizzard.cli.app import app
from blizzard.cli.surroundings import Surroundings
from blizzard.config import load as blizzard_config
from blizzard.pipeline_log import PipelineLog
from blizzard.repair.redo import redo
from lakebed.clock import Clock
from lakebed.layout import writer
from lakebed.storage.store import Store
from penguin.cli.app import app as penguin_app
from penguin.config import load as penguin_config
from penguin.operate.release import HeldFileOperations
from tests.support.dying import dying
from tests.support.landing import Landing, config
from tests.support.pipelines import pipeline_of
from tests.support.runner import InProcessRunner, inside
from tests.support.tables import commit_table
from tests.support.waits import hurried


class Desk:
    """Both programs on one table, in this process."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.landing = Landing(folder / "landing")
        self.table = folder / "table"
        self.file = config(folder)
        self.clock = hurried()

    @property
    def store(self):
        return Store(str(self.table), self.sink.storage_options)

    @property
    def sink(self):
        return self.settings.sink

    @property
    def settings(self):
        (settings,) = _loaded(blizzard_config.load, self.file, self.file.read_text()).pipelines
        return settings

    @property
    def table_settings(self):
        (table,) = _loaded(penguin_config.load, self.file, self.file.read_text()).tables
        return table

    def declare(self, field, kind):
        """Declare a field as another type, in the configuration of both programs."""
        text = self.file.read_text()
        declared = re.sub(rf"(name: {field}, type: )\w+", rf"\g<1>{kind}", text)
        assert declared != text
        self.file.write_text(declared)

    def let(self, setting):
        """Set something more for the table."""
        self.file.write_text(self.file.read_text() + f"    {setting}\n")

    def blizzard(self, *, later=0.0):
        class Later(Clock):
            def now(self):
                return super().now() + timedelta(seconds=later)

        pipeline = pipeline_of(self.settings, InProcessRunner(), clock=Later())
        while pipeline.step():
            pass

    def arrives(self, name, rows):
        """Let a file land, be read and be committed."""
        self.landing.land(name, rows)
        self.blizzard()
        self.penguin()

    def land(self, name, *records):
        """Write a source file; a text is a line as it is."""
        lines = (each if isinstance(each, str) else json.dumps(each) for each in records)
        self.landing.write(name, "".join(line + "\n" for line in lines).encode())

    def ingest(self):
        """Run both programs once."""
        self.blizzard()
        self.penguin()

    def ends_well(self):
        """Let nobody be taken for the writer of the pipeline: whoever starts next need not wait."""
        (self.table / writer("default")).unlink(missing_ok=True)

    def penguin(self, fate=None):
        table = self.table_settings
        store = Store(table.table_uri, table.storage_options)
        commit_table(table, dying(store, fate) if fate else store, lambda _: None, self.clock)

    def fates(self, names):
        settings, *_others = _loaded(
            blizzard_config.load, self.file, self.file.read_text()
        ).pipelines
        return PipelineLog(settings).fates(names)

    def redo(self, wanted=None, store=None):
        place = store or self.store
        return redo(place, self.settings.name, self.fates, clock=self.clock, wanted=wanted)

    def holds_a_file(self):
        """Two batches; the second was declared with a type that the table cannot hold.

        Return the name of the file that is held; the declaration is as it was before.
        """
        self.landing.land("a.ndjson", 5)
        self.blizzard()
        self.penguin()
        known = set(self.table.glob("*.parquet"))
        self.declare("small", "int64")
        self.landing.land("b.ndjson", 5)
        self.blizzard()
        self.penguin()
        self.declare("small", "int32")
        (new,) = set(self.table.glob("*.parquet")) - known
        return new.stem

    def operator(self, store=None):
        """Return whoever carries out orders on held files."""
        return HeldFileOperations(
            settings=self.table_settings,
            store=store or self.store,
            clock=self.clock,
            pause=lambda _seconds: None,
        )

    def loses_a_file(self):
        """Two batches; a data file of the second is gone before penguin sees it."""
        self.landing.land("a.ndjson", 5)
        self.blizzard()
        self.penguin()
        known = set(self.table.glob("*.parquet"))
        self.landing.land("b.ndjson", 5)
        self.blizzard()
        (new,) = set(self.table.glob("*.parquet")) - known
        new.unlink()
        return new.stem

    def cli(self, *arguments):
        """Run a command of blizzard's; a run needs no Spark."""
        around = Surroundings(make_runner=inside, clock=hurried())
        return CliRunner().invoke(app, [*arguments, "-c", str(self.file)], obj=around)

    def order(self, *arguments):
        """Run a command of penguin's."""
        return CliRunner().invoke(penguin_app, [*arguments, "-c", str(self.file)])


@lru_cache(maxsize=16)
def _loaded(load, file, _text):
    """Read a configuration, once for as long as its text is the same."""
    return load([file], [], {})
