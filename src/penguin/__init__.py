"""Parquet in, Delta commits out. No Spark, no JVM."""
