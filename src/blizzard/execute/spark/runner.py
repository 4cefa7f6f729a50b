"""Run work units as Spark tasks with `mapInArrow`, one task per unit.

Side effects in tasks are safe: a job returns exactly one result per partition, from the winning
attempt, and files are only valid once the driver journals that result. Units are part of the
function that is mapped over `spark.range`, so no RDD is needed.
"""

import pickle
import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import Row, SparkSession

from blizzard.config.overlaps import runs_in_this_process, unreachable_driver
from blizzard.execute.runner import (
    ExecutorsUnfit,
    MakeRunner,
    RunFailed,
    RunnerDied,
    RunStopped,
    WorkersDied,
)
from blizzard.execute.spark.executor_check import unfit
from blizzard.execute.spark.job import (
    TROUBLE,
    Do,
    Ended,
    SparkJob,
    batch_description,
    counting,
    idle_job,
    rewrite_description,
)
from blizzard.execute.spark.jvm import Said, on_standard_error
from blizzard.execute.spark.session import (
    BIND,
    HOST,
    await_executors,
    drop_dead_jvm,
    executors,
    forget,
    is_gone,
    local_cores,
    start,
)
from blizzard.model.progress import Instruction, Report, Supervisor
from blizzard.model.rewriting import FileGroup, RewriteOutcome, Rewriting
from blizzard.model.settings import SparkSettings
from blizzard.model.work import UnitOutcome, Work, WorkUnit
from blizzard.worker.download import OpenedStores
from blizzard.worker.progress import ProgressClient, ProgressServer
from blizzard.worker.quarantine.replay import run_replay
from blizzard.worker.rewrite_group import rewrite_group
from blizzard.worker.unit import run_unit
from lakebed.errors import ConfigInvalid, LakeError
from lakebed.storage.store import Store

CONNECT = "pyspark.sql.connect"
CONTEXT_IS_GONE = ("SparkContext was shut down", "Master removed our application")
"""Error texts of a stopped context; its class name alone is in every stack trace."""
STOPPED = "a stop was requested before Spark could run anything"
WORKER_IS_DEAD = ("Python worker exited unexpectedly", "ExecutorLostFailure")


