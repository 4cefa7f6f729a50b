"""The commands under `blizzard dlq`."""
