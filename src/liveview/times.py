"""Times as the documents have them. Pure."""

from datetime import UTC, datetime


def rfc3339(at: datetime) -> str:
    """Return a time in UTC with milliseconds, as `2026-01-02T03:04:05.678Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def of_seconds(seconds: float) -> str:
    """Return a number of seconds since the epoch as a time."""
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def of_ms(milliseconds: int | None) -> str | None:
    """Return a number of milliseconds since the epoch as a time; None where there is none."""
    return None if milliseconds is None else of_seconds(milliseconds / 1000)


def of_text(text: str | None) -> str | None:
    """Return a time that a document wrote in its own way; None where it is none."""
    try:
        return None if text is None else rfc3339(datetime.fromisoformat(text))
    except ValueError:
        return None
