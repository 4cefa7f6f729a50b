"""Whether executors can reach what the driver reaches, as far as a configuration shows.

On a cluster a path of a local disk means another disk on every machine: files would be missing, or
be written where nobody looks for them. So it is refused, unless the configuration says that the
folder is mounted everywhere. The driver's own loopback is refused likewise.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import SecretStr

from blizzard.config.spark_master import (
    leads_to_loopback,
    runs_in_this_process,
    stays_on_this_machine,
)
from lakebed.config.faults import Fault
from lakebed.config.models import Document, KeyPath
from lakebed.config.profiles import key_path
from lakebed.storage.remote import is_endpoint
from lakebed.storage.store import local_path


def faults(document: Document, master: str | None = None) -> Iterator[Fault]:
    """Yield a fault for each place that executors would look for on their own machines.

    `master` is that of a session that the caller has, whatever the configuration says.
    """
    master = document.spark.master if master is None else master
    if runs_in_this_process(master):
        return
    shared = [Path(each).absolute() for each in document.spark.shared_paths]
    for path, _name, pipeline in document.named_pipelines():
        sink = pipeline.sink
        for below, _source_name, source in pipeline.named_sources():
            here = (*path, *below)
            yield from _local(here, "path", source.path, master, shared)
            yield from _loopback(document, here, source.storage_options, master)
        if sink is not None and sink.uri is not None:
            key = "path" if sink.table_uri is None else "table_uri"
            yield from _local((*path, "sink"), key, sink.uri, master, shared)
            yield from _loopback(document, (*path, "sink"), sink.storage_options, master)


def _local(here: KeyPath, key: str, place: str, master: str, shared: list[Path]) -> Iterator[Fault]:
    local = local_path(place)
    if local is None:
        return
    full = local.absolute()
    if not any(full == folder or folder in full.parents for folder in shared):
        yield Fault(
            (*here, key),
            f"is on this machine's disk, but executors of {master} would look on their own "
            "disks; use an object store, or list a folder that is mounted on all machines under "
            "spark.shared_paths",
        )


def _loopback(
    document: Document, here: KeyPath, options: Mapping[str, SecretStr], master: str
) -> Iterator[Fault]:
    if stays_on_this_machine(master):
        return
    for name, value in options.items():
        if is_endpoint(name) and leads_to_loopback(value.get_secret_value()):
            yield Fault(
                key_path(document, (*here, "storage_options"), name, options),
                f"is this machine's loopback address, and executors of {master} would connect to "
                "their own; use the store's network address",
            )
