"""docs/table-features.md, made from the table of features that decides what is written."""

from pathlib import Path

from lakebed.deltalog.table_features import FEATURES, TableFeature

PAGE = Path(__file__).parents[2] / "docs" / "table-features.md"
HEAD = """\
# Table features of other engines

*Table features* and properties of a Delta table set requirements for its writers. penguin writes
its commits itself, by the rules of the Delta protocol: it supports a feature, or refuses the
table before anything is written (`table_unsupported`). Features that are not on this page are
refused, too. The page is generated from the code (`make features`), and `make interop` tries the
features on tables of Spark.

- **is written**: penguin commits to such a table, and `blizzard retract`, `erase`, `compact` and
  `schema promote` replace files of it.
- **shows rows**: the Delta library reads the rows of such a table, for the commands that show
  some. Spark reads them in any case.

penguin's checkpoints keep everything that these features put into the log: ids of rows, domains
of metadata, clustering.

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
