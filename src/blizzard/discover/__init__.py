"""List the source files, and decide which of them to read."""
