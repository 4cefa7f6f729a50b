"""The files of the change data feed, which a log names in the versions that made them alone.

No checkpoint has them, and their names say nothing: they are below `_change_data`, or below a
random prefix in tables with column mapping.
"""

from datetime import datetime
from urllib.parse import unquote

from lakebed.deltalog.file import lines_of
from lakebed.deltalog.file_names import naming
from lakebed.documents.reading import parse_json
from lakebed.layout import DELTA_LOG, log_version, log_version_number
from lakebed.storage.ahead import ahead
from lakebed.storage.store import Reader

WORD = b'"cdc"'


def change_files(store: Reader, wanted: frozenset[str]) -> dict[str, datetime]:
    """Return the store's time of the version that names each of some files as one of changes.

    Versions are read from the newest on until all are found, or as far back as the log reaches.
    """
    times = {
        number: facts.modified
        for facts in store.level(DELTA_LOG)[1]
        if (number := log_version_number(facts.path)) is not None
    }
    named = naming(store)
    found: dict[str, datetime] = {}
    newest_first = sorted(times, reverse=True)
    for number, body in ahead(lambda each: store.get(log_version(each)), newest_first):
        # One that was cleaned up meanwhile tells nothing any more.
        for line in () if body is None or WORD not in body else body.splitlines():
            if WORD not in line:
                continue
            with lines_of(store.describe(log_version(number))):
                action = parse_json(line)
            match action:
                case {"cdc": {"path": str(path)}} if (name := named(unquote(path))) in wanted:
                    found.setdefault(name, times[number])
        if len(found) == len(wanted):
            break
    return found
