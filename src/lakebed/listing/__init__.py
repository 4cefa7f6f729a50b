"""Which names to list and which of them to take. Pure."""
