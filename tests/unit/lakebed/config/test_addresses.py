"""Which program serves its metrics where, and that two of one file can do so at once."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

import blizzard.config.load
import penguin.config.load
from lakebed.errors import ConfigInvalid
from lakebed.telemetry.observed import observed
from tests.support.ports import reserved_pair
from tests.support.scrape import Pages

PIPELINE = {
    "source": {"path": "/in"},
    "sink": {"path": "/table"},
    "schema": {"fields": [{"name": "id", "type": "string"}]},
}
INLINE = {**PIPELINE, "sink": {"path": "/table", "commit": "inline"}}
TABLES = {"tables": {"events": {"table_uri": "/table"}}}
FREE = "0.0.0.0:0"


def addresses(tmp_path: Path, document: dict[str, Any], **metrics: object) -> dict[str, str | None]:
    """Return the address of each program that can use a document."""
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump({**document, "metrics": {"enabled": True, **metrics}}))
    found: dict[str, str | None] = {}
    if "source" in document:
        found["blizzard"] = blizzard.config.load.load([file], [], {}).metrics_address
    if "tables" in document:
        found["penguin"] = penguin.config.load.load([file], [], {}).metrics_address
    return found


BOTH = {**PIPELINE, **TABLES}


@pytest.mark.parametrize(
    ("document", "metrics", "expected"),
    [
        (BOTH, {}, ("127.0.0.1:9090", "127.0.0.1:9091")),
        (BOTH, {"address": "0.0.0.0:9091"}, ("0.0.0.0:9090", "0.0.0.0:9091")),
        (BOTH, {"address": "[::1]:8001"}, ("[::1]:8000", "[::1]:8001")),
        (BOTH, {"address": FREE}, (FREE, FREE)),
        (BOTH, {"blizzard_address": "h:1"}, ("h:1", "127.0.0.1:9091")),
        (BOTH, {"address": "h:5", "blizzard_address": "h:9"}, ("h:9", "h:5")),
        (BOTH, {"address": "h:5", "penguin_address": "h:9"}, ("h:4", "h:9")),
        (BOTH, {"address": "h:1", "blizzard_address": "h:2"}, ("h:2", "h:1")),
        ({**INLINE, **TABLES}, {"address": "0.0.0.0:9090"}, ("0.0.0.0:9090", "0.0.0.0:9090")),
        (PIPELINE, {"address": "0.0.0.0:9090"}, ("0.0.0.0:9090",)),
        (TABLES, {"address": "0.0.0.0:9091"}, ("0.0.0.0:9091",)),
        (TABLES, {"penguin_address": "h:7", "address": "h:8"}, ("h:7",)),
    ],
)
def test_a_port_is_known_before_either_program_runs(
    tmp_path: Path, document: dict[str, Any], metrics: dict[str, str], expected: tuple[str, ...]
):
    """HOLES W31: one file for both programs gives each a port of its own, by rule."""
    assert tuple(addresses(tmp_path, document, **metrics).values()) == expected


@pytest.mark.parametrize(
    ("metrics", "fault"),
    [
        ({"address": "h:1"}, "metrics.address: is penguin's address, and leaves no port below it"),
        (
            {"blizzard_address": "h:5", "penguin_address": "h:5"},
            "metrics.blizzard_address: is the same as metrics.penguin_address",
        ),
        (
            {"blizzard_address": "127.0.0.1:9091"},
            "metrics.blizzard_address: is the same as metrics.penguin_address",
        ),
        ({"address": "h:5", "blizzard_address": "h:5"}, "metrics.blizzard_address: is the same"),
        ({"blizzard_address": "nowhere"}, "metrics.blizzard_address: must be host:port"),
    ],
)
def test_two_programs_that_could_not_both_listen_are_told_at_the_door(
    tmp_path: Path, metrics: dict[str, str], fault: str
):
    """HOLES W31: whichever program reads the file, it says so."""
    file = tmp_path / "both.yaml"
    file.write_text(yaml.safe_dump({**BOTH, "metrics": metrics}))
    for program in (blizzard.config.load, penguin.config.load):
        with pytest.raises(ConfigInvalid) as invalid:
            program.load([file], [], {})
        assert str(invalid.value).startswith(fault)


def test_both_programs_of_one_file_serve_at_the_same_time(tmp_path: Path):
    """HOLES W31: the second to start does not die."""
    with reserved_pair() as (lower, upper), ExitStack() as stack:
        found = addresses(tmp_path, BOTH, address=f"127.0.0.1:{upper}")
        assert found == {"blizzard": f"127.0.0.1:{lower}", "penguin": f"127.0.0.1:{upper}"}
        for address in found.values():
            pages = Pages()
            stack.enter_context(
                observed(pages.log, address=address, specs=(), parts={}, seconds=lambda: 0.0)
            )
            assert pages.url == f"http://{address}"
            assert pages.health()[0] == 200


def test_a_port_that_somebody_else_has_is_told_with_the_key_to_change(tmp_path: Path):
    """HOLES W31: also where no key names it, because the rule does."""
    file = tmp_path / "both.yaml"
    metrics = {"enabled": True, "address": "0.0.0.0:9091"}
    file.write_text(yaml.safe_dump({**BOTH, "metrics": metrics}))
    assert blizzard.config.load.load([file], [], {}).metrics_key == "metrics.blizzard_address"
    assert penguin.config.load.load([file], [], {}).metrics_key == "metrics.address"
