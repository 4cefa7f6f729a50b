"""How much of one line is read."""

# Far below what Python's own parser can take, so that the answer never depends on the caller.
MAX_DEPTH = 500


MAX_LINE_BYTES = 128 << 20
