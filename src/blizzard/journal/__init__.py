"""The journal: reading it, appending to it, and the lease that allows it."""
