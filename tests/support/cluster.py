"""A standalone Spark cluster on loopback: a master, and workers of one core with a bare Python.

It is started from the Spark that pip installs, with an environment of its own: nothing of this
process reaches the workers, neither its variables nor its packages.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from pyspark.find_spark_home import _find_spark_home

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "dist/blizzard-env.tar.gz"
PATIENCE = 300
SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
HOSTS = ("127.0.0.1", "127.0.0.2")
"""Spark tries a slow task a second time on another host only, so each worker is one."""


@dataclass
class Cluster:
    """A running cluster. What its processes say lies in its folder."""

    folder: Path
    master: str = ""
    page: str = ""
    pinned: bool = False
    """Whether each worker, with all that it starts, has a core of the machine for itself."""
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def python(self) -> Path:
        """Return the workers' Python, which has nothing but Python."""
        return self.folder / "bare/bin/python"

    def conf(self, **more: str) -> dict[str, str]:
        """Return the settings that docs/cluster.md tells to set, and what keeps processes small."""
        return {
            "spark.archives": f"{ARCHIVE}#blizzard-env",
            "spark.executorEnv.PYTHONPATH": "blizzard-env",
            "spark.pyspark.python": str(self.python),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SMALL_JVM,
            **more,
        }

    def whole(self) -> "Cluster":
        """See that there is a live worker on every host."""
        for host in HOSTS:
            if host not in self.workers or self.workers[host].poll() is not None:
                self.workers[host] = self._start_worker(host)
        return self

    def lose_worker(self, host: str) -> None:
        """Kill a worker and its executors, as the loss of a machine does."""
        worker = self.workers.pop(host)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def end_application(self, name: str) -> None:
        """Let the master end an application, as an operator does on its page."""
        asked = urlencode({"id": name, "terminate": "true"}).encode()
        urllib.request.urlopen(f"{self.page}/app/kill/", asked).close()

    def start_master(self) -> None:
        bare = self.folder / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        said = self._start("master.Master", "master", HOSTS[0])
        self.master = _awaited(said, r"Starting Spark master at (spark://\S+)")
        self.page = _awaited(said, r"Bound MasterWebUI to \S+ and started at (http://\S+)")

    def stop(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start_worker(self, host: str) -> subprocess.Popen[bytes]:
        options = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / "work"))
        name = f"worker-{host}-{len(self._processes)}"
        said = self._start("worker.Worker", name, host, *options, self.master)
        if self.pinned:
            # At once, while it is still the shell that will become the JVM: the rest inherits it.
            os.sched_setaffinity(self._processes[-1].pid, {HOSTS.index(host)})
        _awaited(said, r"Successfully registered with master (\S+)")
        return self._processes[-1]

    def _start(self, kind: str, name: str, host: str, *arguments: str) -> Path:
        said = self.folder / f"{name}.log"
        home = _find_spark_home()
        with said.open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [
                        f"{home}/bin/spark-class",
                        f"org.apache.spark.deploy.{kind}",
                        *("--host", host, "--port", "0", "--webui-port", "0"),
                        *arguments,
                    ],
                    cwd=self.folder,
                    env=self._environment(home, host),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return said

    def _environment(self, home: str, host: str) -> dict[str, str]:
        java = shutil.which("java")
        assert java is not None
        return {
            "PATH": f"{Path(java).parent}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "SPARK_HOME": home,
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
            "SPARK_LAUNCHER_OPTS": SMALL_JVM,
            **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
        }


@contextmanager
def running_cluster(folder: Path, *, pinned: bool = False) -> Iterator[Cluster]:
    """Run a master until the end of the block; whatever was started is ended with it."""
    if not ARCHIVE.exists():
        raise FileNotFoundError(f"{ARCHIVE} is not there: run make archive")
    cluster = Cluster(folder, pinned=pinned)
    try:
        cluster.start_master()
        yield cluster
    finally:
        cluster.stop()


def process_at(port: int) -> int:
    """Return the process on this machine that has a connection from a port of its own."""
    inodes = {
        fields[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if (fields := line.split()) and int(fields[1].partition(":")[2], 16) == port
    }
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            found = re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink()))
            if found and found[1] in inodes and int(handle.parts[2]) != os.getpid():
                return int(handle.parts[2])
    raise LookupError(f"no process has a connection from port {port}")


def executor_of(process: int) -> int:
    """Return the executor's JVM that a Python worker belongs to."""
    while process > 1:
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
            return process
        process = _parent(process)
    raise LookupError("the process belongs to no executor")


def worker_of(cluster: Cluster, process: int) -> str:
    """Return the host of the worker that a process descends from."""
    by_pid = {worker.pid: host for host, worker in cluster.workers.items()}
    while process > 1:
        if process in by_pid:
            return by_pid[process]
        process = _parent(process)
    raise LookupError("the process belongs to no worker")


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _awaited(said: Path, sign: str) -> str:
    """Wait until a process has said something; give the part that matters."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := re.search(sign, said.read_text()):
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(f"{said.name} did not say {sign!r}:\n{said.read_text()[-2000:]}")
