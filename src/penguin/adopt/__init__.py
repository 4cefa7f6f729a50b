"""A folder of Parquet files becomes a Delta table; nothing is moved or rewritten."""
