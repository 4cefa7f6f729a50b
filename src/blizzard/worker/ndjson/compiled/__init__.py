"""The fast path: lines scanned by compiled code, a block at a time."""
