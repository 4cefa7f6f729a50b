"""What the live page's search says of the files of a desk's pipeline."""

from blizzard.config import load as blizzard_config
from lakebed.clock import Clock
from liveview.answers import Answers
from liveview.details import FileRow
from liveview.lake import joined
from liveview.live import Live
from liveview.observer import Observer
from penguin.config import load as penguin_config
from tests.support.desk import Desk


def on_the_page(desk: Desk, search: str, pipeline: str = "default") -> list[FileRow]:
    """Return the files that a search finds, as the API answers it."""
    lake = joined(
        blizzard_config.load([desk.file], [], {}), penguin_config.load([desk.file], [], {})
    )
    clock = Clock()
    observer = Observer(
        lake, Live("blizzard", version="0", seconds=clock.seconds), "blizzard", clock=clock
    )
    try:
        return Answers(observer).files(pipeline, search=search, limit=10).files
    finally:
        observer.close()
