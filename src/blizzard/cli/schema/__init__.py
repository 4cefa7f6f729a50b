"""The commands under `blizzard schema`."""
