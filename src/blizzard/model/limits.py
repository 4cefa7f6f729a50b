"""How much of one line is taken in."""

# Far below what Python's own parser bears, so that the answer never depends on who is calling.
MAX_DEPTH = 500


MAX_LINE_BYTES = 128 << 20
