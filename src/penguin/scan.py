"""A look at the data files of a table directory, for those that no journal entry names.

In the direct hand-off a file gets its final name after its entry. So the listing comes first and
the journals are read after it: what is listed and ours is then named by an entry. Whatever else
there is is another program's, or was left by an attempt that died; it is told of, and neither
committed nor deleted.
"""

from itertools import count

from lake.entry import decode_entry
from lake.layout import OURS, file_id, journal_entry, pipelines
from lake.storage import Reader


def unnamed_files(store: Reader) -> set[str]:
    """Give every `{partition}/{uuidv7}.parquet` that no entry of any pipeline names."""
    left = {facts.path for facts in store.objects() if file_id(facts.path) is not None}
    for pipeline in pipelines(store.folders(OURS)):
        for sequence in count(1):
            path = journal_entry(pipeline, sequence)
            # No more entries are read than it takes.
            body = store.get(path) if left else None
            if body is None:
                break
            left -= {file.filename for file in decode_entry(body, path).files}
    return left
