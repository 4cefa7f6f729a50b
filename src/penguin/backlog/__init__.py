"""What waits to be committed: journal entries and pending metas."""
