"""Rules for listings: which names to list, and which to use. Pure."""
