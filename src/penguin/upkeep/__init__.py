"""Upkeep of a table on an operator's order: `vacuum`, `fsck`."""
