"""The table directory that blizzard and penguin share: names, documents, types and rules."""
