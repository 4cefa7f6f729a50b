"""Convert a folder of Parquet files to a Delta table; no file is moved or rewritten."""
