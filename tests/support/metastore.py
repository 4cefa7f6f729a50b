"""A Hive metastore with a Derby of its own, from the jars that pyspark brings."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SITE = """<configuration>
<property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""


@contextmanager
def metastore(folder: Path) -> Iterator[str]:
    """Run a metastore until the end of the block; give its address."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hive-site.xml").write_text(SITE)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
    given = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    process = subprocess.Popen(
        [
            *("java", "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *("-Dlog4j.configuration=none", f"-Dderby.stream.error.file={folder}/derby.log"),
            *("-cp", f"{folder}:{jars}", "org.apache.hadoop.hive.metastore.HiveMetaStore"),
            *("-p", str(port)),
            *(part for name, value in given.items() for part in ("--hiveconf", f"{name}={value}")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        _wait_for(port, process)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 300
    while True:
        assert process.poll() is None, "the metastore did not start"
        assert time.monotonic() < end
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
