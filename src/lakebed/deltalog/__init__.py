"""Reading a Delta log: its objects, versions, checkpoints, and what they add up to."""
