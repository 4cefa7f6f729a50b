"""The work of a task: download, decompress, parse, write Parquet files and upload them."""
