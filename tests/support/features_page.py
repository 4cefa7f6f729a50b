"""docs/table-features.md, made from the table of features that decides what is written."""

from pathlib import Path

from lakebed.deltalog.table_features import FEATURES, TableFeature

PAGE = Path(__file__).parents[2] / "docs" / "table-features.md"
HEAD = """\
# Tables of others: which features penguin writes

A Delta table says what it requires of its writers: its *table features*, and its properties.
penguin writes its commits itself, by the rules of the Delta protocol. For each feature it does
what the feature asks, or it refuses the table by name before anything is written
(`table_unsupported`). A feature that is not on this page is refused, too.

This page is made from the code that decides it (`make features`), and `make interop` tries the
features on tables that Spark made.

- **is written**: whether entries are committed to such a table, and files of it replaced, as
  `blizzard retract`, `erase`, `compact` and `schema promote` do.
- **shows rows**: whether the Delta library reads the rows of such a table, for the commands that
  show some. Spark reads them in any case.

The checkpoints that penguin writes keep whatever these features put into the log: ids of rows,
domains of metadata, clustering. So a table that another engine made gets them, too.

| feature | is written | shows rows | what to know, or to do |
|---|---|---|---|
"""


def features_page() -> str:
    """Write the page."""
    return HEAD + "".join(map(_line, FEATURES))


def _line(feature: TableFeature) -> str:
    shown = (feature.appends, feature.reads)
    cells = " | ".join("yes" if one else "no" for one in shown)
    return f"| `{feature.name}` | {cells} | {feature.note} |\n"


if __name__ == "__main__":
    PAGE.write_text(features_page())
