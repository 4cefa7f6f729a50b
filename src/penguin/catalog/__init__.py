"""Catalogs that name tables for other engines: AWS Glue, Hive metastores."""
