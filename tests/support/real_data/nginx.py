"""An nginx access log in JSON: whatever `log_format` has is a string."""

from random import Random

from tests.support.real_data.kind import (
    Kind,
    Record,
    as_lines,
    hexadecimal,
    ipv4,
    is_one_in,
    moment,
    word,
    zulu,
)


def records(seed: int, size: int) -> list[Record]:
    random = Random(seed)
    return [_access(random) for _ in range(size)]


def _access(random: Random) -> Record:
    at = moment(random)
    is_cached = is_one_in(random, 4)
    took = f"{random.randrange(3000) / 1000:.3f}"
    # With a retry there is one value for each upstream, with commas between them.
    tried = took if not is_one_in(random, 10) else f"0.001, {took}"
    return {
        "time_local": f"{at:%d/%b/%Y:%H:%M:%S} +0000",
        "time_iso8601": zulu(at).replace("Z", "+00:00"),
        "msec": f"{at.timestamp():.3f}",
        "remote_addr": random.choice([ipv4(random), "2001:db8::1"]),
        "remote_user": random.choice(["", "-", "ana"]),
        "request": f"GET /{word(random, 5)}?q=caf\u00e9 HTTP/1.1",
        "request_method": random.choice(["GET", "POST", ""]),
        "status": str(random.choice([200, 200, 301, 404, 499, 502])),
        "body_bytes_sent": str(random.randrange(10**6)),
        "request_time": took,
        "upstream_addr": "-" if is_cached else "10.0.0.7:8080",
        "upstream_response_time": "-" if is_cached else tried,
        "upstream_status": "" if is_cached else "200",
        "http_referrer": random.choice(["", "-", "https://example.com/?a=b"]),
        "http_user_agent": "Mozilla/5.0 (X11; Linux x86_64)",
        "http_x_forwarded_for": random.choice(["-", ipv4(random), f"{ipv4(random)}, 10.0.0.1"]),
        "request_id": hexadecimal(random, 32),
        "gzip_ratio": random.choice(["-", "3.21"]),
        "ssl_protocol": random.choice(["TLSv1.3", ""]),
    }


NGINX = Kind(
    name="nginx access",
    records=records,
    written=as_lines("access.json.log", "access.json.log-20240511.gz"),
)
