"""A table whose schema section a test chooses, and records of any shape that land for it."""

import json
from pathlib import Path
from typing import Any

import yaml
from deltalake import DeltaTable

from tests.support.desk import Desk

ID = {"name": "id", "type": "int64"}


class OpenTable(Desk):
    """A table whose schema section a test chooses."""

    def __init__(
        self,
        folder: Path,
        schema: dict[str, Any] | None,
        *,
        error_handling: dict[str, Any] | None = None,
        **sink: Any,
    ) -> None:
        super().__init__(folder)
        document = {
            "source": {"path": str(self.landing.folder)},
            "sink": {"path": str(self.table), **sink},
            "tables": {"t": {"table_uri": str(self.table)}},
        }
        if schema is not None:
            document["schema"] = schema
        if error_handling is not None:
            document["error_handling"] = error_handling
        self.file.write_text(yaml.safe_dump(document))
        self.landing.folder.mkdir(exist_ok=True)

    def configure(self, schema: dict[str, Any]) -> None:
        """Replace the schema section."""
        document = yaml.safe_load(self.file.read_text())
        self.file.write_text(yaml.safe_dump(document | {"schema": schema}))

    def rows(self) -> list[dict[str, Any]]:
        found = DeltaTable(str(self.table)).to_pyarrow_table().to_pylist()
        return sorted(found, key=str)

    @property
    def types(self) -> dict[str, Any]:
        schema = json.loads(DeltaTable(str(self.table)).schema().to_json())
        return {one["name"]: one["type"] for one in schema["fields"]}
