"""Overlapping places, and places that executors cannot reach.

Dead letters are NDJSON: below a source they would be read as data, fail, and produce more dead
letters. To a VACUUM, a source below a table is untracked data. Executors on this machine share its
disks; those of a cluster have their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blizzard.config.checks import folder_and_pattern
from blizzard.model.source.form import SourcePattern, is_hidden
from lakebed.config.faults import ConfigFault
from lakebed.config.models import Document, KeyPath, place_in
from lakebed.locations import ByPlace, Place
from lakebed.storage.remote import local_path

HERE = re.compile(r"local(-cluster)?(\[.*\])?")
_PORT = re.compile(r":\d+(?=,|$)")
LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|\[?::1\]?", re.IGNORECASE)


def runs_in_this_process(master: str) -> bool:
    """Whether Spark runs its tasks in this process, without a cluster."""
    return HERE.fullmatch(master) is not None


def stays_on_this_machine(master: str) -> bool:
    """Whether all executors are on this machine, since no other can reach such a master."""
    if runs_in_this_process(master):
        return True
    scheme, _, rest = master.partition("://")
    return scheme == "spark" and all(map(is_loopback, _PORT.sub("", rest).split(",")))


def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address or name."""
    return LOOPBACK.fullmatch(host) is not None


def unreachable_driver(master: str, host: str) -> str | None:
    """Return why executors cannot reach the driver at an address; None if they may."""
    if stays_on_this_machine(master) or not is_loopback(host):
        return None
    return (
        f"spark.conf: spark.driver.host is {host}, so executors of {master} would look for the "
        "driver on their own machines; set it to an address of this machine that they can reach"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceRoot:
    key: KeyPath
    name: str
    folder: Place
    pattern: SourcePattern | None


def faults(document: Document) -> Iterator[ConfigFault]:
    """Yield a fault for each dead letter queue in a source, and each source in a table."""
    sources = list(_sources(document))
    written: ByPlace[str] = ByPlace()
    for path, name, pipeline in document.named_pipelines():
        queue = pipeline.error_handling.dlq_path
        if queue is not None:
            options = pipeline.error_handling.dlq_storage_options
            place = place_in(queue, options)
            yield from _queue_in_source((*path, "error_handling", "dlq_path"), place, sources)
        if pipeline.sink is not None and pipeline.sink.uri is not None:
            table = place_in(pipeline.sink.uri, pipeline.sink.storage_options)
            written.setdefault(table, name)
            yield from _source_in_table(f"pipeline {name}", table, sources)
    for name, each in document.tables.items():
        table = place_in(each.table_uri, each.storage_options)
        if written.get(table) is None:
            yield from _source_in_table(f"tables.{name}", table, sources)


def _sources(document: Document) -> Iterator[_SourceRoot]:
    for path, _name, pipeline in document.named_pipelines():
        for inner, name, source in pipeline.named_sources():
            folder, pattern = folder_and_pattern(source)
            key = (*path, *inner, "path")
            found = place_in(folder, source.storage_options)
            yield _SourceRoot(key=key, name=name, folder=found, pattern=pattern)


def _queue_in_source(
    key: KeyPath, queue: Place, sources: list[_SourceRoot]
) -> Iterator[ConfigFault]:
    for source in sources:
        inner, pattern = queue.below(source.folder), source.pattern
        if inner is None or is_hidden(inner):
            continue
        if inner and pattern is not None and not pattern.may_hold(inner):
            continue
        yield ConfigFault(
            key,
            f"is inside source {source.name}, where the records of failed files would be read as "
            "data; move it elsewhere, or into a folder whose name starts with _",
        )


def _source_in_table(whose: str, table: Place, sources: list[_SourceRoot]) -> Iterator[ConfigFault]:
    for source in sources:
        inner = source.folder.below(table)
        if inner is None or (inner[:1] in ("_", ".") and inner.partition("/")[0] not in OURS):
            continue
        is_table = not inner and source.pattern is None
        where = f"the table of {whose} itself" if is_table else f"inside the table of {whose}"
        yield ConfigFault(
            source.key,
            f"is {where}, where a VACUUM deletes every file that the table "
            "does not reference; move it elsewhere",
        )


OURS = ("_blizzard", "_delta_log", "_staging")
"""Folders of a table that the programs themselves write."""


def unreachable(document: Document, master: str | None = None) -> Iterator[ConfigFault]:
    """Yield a fault for each place that executors would seek on their own machines.

    On a cluster a local path means another disk on every machine, so it is refused unless the
    configuration says that the folder is mounted everywhere.
    `master` is the master of the caller's session and overrides the configuration.
    """
    master = document.spark.master if master is None else master
    if runs_in_this_process(master):
        return
    shared = [Path(each).absolute() for each in document.spark.shared_paths]
    for path, _name, pipeline in document.named_pipelines():
        sink = pipeline.sink
        for below, _source_name, source in pipeline.named_sources():
            yield from _local((*path, *below), "path", source.path, master, shared)
        if sink is not None and sink.uri is not None:
            key = "path" if sink.table_uri is None else "table_uri"
            yield from _local((*path, "sink"), key, sink.uri, master, shared)


def _local(
    here: KeyPath, key: str, place: str, master: str, shared: list[Path]
) -> Iterator[ConfigFault]:
    local = local_path(place)
    if local is None:
        return
    full = local.absolute()
    if not any(full == folder or folder in full.parents for folder in shared):
        yield ConfigFault(
            (*here, key),
            f"is on this machine's disk, but executors of {master} would look on their own "
            "disks; use an object store, or list a folder that is mounted on all machines under "
            "spark.shared_paths",
        )
