"""The commands under `blizzard journal`."""
