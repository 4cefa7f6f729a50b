"""The dead letter queue of a bench: its objects, its lines, and a reader of it."""

import json
from pathlib import Path
from typing import Any

from blizzard.answers.progress import PipelineEvidence
from blizzard.answers.status_reader import DeadLetterQueue, dead_letter_queue
from lakebed.clock import Clock
from tests.support.builders import Bench


def drain(bench: Bench) -> Bench:
    pipeline = bench.pipeline()
    while pipeline.step():
        pass
    return bench


def objects(bench: Bench) -> list[Path]:
    folder = bench.table / "_blizzard/default/dlq"
    return sorted(folder.iterdir()) if folder.exists() else []


def lines(bench: Bench) -> list[dict[str, Any]]:
    """Read the lines of every object that an entry names, as another program would."""
    return [
        json.loads(line)
        for entry in bench.entries()
        for uri in entry.dlq
        for line in Path(uri).read_text().splitlines()
    ]


def queue(bench: Bench) -> DeadLetterQueue:
    return dead_letter_queue(PipelineEvidence.read(bench.settings, Clock()))
