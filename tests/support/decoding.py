"""Many files read by one decoder, each by itself."""

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from blizzard.worker.ndjson.decoder import Decoder
from blizzard.worker.ndjson.lines import CombinedFiles, Decoded


def decode_all(
    decoder: Decoder, files: Iterable[tuple[Any, Generator[bytes] | bytes]], **how: Any
) -> Iterator[tuple[Any, Iterator[Decoded]]]:
    """Yield the rows of each file, those of files that were read as one, too."""
    for found in decoder.decode_files(files, **how):
        if isinstance(found, CombinedFiles):
            yield from found.each()
        else:
            yield found
