"""The table directory that blizzard and penguin share: its names, documents, types and rules."""
