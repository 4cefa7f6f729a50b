"""Upkeep of a table by an operator's order: `vacuum`, `fsck`."""
