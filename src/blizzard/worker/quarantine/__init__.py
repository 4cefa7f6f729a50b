"""Quarantine files: bad lines, written beside the table and replayed."""
