"""What machines measure: devices that report their readings."""

from random import Random

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


DEVICE_READINGS = Kind(
    name="device readings",
    records=device_readings,
    written=as_lines("part-0000.json.gz", "part-0001.json.gz", "part-0002.json.gz"),
)
