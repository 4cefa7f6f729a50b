"""What the events of a pipeline have in common."""

from typing import ClassVar

from lakebed.telemetry.events import PartEvent
from lakebed.telemetry.health import PartKind


class PipelineEvent(PartEvent):
    """Something that happened to a pipeline."""

    part_kind: ClassVar[PartKind] = PartKind.PIPELINE
    pipeline: str
