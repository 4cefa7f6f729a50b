"""In a bucket, files of a table in a folder below another are told from its own."""

from penguin.upkeep.vacuum import NestedTables
from tests.support.s3 import store


def test_files_of_a_table_in_a_folder_below_are_told_apart(s3, bucket):
    opened = store(s3, f"s3://{bucket}/table")
    for path in ("a/00.parquet", "a/_delta_log/0.json", "a/b=1/x.parquet", "ab/y.parquet"):
        opened.create(path, b"x")
    nested = NestedTables(store=opened)
    asked = ("a/00.parquet", "a/b=1/x.parquet", "ab/y.parquet", "root.parquet")
    for _ in range(2):
        assert nested.below(asked) == {"a/00.parquet", "a/b=1/x.parquet"}
