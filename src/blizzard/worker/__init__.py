"""What happens inside a task: download, decompress, parse, roll Parquet, upload."""
