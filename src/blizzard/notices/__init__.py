"""Notifications of new source files: received from a queue, checked, and deleted when settled."""
