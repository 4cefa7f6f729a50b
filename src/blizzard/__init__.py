"""NDJSON in, Parquet out."""