class SparkRunner:
    """Runs units on Spark. The session starts with the first batch."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        starting: Callable[[], None] = lambda: None,
        stop_requested: Callable[[], bool] = lambda: False,
        heard: Callable[[Report], None] = lambda _report: None,
        unreached: Callable[[str, int], None] = lambda _host, _port: None,
        said: Said = on_standard_error,
        start: Callable[..., SparkSession] = start,
        lent: SparkSession | None = None,
    ) -> None:
        """Use a `lent` session as it is, and leave it running at the end."""
        self._settings = settings
        self._lent = lent is not None
        self._start = start
        self._starting = starting
        self._stop_requested = stop_requested
        self._heard = heard
        self._unreached = unreached
        self._said = said
        self._told_unreached = False
        self._overseers: dict[str, Supervisor] = {}
        """The supervisor of each pipeline's running job."""
        self._lock = threading.Lock()
        self._jobs: dict[str, set[str]] = {}
        """The units of each running job that have reported, before reading anything."""
        self._rewrites: dict[str, Callable[[Report], None]] = {}
        """The report handlers of running rewrite jobs with progress."""
        self._session = lent
        self._server: ProgressServer | None = None

    @property
    def parallelism(self) -> int:
        """Return the number of concurrent tasks; a local Spark need not start for it."""
        cores = local_cores(self._settings)
        if cores is None:
            session, _server = self._started()
            try:
                return int(session.sparkContext.defaultParallelism)
            except TROUBLE as cause:
                raise self._explained(cause, 0, session) from cause
        return cores

    def run(self, units: Sequence[WorkUnit], work: Work) -> list[UnitOutcome]:
        """Run every unit as a task of one job; return the outcomes in the order of the units.

        Each pipeline has a scheduler pool, and pools share the cores fairly: a small job need not
        wait until all tasks of a large one have begun.
        """
        session, server = self._started()
        pipeline = work.marks["pipeline"]
        self._overseers[pipeline] = Supervisor(work.max_seconds, work.clock.seconds)
        job = SparkJob(
            name=secrets.token_hex(8),
            pipeline=pipeline,
            description=batch_description(units, work),
            items={unit.name: unit for unit in units},
            begin=partial(_runs_units, work),
            driver=server.address,
        )
        begun = self._jobs[job.name] = set()
        try:
            answers = self._collect(job, session, begun)
        finally:
            del self._jobs[job.name], self._overseers[pipeline]
        if answers and not begun and not self._told_unreached:
            self._told_unreached = True
            self._unreached(server.address.host, server.address.port)
        return _outcomes(answers)

    def rewrite(
        self, groups: Sequence[FileGroup], work: Rewriting, *, ended: Ended | None = None
    ) -> list[RewriteOutcome]:
        """Rewrite every group as a task of one job; return the outcomes in the order of the groups.

        As with units, written files are only valid once an entry names them.
        """
        session, server = self._started()
        job = SparkJob(
            name=secrets.token_hex(8),
            pipeline=work.marks["pipeline"],
            description=rewrite_description(groups, work),
            items={str(number): group for number, group in enumerate(groups)},
            begin=partial(_rewrites_groups, work),
            driver=None if ended is None else server.address,
        )
        if ended is not None:
            self._rewrites[job.name] = counting(ended)
        try:
            return _outcomes(self._collect(job, session))
        finally:
            self._rewrites.pop(job.name, None)

    def _collect(
        self, job: SparkJob[Any], session: SparkSession, begun: Collection[str] = ()
    ) -> list[Row]:
        try:
            return job.collect(session)
        except TROUBLE as cause:
            raise self._explained(cause, len(job.items), session, begun=bool(begun)) from cause

    def _report(self, report: Report) -> None:
        """Forward a report; ignore leftover attempts of a finished job."""
        if (hears := self._rewrites.get(report.job)) is not None:
            hears(report)
        begun = self._jobs.get(report.job)
        if begun is not None:
            begun.add(report.unit)
            self._heard(report)

    def _workers_can_work(self, session: SparkSession) -> bool:
        """Whether a Python worker without any file starts at all."""
        try:
            idle_job("check that Python workers start").collect(session)
        except TROUBLE:
            return False
        return True

    def _instruction(self, unit: str) -> Instruction:
        """Return the instruction for a unit (`pipeline/unit`)."""
        supervisor = self._overseers.get(unit.partition("/")[0])
        return Instruction.GO_ON if supervisor is None else supervisor.answer()

    def _explained(
        self, cause: BaseException, count: int, session: SparkSession, *, begun: bool = False
    ) -> LakeError:
        """Return the error of a job: its workers died, or Spark could not run it at all.

        `begun` says that a unit has reported. If none has, the workers may have died of something
        other than a file; then a worker without any file dies as well.
        """
        text = str(cause)
        local = self._lent and runs_in_this_process(session.sparkContext.master or "")
        if why := unfit(text, local=local):
            return ExecutorsUnfit(why)
        if any(sign in text for sign in WORKER_IS_DEAD):
            if begun or self._workers_can_work(session):
                return WorkersDied(f"the Python workers of a job of {count} units died")
            return RunFailed(
                "Spark's Python workers die before they read anything: see what Spark reports "
                "about them in the log above, and check whether the machine has memory left"
            )
        if any(sign in text for sign in CONTEXT_IS_GONE) or is_gone(session):
            return self._without(session, begun=begun)
        return RunFailed(f"Spark could not run a job of {count} units: {_reason(text)}")

    def _without(self, session: SparkSession, *, begun: bool) -> LakeError:
        """Return the error of a job whose JVM or context is gone.

        The next batch starts a new session, once for all pipelines.
        """
        if self._lent:
            return RunFailed("the Spark session that was passed in has been stopped")
        with self._lock:
            if self._session is session:
                self._session = None
                forget(session)
        if not begun and self._stop_requested():
            return RunStopped(STOPPED)
        gone = "Spark is gone; it is being restarted"
        here = runs_in_this_process(self._settings.master)
        return RunnerDied(gone) if begun and here else RunFailed(gone)

    def stop(self) -> None:
        """End the session, if there is one; ignore a JVM that is already gone."""
        if self._server is not None:
            self._server.close()
        if self._session is not None and not self._lent:
            forget(self._session)

    def _started(self) -> tuple[SparkSession, ProgressServer]:
        """Return the process's session and progress server, starting them if necessary."""
        with self._lock:
            if self._session is None:
                self._refuse_after_stop()
                self._starting()
                self._session = self._new_session()
                self._refuse_after_stop()
            if self._server is None:
                try:
                    self._server = self._listening(self._session)
                except TROUBLE as cause:
                    raise self._did_not_start(cause) from cause
            return self._session, self._server

    def _refuse_after_stop(self) -> None:
        """Raise if a stop was requested, since the units would not begin."""
        if self._stop_requested():
            raise RunStopped(STOPPED)

    def _new_session(self) -> SparkSession:
        try:
            session = self._start(
                self._settings, said=self._said, stop_requested=self._stop_requested
            )
            if local_cores(self._settings) is None:
                await_executors(lambda: executors(session))
        except TROUBLE as cause:
            raise self._did_not_start(cause) from cause
        return session

    def _did_not_start(self, cause: Exception) -> RunFailed:
        if not self._lent and drop_dead_jvm():
            self._session = None
        if self._stop_requested():
            # A signal to the process group ends the JVM as well.
            return RunStopped(STOPPED)
        return RunFailed(f"Spark did not start on {self._settings.master}: {_reason(str(cause))}")

    def _listening(self, session: SparkSession) -> ProgressServer:
        """Listen on Spark's bind address; executors connect to the driver's host."""
        host = session.conf.get(HOST) or ""
        bind = session.conf.get(BIND, host) or host
        if fault := unreachable_driver(self._settings.master, host):
            raise ConfigInvalid([fault])
        port = self._settings.line_port
        try:
            return ProgressServer(
                host,
                bind=bind,
                port=port,
                stop_requested=self._stop_requested,
                heard=self._report,
                instruction=self._instruction,
            )
        except OSError as cause:
            raise RunFailed(
                f"cannot listen for running tasks on {bind}, port {port or 'any'} "
                f"({cause.strerror}); see {BIND} and spark.line_port in docs/cluster.md"
            ) from cause


