"""What a unit sees of values that have no column: in files it looks at, and in rescued ones."""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from blizzard.model.files import SourceFile
from blizzard.model.seen import Seen
from blizzard.worker.ndjson.decoder import Decoded, Decoder
from blizzard.worker.progress import ProgressChannel
from lakebed.errors import LakeError
from lakebed.types import RESCUED, UnknownFields

if TYPE_CHECKING:
    from blizzard.worker.ndjson.look.paths import Looks


class UnitLook:
    """What the values of one unit look like that have no column."""

    def __init__(self, unknown: UnknownFields) -> None:
        self._adds = unknown is UnknownFields.ADD
        self._looks: Looks | None = None
        self._before: tuple[dict[str, Seen], int] | None = None
        """What was known before the file that is being read, once something was seen in it."""

    @property
    def seen(self) -> Mapping[str, Seen]:
        """Return what was seen, by the paths of the values."""
        return {} if self._looks is None else self._looks.seen

    def at_file(
        self,
        file: SourceFile,
        open_pieces: Callable[[], Generator[bytes]],
        decoder: Decoder,
        share: float,
        channel: ProgressChannel,
    ) -> None:
        """Look at the first part of a file. What is wrong with it is told when it is read.

        Where a block of lines has brought nothing new, the one after it is passed over. Nothing of
        this counts as work done: all of it is read again.
        """
        part = file.part
        enough = share * (file.to_read if part is None else part.end - part.start)
        before = channel.progress.bytes_read
        with suppress(LakeError), closing(open_pieces()) as pieces:
            is_new = True
            for block in decoder.blocks(pieces, file.from_start, file.form.skip):
                is_new = not is_new or self._paths().at_lines(block)
                if channel.progress.bytes_read - before >= enough:
                    break

    def begin(self) -> None:
        """Begin with another file: what was seen in the last one counts."""
        self._before = None

    def at_rescued(self, decoded: Decoded) -> None:
        """Look at values that are to get a column."""
        if self._adds and decoded.rescued:
            looks = self._paths()
            if self._before is None:
                self._before = dict(looks.seen), looks.rows
            looks.at_rescued(decoded.batch[RESCUED].to_pylist())

    def forget(self) -> None:
        """Forget what was seen in the last file: it failed, and none of its rows are in."""
        if self._looks is not None and self._before is not None:
            self._looks.seen, self._looks.rows = self._before
        self._before = None

    def _paths(self) -> "Looks":
        if self._looks is None:
            # It brings a compiler along, as the decoder does. Only who looks pays for it.
            from blizzard.worker.ndjson.look.paths import Looks  # noqa: PLC0415

            self._looks = Looks()
        return self._looks
