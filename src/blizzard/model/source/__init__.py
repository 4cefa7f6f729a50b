"""Source files: their identity, byte ranges and form."""
