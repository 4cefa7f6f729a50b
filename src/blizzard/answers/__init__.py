"""Answers about a pipeline's files, from its journal, log and sources. Read-only."""
