"""Overlapping places, and places that executors cannot reach.

Dead letters are NDJSON: below a source they would be read as data, fail, and produce more dead
letters. To a VACUUM, a source below a table is untracked data. Executors on this machine share its
disks and its loopback; those of a cluster have their own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from blizzard.config.checks import folder_and_pattern
from blizzard.model.source.form import SourcePattern, is_hidden
from lakebed.config.faults import ConfigFault, key_path
from lakebed.config.models import Document, KeyPath, place_in
from lakebed.locations import ByPlace, Place
from lakebed.storage.options import is_endpoint
from lakebed.storage.remote import local_path

HERE = re.compile(r"local(-cluster)?(\[.*\])?")
LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|\[?::1\]?", re.IGNORECASE)


def runs_in_this_process(master: str) -> bool:
    """Whether Spark runs its tasks in this process, without a cluster."""
    return HERE.fullmatch(master) is not None


def stays_on_this_machine(master: str) -> bool:
    """Whether all executors are on this machine, since no other can reach such a master."""
    if runs_in_this_process(master):
        return True
    scheme, _, rest = master.partition("://")
    return scheme == "spark" and all(leads_to_loopback(f"//{each}") for each in rest.split(","))


def leads_to_loopback(url: str) -> bool:
    """Whether a URL is a loopback address; one that cannot be parsed is not."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


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
            yield from _table_in_source((*path, "sink"), table, sources)
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
        inner = queue.below(source.folder)
        if inner is None or _is_excluded(inner, source.pattern):
            continue
        yield ConfigFault(
            key,
            f"is inside source {source.name}, where the records of failed files would be read as "
            "data; move it elsewhere, or into a folder whose name starts with _",
        )


def _table_in_source(
    key: KeyPath, table: Place, sources: list[_SourceRoot]
) -> Iterator[ConfigFault]:
    """Refuse a table whose data files match the source's pattern; others are not NDJSON."""
    for source in sources:
        inner = table.below(source.folder)
        pattern = source.pattern
        if inner is None or pattern is None or is_hidden(inner):
            continue
        data = f"{inner}/x.parquet".lstrip("/")
        if pattern.names_file(data) and pattern.compiled().fullmatch(data):
            yield ConfigFault(
                key, f"is inside source {source.name}, whose pattern matches its data files"
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


def _is_excluded(inner: str, pattern: SourcePattern | None) -> bool:
    """Whether a source takes no dead letter in a folder below it."""
    if inner:
        return is_hidden(inner) or (pattern is not None and not pattern.may_hold(inner))
    start = "" if pattern is None else pattern.start
    return not (LETTERS.startswith(start) or start.startswith(LETTERS))


LETTERS = "failures-"
"""The prefix of the names of dead letters."""
OURS = ("_blizzard", "_delta_log", "_staging")
"""Folders of a table that the programs themselves write."""


def unreachable(document: Document, master: str | None = None) -> Iterator[ConfigFault]:
    """Yield a fault for each place that executors would seek on their own machines.

    On a cluster a local path means another disk on every machine, so it is refused unless the
    configuration says that the folder is mounted everywhere. The driver's loopback is, too.
    `master` is the master of the caller's session and overrides the configuration.
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


def _loopback(
    document: Document, here: KeyPath, options: Mapping[str, SecretStr], master: str
) -> Iterator[ConfigFault]:
    if stays_on_this_machine(master):
        return
    for name, value in options.items():
        if is_endpoint(name) and leads_to_loopback(value.get_secret_value()):
            yield ConfigFault(
                key_path(document, (*here, "storage_options"), name, options),
                f"is this machine's loopback address, and executors of {master} would connect to "
                "their own; use the store's network address",
            )
