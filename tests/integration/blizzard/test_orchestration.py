"""The examples of docs/orchestration.md do what they say, with decorators that stand in."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[3] / "docs" / "orchestration.md"

STAND_INS = '''
import sys, types

CALLED = []


def passed(function=None, **_given):
    """A decorator, with or without arguments, that changes nothing but what is called."""
    if function is None:
        return lambda found: passed(found)

    def call(*given):
        CALLED.append(function.__name__)
        result = function(*given)
        TOLD[function.__name__] = result
        return result

    call.__name__ = function.__name__
    return call


class Told:
    def __init__(self, **given):
        vars(self).update(given)


TOLD = {}
airflow, sdk, dagster = (types.ModuleType(name) for name in ("airflow", "airflow.sdk", "dagster"))
sdk.dag = sdk.task = dagster.asset = passed
dagster.MaterializeResult = dagster.Definitions = dagster.ScheduleDefinition = Told
dagster.define_asset_job = lambda name, selection: (name, selection)
sys.modules |= {"airflow": airflow, "airflow.sdk": sdk, "dagster": dagster}
'''


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_there_is_an_example_for_each() -> None:
    assert [body.splitlines()[0] for body in blocks()] == [
        "# dags/lake.py",
        "# dags/lake_shell.py",
        "# lake/definitions.py",
    ]


@pytest.mark.spark
def test_the_examples_ingest_and_commit(tmp_path: Path) -> None:
    """Both in one Python, on one local Spark: first Airflow's tasks, twice, then Dagster's asset.

    A file that cannot be read is told by each of them, not by the first alone.
    """
    landing, table = tmp_path / "landing", tmp_path / "table"
    landing.mkdir()
    (landing / "a.ndjson").write_text("".join(f'{{"id": {n}}}\n' for n in range(7)))
    (landing / "bad.ndjson").write_text("{nope\n")
    config = tmp_path / "pipeline.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "source": {"path": str(landing)},
                "sink": {"path": str(table)},
                "schema": {"fields": [{"name": "id", "type": "int64"}]},
            }
        )
    )
    airflow, _shell, dagster = blocks()
    more = f"open({str(landing / 'b.ndjson')!r}, 'w').write('{{\"id\": 7}}\\n')"
    told = "import json\nprint(json.dumps([CALLED, TOLD['commit'], result.metadata]))"
    retried = "lake()  # as Airflow would after a failure"
    code = "\n".join((STAND_INS, airflow, retried, more, dagster, "result = events()", told))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"LAKE_CONFIG": str(config)},
    )
    assert done.returncode == 0, done.stderr
    called, committed, metadata = json.loads(done.stdout.splitlines()[-1])
    assert called == ["lake", "ingest", "commit", "lake", "ingest", "commit", "events"]
    assert committed == {str(table): 0}
    assert metadata == {"files": 1, "rows": 1, "version": 2, "files_failed": 1}
    assert done.stdout.count("see blizzard dlq list: {'default': 1}") == 2


SHELL_STAND_INS = """
class BashOperator(Told):
    def __rshift__(self, other):
        print(json.dumps([vars(self), vars(other)]))


import json
bash = types.ModuleType("airflow.providers.standard.operators.bash")
bash.BashOperator = BashOperator
sys.modules[bash.__name__] = bash
"""


@pytest.mark.spark
def test_the_task_of_a_shell_turns_red_and_what_was_read_is_committed(tmp_path: Path) -> None:
    config = tmp_path / "pipeline.yaml"
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.ndjson").write_text('{"id": 1}\n')
    (tmp_path / "in/bad.ndjson").write_text("{nope\n")
    document = {
        "source": {"path": str(tmp_path / "in")},
        "sink": {"path": str(tmp_path / "table")},
        "schema": {"fields": [{"name": "id", "type": "int64"}]},
        "tables": {"t": {"table_uri": str(tmp_path / "table")}},
    }
    config.write_text(yaml.safe_dump(document))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    around = os.environ | {"LAKE_CONFIG": str(config), "PATH": path}
    code = "\n".join((STAND_INS, SHELL_STAND_INS, blocks()[1]))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tasks = json.loads(told.stdout)
    assert [(one["retries"], one.get("trigger_rule")) for one in tasks] == [
        (0, None),
        (3, "all_done"),
    ]
    codes = [
        subprocess.run(["bash", "-c", one["bash_command"]], env=around, check=False).returncode
        for one in tasks
    ]
    assert codes == [3, 0]
    assert (tmp_path / "table/_delta_log/00000000000000000000.json").exists()
