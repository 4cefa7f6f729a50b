"""The formats of entries: a program that does not know one must not read such an entry at all."""

FORMAT = 1
FORMAT_WITH_HOLES = 2
"""Of an entry that names a file which was read in places. A program that knows format 1 only would
take those lines for the first ones of the file, so it must not read such an entry at all."""
FORMAT_WITH_FORMS = 3
"""Of an entry that counts filtered records, or the records of a document that was read in part, or
that puts data files in the place of others. A program of before would find books that do not
balance, take the records for lines, or pass the replaced files over."""
FORMAT_WITH_QUARANTINE = 4
"""Of an entry that names quarantine files, which the `gc` of a program of before would delete."""
FORMAT_WITH_REMOVAL = 5
"""Of an entry that takes rows out of the table. A program of before would put files in the place of
others only, and would not know that sources have no row in the table any more, or others."""
FORMAT_WITH_MERGES = 6
"""Of an entry that puts data files in the place of several. A program of before would commit
nothing of it, and would go on as if the old files still had its rows."""
FORMATS = (
    FORMAT, FORMAT_WITH_HOLES, FORMAT_WITH_FORMS, FORMAT_WITH_QUARANTINE, FORMAT_WITH_REMOVAL,
    FORMAT_WITH_MERGES,
)  # fmt: skip
