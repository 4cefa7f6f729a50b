"""docs/table-features.md, made from the table of features that decides what is written."""

from pathlib import Path

from lakebed.deltalog.table_features import FEATURES, TableFeature

PAGE = Path(__file__).parents[2] / "docs" / "table-features.md"
HEAD = """\
# Table features of other engines

*Table features* and properties of a Delta table set requirements for its writers. penguin writes
its commits itself, by the rules of the Delta protocol, to tables with the features on this page:
`blizzard retract`, `erase`, `compact` and `schema promote` replace files of them. A table with
any other feature, such as identity columns, Iceberg compatibility or the `variant` type, is
refused before anything is written (`table_unsupported`): write to it with the engine that made
it, or give blizzard a table of its own. The page is generated from the code (`make features`),
and `make interop` tries the features on tables of Spark.

**Shows rows**: the Delta library reads the rows of such a table, for the commands that show some.
Spark reads them in any case.

penguin's checkpoints keep everything that these features put into the log: ids of rows, domains
of metadata, clustering.

| feature | shows rows | what to know |
|---|---|---|
"""


def features_page() -> str:
    """Write the page."""
    return HEAD + "".join(map(_line, FEATURES))


def _line(feature: TableFeature) -> str:
    return f"| `{feature.name}` | {'yes' if feature.reads else 'no'} | {feature.note} |\n"


if __name__ == "__main__":
    PAGE.write_text(features_page())
