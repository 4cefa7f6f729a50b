"""Queues that tell of new source files: what a configuration may say of them. Pure.

A queue is named by its URL, which says where it is. Whose queue it is, its URL tells, or the store
of the source: a queue on another server has an address like any other.
"""

from collections.abc import Iterator

from blizzard.config import azure_queues, sqs_queues
from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import Document, KeyPath, Source
from lakebed.locations import place_of

OF_GOOGLE = (
    "must be a queue of SQS or a storage queue of Azure; Pub/Sub of Google is not supported, and "
    "files are found by listing without a queue"
)


def faults(path: KeyPath, source: Source) -> Iterator[Fault]:
    """Yield what is wrong with the queue of a source."""
    given = source.notifications
    if given is None:
        return
    here = (*path, "notifications")
    if given.queue.startswith(("projects/", "pubsub:")):
        yield Fault((*here, "queue"), OF_GOOGLE)
    elif _service(source) is QueueService.AZURE:
        yield from azure_queues.faults(here, source, given.queue)
    else:
        yield from sqs_queues.faults(here, source, given)


def shared_faults(document: Document) -> Iterator[Fault]:
    """Yield queues that two pipelines would read: each would take the other's messages."""
    users: dict[str, str] = {}
    for path, pipeline_name, pipeline in document.named_pipelines():
        for below, _name, source in pipeline.named_sources():
            if source.notifications is None:
                continue
            first = users.setdefault(source.notifications.queue.rstrip("/"), pipeline_name)
            if first != pipeline_name:
                yield Fault(
                    (*path, *below, "notifications", "queue"),
                    f"is the queue of pipeline {first}, too; each would take the other's "
                    "messages: give every pipeline a queue of its own",
                )


def queue_of(source: Source) -> QueueSettings | None:
    """Return the queue of a source, if it has one."""
    if source.notifications is None:
        return None
    url = source.notifications.queue.rstrip("/")
    if _service(source) is QueueService.AZURE:
        return azure_queues.queue_at(url, source)
    return sqs_queues.queue_at(url, source)


def _service(source: Source) -> QueueService:
    """Return whose queue a source has: as its URL says, else that of the store's own cloud."""
    url = source.notifications.queue if source.notifications else ""
    if azure_queues.names_azure(url):
        return QueueService.AZURE
    is_azure = place_of(source.path).scheme == "az" and not sqs_queues.names_aws(url)
    return QueueService.AZURE if is_azure else QueueService.SQS
