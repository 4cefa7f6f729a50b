"""Lines of NDJSON to Arrow batches."""
