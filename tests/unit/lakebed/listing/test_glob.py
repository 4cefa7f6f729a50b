import pytest

from lakebed.listing.glob import matcher


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.parquet", "a.parquet", True),
        ("*.parquet", "date=2024-01-01/a.parquet", True),
        ("*.parquet", "a.parquet.tmp", False),
        ("part-*", "x/part-0.parquet", True),
        ("part-*", "part-x/a.parquet", False),
        ("raw/*.parquet", "raw/a.parquet", True),
        ("raw/*.parquet", "raw/deep/a.parquet", False),
        ("raw/**/*.parquet", "raw/a.parquet", True),
        ("raw/**/*.parquet", "raw/deep/er/a.parquet", True),
        ("/raw/**", "raw/deep/a", True),
        ("raw/**", "draw/a", False),
        ("?.parquet", "ab.parquet", False),
        ("[ab].parquet", "b.parquet", True),
        ("[!ab].parquet", "b.parquet", False),
        ("[!ab].parquet", "c.parquet", True),
        ("a.parquet", "aXparquet", False),
        ("a+(b).parquet", "a+(b).parquet", True),
        ("[^ab].parquet", "b.parquet", False),
        ("[^ab].parquet", "c.parquet", True),
        ("a[b.parquet", "a[b.parquet", True),
        ("raw/[a/b].parquet", "raw/[a/b].parquet", True),
    ],
)
def test_a_pattern_means_what_a_shell_would_take_it_for(pattern, path, fits):
    assert matcher(pattern)(path) is fits
