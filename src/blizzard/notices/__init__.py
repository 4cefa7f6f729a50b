"""Notices of new source files: read from a queue, followed by a look, and deleted when settled."""
