"""The only door to pyspark."""
