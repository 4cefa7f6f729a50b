"""What waits for its commit: journals, pending metas."""
