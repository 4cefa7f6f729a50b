"""What machines measure: OpenTelemetry's logs as JSON, and devices that report their readings."""

from random import Random
from typing import Any

from tests.support.real_data.kind import (
    Kind,
    Record,
    as_lines,
    hexadecimal,
    is_one_in,
    moment,
    uuid,
    word,
)


def otel_logs(seed: int, size: int) -> list[Record]:
    """Return batches as the file exporter of the collector writes them, one to a line."""
    random = Random(seed)
    return [
        {"resourceLogs": [_resource(random) for _ in range(random.choice([1, 1, 2]))]}
        for _ in range(size)
    ]


def _resource(random: Random) -> Record:
    return {
        "resource": {
            "attributes": [
                _attribute("service.name", random.choice(["cart", "checkout"])),
                _attribute("process.pid", random.randrange(10**5)),
                _attribute("process.command_args", ["node", "--max-old", 512]),
            ]
        },
        "scopeLogs": [
            {
                "scope": {} if is_one_in(random, 3) else {"name": "app", "version": "1.2.0"},
                "logRecords": [_log(random) for _ in range(random.randrange(1, 4))],
            }
        ],
        "schemaUrl": "https://opentelemetry.io/schemas/1.24.0",
    }


def _log(random: Random) -> Record:
    nanoseconds = int(moment(random).timestamp()) * 10**9 + random.randrange(10**9)
    is_traced = is_one_in(random, 2)
    body: Any = f"charged {random.randrange(99)}\u20ac"
    if is_one_in(random, 4):
        body = {"event": "charged", "amount": 3.5, "retries": [1, 2]}
    log: Record = {
        "timeUnixNano": str(nanoseconds),
        "observedTimeUnixNano": str(nanoseconds + 1001),
        "severityNumber": random.choice([5, 9, 17]),
        "severityText": random.choice(["DEBUG", "INFO", "ERROR"]),
        "body": _any(body),
        "attributes": [
            _attribute(random.choice(["http.route", "user.id"]), f"/{word(random, 4)}"),
            _attribute("http.status_code", random.choice([200, 500])),
            _attribute("sampled", is_one_in(random, 2)),
            _attribute("took", random.choice([0.25, 3.0])),
        ][: random.randrange(5)],
        "traceId": hexadecimal(random, 32) if is_traced else "",
        "spanId": hexadecimal(random, 16) if is_traced else "",
    }
    if is_one_in(random, 5):
        log["droppedAttributesCount"] = random.randrange(1, 9)
    return log


def _attribute(key: str, value: Any) -> Record:
    return {"key": key, "value": _any(value)}


def _any(value: Any) -> Record:
    """Write a value of any type in Protobuf's JSON: 64-bit integers are strings."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": int(value) if value.is_integer() else value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [_any(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": [_attribute(k, v) for k, v in value.items()]}}
    raise TypeError(value)


def device_readings(seed: int, size: int) -> list[Record]:
    """Return reports of devices: epochs in milliseconds, a sensor's name as a key, new fields."""
    random = Random(seed)
    sensors = [f"{kind}_{hexadecimal(random, 4)}" for kind in ("t", "h", "p") * 40]
    return [_report(random, number / size, sensors) for number in range(size)]


def _report(random: Random, progress: float, sensors: list[str]) -> Record:
    at = int(moment(random).timestamp() * 1000)
    report: Record = {
        "deviceId": f"dev-{random.randrange(200):04}",
        "ts": at,
        "seq": random.randrange(2**32),
        "fw": random.choice(["1.9.0", "2.0.1"]),
        "battery": random.choice([100, 87, 55.5]),
        "rssi": -random.randrange(30, 110),
        # A first firmware reports whole degrees, a later one tenths.
        "readings": {
            name: random.randrange(-20, 40) if progress < 0.3 else random.randrange(-200, 400) / 10
            for name in random.sample(sensors, random.randrange(1, 8))
        },
        "gps": random.choice([None, {"lat": 52.5, "lon": 13, "fix": True}, {"fix": False}]),
        "status": random.choice(["ok", "ok", 0, "E-17"]),
    }
    if progress > 0.5 and is_one_in(random, 3):
        report["diag"] = {"uptime_s": random.randrange(10**7), "heap": [1024, 512]}
    if progress > 0.8:
        report["boot_id"] = uuid(random)
        report["ts_received"] = at + random.randrange(2000)
    if is_one_in(random, 40):
        report[f"x_{word(random, 3)}"] = random.choice([1, "on", [1]])
    return report


OTEL_LOGS = Kind(
    name="opentelemetry logs",
    records=otel_logs,
    written=as_lines("logs-2024-05-10T00.json", "logs.json"),
)
DEVICE_READINGS = Kind(
    name="device readings",
    records=device_readings,
    written=as_lines("part-0000.json.gz", "part-0001.json.gz", "part-0002.json.gz"),
)
