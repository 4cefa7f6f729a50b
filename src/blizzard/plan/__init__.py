"""Source files to work units, and when a batch begins. Pure."""
