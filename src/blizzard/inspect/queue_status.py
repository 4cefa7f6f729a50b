"""How many messages are in the queues of a pipeline. It counts, and takes none."""

from contextlib import closing
from dataclasses import dataclass

from blizzard.model.settings import PipelineSettings, QueueSettings
from blizzard.notices.subscription import OpenQueue
from lakebed.errors import LakeError
from lakebed.telemetry.events import code_of
from lakebed.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue; without numbers where it cannot be asked."""

    queue: str
    messages: int | None = None
    """Waiting to be received, about; None where the queue does not tell."""
    in_flight: int | None = None
    """Received and not deleted, about; None where the queue counts them among the others."""
    error: str | None = None

    def sentence(self) -> str:
        """Return it for a person."""
        if self.error is not None:
            return f"the queue of notices cannot be asked: {self.error}; files are found by listing"
        if self.messages is None:
            return f"the queue of notices answers: {self.queue}; it does not tell how many it has"
        if self.in_flight is None:
            waiting = plural(self.messages, "notice")
            return f"{waiting} waiting or being followed in {self.queue}"
        return (
            f"{plural(self.messages, 'notice')} waiting and {self.in_flight:,} being "
            f"followed in {self.queue}"
        )


def queue_status(queue: QueueSettings, open_queue: OpenQueue) -> QueueStatus:
    """Return how full a queue is; what goes wrong is told and hides nothing else."""
    try:
        with closing(open_queue(queue)) as opened:
            depth = opened.depth()
    except LakeError as trouble:
        return QueueStatus(queue=queue.url, error=f"{trouble} [{code_of(trouble)}]")
    return QueueStatus(queue=queue.url, messages=depth.waiting, in_flight=depth.in_flight)


def queues_of(settings: PipelineSettings, open_queue: OpenQueue) -> tuple[QueueStatus, ...]:
    """Return how full each queue of a pipeline is."""
    given = (source.notifications for source in settings.sources)
    queues = {queue.url: queue for queue in given if queue is not None}
    return tuple(queue_status(queue, open_queue) for queue in queues.values())
