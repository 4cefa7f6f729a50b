"""A table of twenty columns, and the names that its source files have."""

from datetime import UTC, datetime, timedelta

from lakebed.columns.schema import Field, Schema
from lakebed.documents.records import SourceRecord
from lakebed.types import FieldType
from tests.support.tables import Row

WIDE = Schema(
    (
        Field(name="event_id", type=FieldType.STRING, nullable=False),
        Field(name="event_time", type=FieldType.TIMESTAMP, nullable=False),
        Field(name="received_at", type=FieldType.TIMESTAMP),
        Field(name="user_id", type=FieldType.INT64),
        Field(name="session_id", type=FieldType.STRING),
        Field(name="event_name", type=FieldType.STRING),
        Field(name="page_url", type=FieldType.STRING),
        Field(name="referrer", type=FieldType.STRING),
        Field(name="country", type=FieldType.STRING),
        Field(name="device", type=FieldType.STRING),
        Field(name="app_version", type=FieldType.STRING),
        Field(name="is_logged_in", type=FieldType.BOOLEAN),
        Field(name="price", type=FieldType.FLOAT64),
        Field(name="discount", type=FieldType.FLOAT64),
        Field(name="quantity", type=FieldType.INT32),
        Field(name="duration_ms", type=FieldType.INT64),
        Field(name="bytes_sent", type=FieldType.INT64),
        Field(name="status", type=FieldType.INT32),
        Field(name="experiment", type=FieldType.STRING),
        Field(name="date", type=FieldType.DATE),
    )
)
"""Twenty columns, as those of a web shop's events."""


def a_row(number: int) -> Row:
    """Make a row with values as long as such values are."""
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=137 * number)
    return {
        "event_id": f"{number:08x}-7f3a-4c1e-9b52-{number * 7919:012x}",
        "event_time": at,
        "received_at": at + timedelta(milliseconds=900),
        "user_id": 10_000_000_000 + number * 7,
        "session_id": f"s-{number * 31:016x}",
        "event_name": ("add_to_cart", "page_view", "purchase")[number % 3],
        "page_url": f"https://shop.example.com/catalogue/item/{number}",
        "referrer": f"https://search.example.org/?q={number}",
        "country": ("AR", "DE", "US")[number % 3],
        "device": ("desktop", "phone", "tablet")[number % 3],
        "app_version": f"4.{number % 17}.{number % 5}",
        "is_logged_in": number % 2 == 0,
        "price": number * 0.01,
        "discount": None if number % 4 else 0.15,
        "quantity": number % 9,
        "duration_ms": number * 13 % 90_000,
        "bytes_sent": number * 1_013,
        "status": 200,
        "experiment": f"checkout-{number % 4}",
        "date": "2026-01-01",
    }


def source_path(number: int) -> str:
    """Name a source file as collectors do: day, hour, host, number."""
    hour = number // 10_000 % 24
    return f"date=2026-01-01/hour={hour:02d}/collector-eu-7f9c2b6d4f-x2m8q-{number:08d}.ndjson.gz"


def source_record(number: int) -> SourceRecord:
    """Enter a source file of usual size into the books."""
    etag = f'"{number:032x}"'
    return SourceRecord(
        source="default", path=source_path(number), size=16_777_216, etag=etag, lines=250_000,
        rows=250_000, unit="17",
    )  # fmt: skip
