"""Questions about the files of a pipeline, answered from journal, log and sources. Read-only."""
