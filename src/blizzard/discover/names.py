"""What the name of a source file tells: whether it is one, its compression, its partition. Pure."""

from collections.abc import Mapping

from blizzard.discover.skip_reason import Reason
from blizzard.model.settings import SourceSettings
from blizzard.model.source.form import COMPRESSED, codec_of
from blizzard.model.source.glob import is_hidden
from lakebed.columns.schema import Field
from lakebed.errors import LakeError
from lakebed.partition import Template, check_value
from lakebed.types import Codec, Compression

RECORDS = (".ndjson", ".jsonl", ".json")
PACKED = ("", *(each.suffix for each in COMPRESSED))
SUFFIXES = tuple(record + packed for record in RECORDS for packed in PACKED)
TEMPORARY = (
    *(".tmp", ".temp", ".part", ".partial", ".crdownload", ".inprogress", ".filepart"),
    *("_COPYING_", ".swp", ".lock", "~"),
)
"""How writers end the names of files that they have not finished."""


class PartitionUnknown(LakeError, code="partition_unknown"):
    """A source file's path does not give the partition values that the template asks for."""


def why_not_ours(path: str, source: SourceSettings) -> Reason | None:
    """Return why a name is none of the source's files; None where it is one."""
    if source.pattern is not None and source.pattern.compiled().fullmatch(path) is None:
        return Reason.NOT_MATCHED
    if is_hidden(path):
        return Reason.HIDDEN
    if path.endswith(SUFFIXES) or (source.pattern is not None and source.pattern.names_file(path)):
        return None
    return Reason.TEMPORARY if path.endswith(TEMPORARY) else Reason.NOT_NDJSON


def why_not_below(folder: str, source: SourceSettings) -> Reason | None:
    """Return why no file below a folder is one of the source's; None where some may be."""
    if source.pattern is not None and not source.pattern.may_hold(folder):
        return Reason.NOT_MATCHED
    return Reason.HIDDEN if is_hidden(folder) else None


def codec_for(path: str, compression: Compression) -> Codec:
    """Go by the file's suffix unless the configuration says how the files are compressed."""
    return codec_of(path) if compression is Compression.AUTO else Codec(compression.value)


def partition_of(
    path: str, template: Template | None, fields: Mapping[str, Field]
) -> dict[str, str | None]:
    """Take the partition values from a source path, checked against their columns."""
    if template is None:
        return {}
    try:
        values = template.values(path)
    except KeyError as missing:
        raise PartitionUnknown(f"no folder {missing.args[0]}=… stands in its path") from missing
    except ValueError as broken:
        raise PartitionUnknown(f"a folder of its path cannot be decoded: {broken}") from broken
    for key, value in values.items():
        try:
            check_value(fields[key], value)
        except ValueError as wrong:
            raise PartitionUnknown(f"partition {key}: {wrong}") from wrong
    return values
