"""What a configuration may say of a table's catalog."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakebed.errors import ConfigInvalid
from lakebed.types import CatalogType
from penguin.config.load import load
from penguin.model.settings import CatalogSettings


def loaded(tmp_path: Path, name: str = "events", **catalog: Any) -> CatalogSettings:
    table = {
        "table_uri": "s3://lake/events",
        "storage_options": {"AWS_REGION": "eu-west-1"},
        "catalog": {"type": "glue", "database": "lake", **catalog},
    }
    file = tmp_path / "penguin.yaml"
    file.write_text(yaml.safe_dump({"tables": {name: table}}))
    (found,) = load([file], [], {}).tables
    assert found.catalog is not None
    return found.catalog


def test_the_name_and_the_credentials_are_those_of_the_table(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert (found.type, found.name) == (CatalogType.GLUE, "lake.events")
    assert found.options.plain() == {"AWS_REGION": "eu-west-1"}


def test_its_own_credentials_are_not_mixed_with_those_of_the_table(tmp_path: Path) -> None:
    found = loaded(tmp_path, storage_options={"AWS_PROFILE": "catalog"}, table="all_events")
    assert found.options.plain() == {"AWS_PROFILE": "catalog"}
    assert found.name == "lake.all_events"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"type": "hive"}, "thrift://host:9083"),
        ({"type": "hive", "uri": "http://x:1"}, "thrift://host:9083"),
        ({"type": "hive", "uri": "thrift://x:9083", "region": "eu"}, "belongs to type glue"),
        ({"uri": "thrift://x:9083"}, "belongs to type hive"),
        ({"database": "Lake"}, "database"),
        ({"name": "Events-1"}, "no name for a table"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, given: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        loaded(tmp_path, **given)
    assert word in str(refused.value)
