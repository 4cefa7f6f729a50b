"""Rows into data files: divided, written, rolled and uploaded."""
