"""The files of other programs: found, committed, left out, passed over."""

from collections.abc import Iterable

from lakebed.telemetry.events import Level
from lakebed.telemetry.measures import Count, Measure, Reading
from lakebed.units import plural
from penguin.events.backlog import TableEvent, first_of


class OthersSeen(TableEvent, level=Level.TRACE):
    """The table directory was searched for files that other programs wrote."""

    sweep: bool | None
    """Whether all folders were listed; None where none was."""
    listed: int
    waiting: int
    left_out: int
    passed_over: int = 0
    """How many Parquet files are not looked at, because of their names."""

    def sentence(self) -> str:
        """Report what is there."""
        how = {None: "nothing was", True: "all folders were", False: "new names were"}[self.sweep]
        return (
            f"{self.table}: {how} listed, {plural(self.listed, 'file')} seen; files of other "
            f"programs: {self.waiting} waiting, {self.left_out} left out, "
            f"{self.passed_over} passed over"
        )

    def measures(self) -> Iterable[Measure]:
        """Count the looks, and show what waits."""
        labels = {"table": self.table}
        if self.sweep is not None:
            kind = "sweep" if self.sweep else "poll"
            yield Count("penguin_scans_total", 1, {**labels, "kind": kind})
            yield Count("penguin_files_listed_total", self.listed, labels)
        yield Reading("penguin_other_files_waiting", self.waiting, labels)
        yield Reading("penguin_other_files_left_out", self.left_out, labels)
        yield Reading("penguin_other_files_passed_over", self.passed_over, labels)


class LateFilesCommitted(TableEvent):
    """Files were committed that a bare watermark would have lost."""

    files: int
    some: tuple[str, ...]

    def sentence(self) -> str:
        """Count them and name some."""
        return (
            f"{self.table}: {plural(self.files, 'file')} arrived later than files with "
            f"higher names in the same folder: {first_of(self.some)}"
        )

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        yield Count("penguin_late_files_total", self.files, {"table": self.table})


class FilesLeftOut(TableEvent, level=Level.WARN):
    """Files of other programs are not committed; reported once for each reason."""

    code: str
    reason: str
    paths: tuple[str, ...]

    def sentence(self) -> str:
        """Name them and the reason."""
        return f"{self.table}: not committed: {first_of(self.paths)}: {self.reason} [{self.code}]"

    def measures(self) -> Iterable[Measure]:
        """Count them."""
        labels = {"table": self.table, "code": self.code}
        yield Count("penguin_files_left_out_total", len(self.paths), labels)


class FilesPassedOver(TableEvent, level=Level.WARN):
    """A scan passes over Parquet files; reported when a sweep finds different ones than before."""

    files: int
    some: tuple[str, ...]
    reason: str

    def sentence(self) -> str:
        """Count them, name some, and say how they get in."""
        return (
            f"{self.table}: passed over {plural(self.files, 'Parquet file')}: "
            f"{first_of(self.some)}: {self.reason}"
        )


class FilterBoundsOthersOnly(TableEvent):
    """Settings that limit the search for files do not apply to journaled files; reported once."""

    keys: tuple[str, ...]
    searched: bool
    """Whether the folders are searched, for files of other programs."""

    def sentence(self) -> str:
        """Report what the settings do not do."""
        keys = " and ".join(self.keys)
        holds = (
            "limit only the search for files of other programs"
            if self.searched
            else "have no effect, since the folders of this table are not searched"
        )
        return (
            f"{self.table}: {keys}: {holds}; what blizzard has journaled is committed whole, "
            "whatever folder it is in. To leave old data out, set partition_filter on the source"
        )
