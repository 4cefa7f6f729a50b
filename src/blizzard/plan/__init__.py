"""Divide source files into work units, and decide when a batch or a compaction begins."""
