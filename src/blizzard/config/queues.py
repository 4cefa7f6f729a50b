"""Queues that tell of new source files: what a configuration may say of them. Pure.

A queue is named by its URL, which says where it is; one of Google's by the name of its
subscription. Whose queue it is, that tells, or the store of the source: a queue on another server
has an address like any other.
"""

from collections.abc import Iterator, Mapping
from typing import assert_never

from blizzard.config import azure_queues, google_queues, sqs_queues
from blizzard.model.settings import QueueService, QueueSettings
from lakebed.config.faults import Fault
from lakebed.config.models import Document, KeyPath, Source
from lakebed.locations import place_of


def faults(path: KeyPath, source: Source) -> Iterator[Fault]:
    """Yield what is wrong with the queue of a source."""
    given = source.notifications
    if given is None:
        return
    here = (*path, "notifications")
    match _service(source):
        case QueueService.AZURE:
            yield from azure_queues.faults(here, source, given.queue)
        case QueueService.PUBSUB:
            yield from google_queues.faults(here, source, given.queue)
        case QueueService.SQS:
            yield from sqs_queues.faults(here, source, given.queue)


def shared_faults(document: Document) -> Iterator[Fault]:
    """Yield queues that two pipelines would read: each would take the other's messages."""
    users: dict[str, str] = {}
    for path, pipeline_name, pipeline in document.named_pipelines():
        for below, _name, source in pipeline.named_sources():
            if source.notifications is None:
                continue
            queue = google_queues.name_of(source.notifications.queue.rstrip("/"))
            first = users.setdefault(queue, pipeline_name)
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
    match _service(source):
        case QueueService.AZURE:
            return azure_queues.queue_at(url, source)
        case QueueService.PUBSUB:
            return google_queues.queue_at(url, source)
        case QueueService.SQS:
            return sqs_queues.queue_at(url, source)
        case never:
            assert_never(never)


OWN: Mapping[str, QueueService] = {"az": QueueService.AZURE, "gs": QueueService.PUBSUB}
"""Whose queue has an address like any other, by the store of its source; else it is SQS'."""


def _service(source: Source) -> QueueService:
    """Return whose queue a source has: as its URL says, else that of the store's own cloud."""
    url = source.notifications.queue if source.notifications else ""
    if azure_queues.names_azure(url):
        return QueueService.AZURE
    if google_queues.names_google(url):
        return QueueService.PUBSUB
    if sqs_queues.names_aws(url):
        return QueueService.SQS
    return OWN.get(place_of(source.path).scheme, QueueService.SQS)