def _reason(text: str) -> str:
    """Return the most informative line of a Java stack trace."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (errors or lines or ["no reason given"])[-1 if errors else 0][:300]


def _outcomes(answers: Sequence[Row]) -> list[Any]:
    by_item = {row.item: pickle.loads(row.outcome) for row in answers}  # noqa: S301 - our own workers wrote it
    return [by_item[index] for index in range(len(answers))]


def _runs_units(work: Work) -> Do[WorkUnit]:
    stores = OpenedStores(work)

    def do(unit: WorkUnit, channel: ProgressClient) -> UnitOutcome:
        return (run_unit if unit.replay is None else run_replay)(unit, work, stores, channel)

    return do


def _rewrites_groups(work: Rewriting) -> Do[FileGroup]:
    store = Store(work.sink.uri, work.sink.options)

    def do(group: FileGroup, channel: ProgressClient) -> RewriteOutcome:
        outcome = rewrite_group(group, work, store)
        channel.progress.files_read = 1
        return outcome

    return do


def on_lent_session(spark: Any) -> MakeRunner:  # noqa: ANN401 - any session object
    """Return a runner factory for an existing session; refuse unsuitable sessions."""
    session = checked(spark)

    def make(settings: SparkSettings, **told: Any) -> SparkRunner:  # noqa: ANN401 - MakeRunner says what
        master = str(session.sparkContext.master)
        return SparkRunner(replace(settings, master=master), lent=session, **told)

    return make


def checked(spark: Any) -> SparkSession:  # noqa: ANN401
    """Return a session that can run tasks; raise ConfigInvalid for any other."""
    if type(spark).__module__.startswith(CONNECT):
        raise ConfigInvalid(
            [
                (
                    "spark: this is a Spark Connect session, and blizzard's tasks report to the "
                    "process that starts them, which Connect does not allow; pass a classic "
                    "SparkSession, or none, and blizzard starts its own"
                )
            ]
        )
    if not isinstance(spark, SparkSession):
        raise ConfigInvalid([f"spark: must be a SparkSession, is a {type(spark).__name__}"])
    if is_gone(spark):
        raise ConfigInvalid(["spark: this session has been stopped; pass one that is running"])
    return spark
