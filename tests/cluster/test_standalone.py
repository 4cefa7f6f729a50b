"""blizzard on a standalone cluster whose workers have a Python and nothing else.

Tests that share a session stand together: on a cluster a new one costs half a minute.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty

import pytest
import yaml

from blizzard.execute.runner import ExecutorsUnfit, RunFailed
from tests.cluster.conftest import Sessions
from tests.support.cluster import Cluster, executor_of, process_at, worker_of
from tests.support.faulty import Gate, Request
from tests.support.processes import run
from tests.support.s3 import KEY, SECRET
from tests.support.wide import Wide, is_look_at_upload, is_read_of

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1200)]

PATIENCE = 600


@contextmanager
def under_way(work: Callable[[], None]) -> Iterator[None]:
    """Do the work in a thread of its own; the block is over when the work is, well or not."""
    trouble: list[BaseException] = []

    def act() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            trouble.append(error)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    try:
        yield
    except Empty:
        # Nobody came to the gate, perhaps because the work is over already.
        if trouble:
            raise trouble[0] from None
        raise
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the work did not come to an end"
    if trouble:
        raise trouble[0]


def test_the_workers_python_has_none_of_our_dependencies(cluster: Cluster) -> None:
    """What the other tests show is worth something only where this is so."""
    for module in ("pyarrow", "obstore", "pandas", "pyspark", "blizzard"):
        asked = [str(cluster.python), "-c", f"import {module}"]
        tried = subprocess.run(asked, check=False, env={}, capture_output=True, text=True)
        assert f"No module named '{module}'" in tried.stderr


def profiles(folder: Path) -> Path:
    """Have a profile whose keys a program gives, and one that leads to a role by them."""
    keys = {"Version": 1, "AccessKeyId": KEY, "SecretAccessKey": SECRET}
    (folder / "keys.json").write_text(json.dumps(keys))
    role = "role_arn = arn:aws:iam::123456789012:role/r\nsource_profile = program"
    file = folder / "profiles"
    file.write_text(
        f"[profile program]\ncredential_process = cat {folder}/keys.json\n"
        f"[profile role]\n{role}\nregion = us-east-1\n"
    )
    return file


@pytest.mark.parametrize("profile", ["program", "role"])
def test_the_archive_follows_a_profile_to_its_keys(
    sessions: Sessions, wide: Wide, tmp_path: Path, profile: str
) -> None:
    """Of the services that botocore knows, it holds those that give keys."""
    wide.profile = profile
    options = yaml.safe_load(wide.config().read_text())["source"]["storage_options"]
    code = (
        "from lakebed.storage.options import StorageOptions\n"
        "from lakebed.storage.store import Store\n"
        f"Store('s3://{wide.bucket}/in', StorageOptions({options!r})).create('a', b'b')\n"
    )
    environment = {
        "PYTHONPATH": str(sessions.image),
        "AWS_CONFIG_FILE": str(profiles(tmp_path)),
        "AWS_ENDPOINT_URL_STS": wide.behind,
        "HOME": str(tmp_path),
    }
    subprocess.run([str(sessions.cluster.python), "-c", code], check=True, env=environment)
    assert wide.proxy.record[-1].kind == "put"
    assert bool(wide.proxy.record[-1].session) == (profile == "role")


def test_a_run_by_the_command_line_with_the_archive(
    cluster: Cluster, wide: Wide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dependencies come by spark.archives, keys by a profile; each row is in the table once."""
    file = str(profiles(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", file)
    wide.profile = "program"
    wide.land("a", "b", "c", "d")
    config = wide.config(
        cluster.master, cluster.conf(**{"spark.executorEnv.AWS_CONFIG_FILE": file})
    )
    ended = run("blizzard", "-c", config, "--once", "--output", "json")

    assert ended.code == 0, ended.err
    assert ended.results[0]["records_processed"] == 2000
    assert ended.results[0]["files_failed"] == 0
    assert "cannot reach the driver" not in ended.err
    wide.require_rows_once()


def test_a_task_that_fails_twice(sessions: Sessions, wide: Wide) -> None:
    """HOLES D03: the third attempt succeeds, and the job with it."""
    wide.land("a", "b")
    gate = wide.proxy.hold = Gate(is_read_of("a"), first=2)
    with under_way(lambda: wide.drain(sessions.with_package())):
        for _attempt in range(2):
            os.kill(process_at(gate.caught().port), signal.SIGKILL)
        gate.open()

    assert len(wide.reads("a")) == 3
    wide.require_rows_once()


def test_a_driver_that_executors_cannot_call_is_told_and_stops_nothing(
    sessions: Sessions, wide: Wide
) -> None:
    wide.land("a", "b")
    runner = sessions.with_package()
    _session, server = runner._started()
    server.close()
    try:
        wide.drain(runner)
    finally:
        runner._server = None

    assert sessions.unreached == [("127.0.0.1", server.address.port)]
    wide.require_rows_once()


def test_an_executor_killed_after_its_upload(sessions: Sessions, wide: Wide) -> None:
    """HOLES D03: the unit is done again elsewhere; what the dead executor wrote is named by nobody.

    It dies when its data file is in the store and nobody knows of it yet.
    """
    wide.land("a", "b", "c", "d")
    gate = wide.proxy.hold = Gate(is_look_at_upload("b"))
    with under_way(lambda: wide.drain(sessions.with_package())):
        executor = executor_of(process_at(gate.caught().port))
        os.kill(executor, signal.SIGKILL)
        gate.open()

    assert len(wide.uploaded("b")) == 2, "both attempts have uploaded"
    assert len(wide.named("b")) == 1
    wide.require_rows_once()


def test_a_worker_lost_in_the_middle_of_a_run(
    sessions: Sessions, cluster: Cluster, wide: Wide
) -> None:
    """HOLES D03: a machine is gone while a task on it reads; the other one does its work."""
    wide.land("a", "b", "c", "d")
    gate = wide.proxy.hold = Gate(is_read_of("c"))
    with under_way(lambda: wide.drain(sessions.with_package())):
        cluster.lose_worker(worker_of(cluster, process_at(gate.caught().port)))
        gate.open()

    assert len(wide.reads("c")) == 2, "it was read again from its start"
    wide.require_rows_once()


def test_an_application_that_the_master_ended_is_started_again(
    sessions: Sessions, cluster: Cluster, wide: Wide
) -> None:
    """The batch fails, and the next try has a session of its own, without a new process."""
    wide.land("a", "b")
    runner = sessions.with_package()
    gate = wide.proxy.hold = Gate(is_read_of("a"))

    def drain_twice() -> None:
        with pytest.raises(RunFailed):
            wide.drain(runner)
        wide.drain(runner)

    with under_way(drain_twice):
        gate.caught()
        cluster.end_application(runner._started()[0].sparkContext.applicationId)
        gate.open()

    wide.require_rows_once()


def test_a_unit_that_two_attempts_finish(sessions: Sessions, wide: Wide) -> None:
    """HOLES D03: with speculation both attempts upload all of it, and one of them counts.

    The first attempt is held at its download until the second has uploaded; then the second is
    held, and the first overtakes it.
    """
    wide.land("a", "b", "c", "d")
    slow, late = Gate(is_read_of("a")), Gate(is_look_at_upload("a"))

    def hold(request: Request) -> None:
        slow(request)
        late(request)

    wide.proxy.hold = hold
    runner = sessions.with_package(**{
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1",
        "spark.speculation.interval": "100ms",
        "spark.speculation.efficiency.enabled": "false",
    })  # fmt: skip
    with under_way(lambda: wide.drain(runner)):
        slow.caught()
        late.caught()
        slow.open()
    late.open()

    assert len(wide.reads("a")) == 2
    assert len(wide.uploaded("a")) == 2, "both attempts have uploaded"
    assert len(wide.named("a")) == 1
    wide.require_rows_once()


def test_executors_without_the_package_are_told_from_other_trouble(
    sessions: Sessions, wide: Wide
) -> None:
    """Spark speaks of an invalid port; the operator reads what is missing and how to bring it."""
    wide.land("a")
    with pytest.raises(ExecutorsUnfit) as told:
        wide.drain(sessions.without_package())

    assert "has no module blizzard" in str(told.value)
    assert "spark.archives" in str(told.value)
    assert "docs/cluster.md" in str(told.value)
    assert not told.value.retryable
