"""Source formats other than NDJSON: JSON documents, split into one record per line."""
