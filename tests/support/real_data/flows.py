"""What networks tell: VPC flow logs as JSON, and Suricata's eve.json."""

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
)


def vpc_flows(seed: int, size: int) -> list[Record]:
    """Return flow logs: every number is a string, and what is missing is a dash."""
    random = Random(seed)
    return [_flow(random) for _ in range(size)]


def _flow(random: Random) -> Record:
    start = int(moment(random).timestamp())
    is_empty = is_one_in(random, 6)

    def seen(value: object) -> str:
        return "-" if is_empty else str(value)

    return {
        "version": "5",
        "account-id": "123456789012",
        "interface-id": f"eni-{hexadecimal(random, 17)}",
        "srcaddr": seen(ipv4(random)),
        "dstaddr": seen(ipv4(random)),
        "srcport": seen(random.randrange(65536)),
        "dstport": seen(random.choice([443, 80, 53])),
        "protocol": seen(random.choice([6, 17])),
        "packets": seen(random.randrange(1, 10**6)),
        "bytes": seen(random.randrange(40, 10**12)),
        "start": str(start),
        "end": str(start + 60),
        "action": seen(random.choice(["ACCEPT", "REJECT"])),
        "log-status": "NODATA" if is_empty else "OK",
        "tcp-flags": seen(random.choice([2, 19])),
        "pkt-src-aws-service": "-",
        "flow-direction": seen(random.choice(["ingress", "egress"])),
        "traffic-path": random.choice(["-", "8"]),
    }


def suricata(seed: int, size: int) -> list[Record]:
    """Return events of Suricata: times without a colon in their zone, a part for each protocol."""
    random = Random(seed)
    return [_eve(random) for _ in range(size)]


def _eve(random: Random) -> Record:
    at = moment(random)
    event: Record = {
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06}+0000",
        "flow_id": random.randrange(2**52, 2**63),
        "in_iface": "eth0",
        "event_type": random.choice(["alert", "dns", "http", "tls", "flow", "stats"]),
    }
    if event["event_type"] == "stats":
        return event | {"stats": _stats(random)}
    event |= {
        "src_ip": ipv4(random),
        "src_port": random.randrange(65536),
        "dest_ip": ipv4(random),
        "dest_port": random.choice([80, 443, 53]),
        "proto": random.choice(["TCP", "UDP"]),
    }
    if is_one_in(random, 4):
        event["vlan"] = [random.randrange(1, 4095)]
    return event | EVENTS[event["event_type"]](random)


def _stats(random: Random) -> Record:
    packets = random.randrange(2**40)
    return {
        "uptime": random.randrange(10**6),
        "capture": {"kernel_packets": packets, "kernel_drops": packets // 1000},
        "detect": {"engines": [{"id": 0, "rules_loaded": 30_000, "rules_failed": 0}]},
        "app_layer": {"flow": {name: random.randrange(99) for name in ("http", "tls", "dns_udp")}},
    }


def _alert(random: Random) -> Record:
    metadata = {"created_at": ["2010_09_23"], "updated_at": ["2019_07_26"]}
    return {
        "tx_id": random.randrange(4),
        "alert": {
            "action": "allowed",
            "gid": 1,
            "signature_id": random.randrange(2_000_000, 2_900_000),
            "rev": 7,
            "signature": "ET POLICY curl User-Agent",
            "category": random.choice(["", "Attempted Information Leak"]),
            "severity": random.choice([1, 2, 3]),
            "metadata": metadata
            | ({"mitre_tactic_id": ["TA0011"]} if is_one_in(random, 3) else {}),
        },
        "payload": "R0VUIC8gSFRUUC8xLjENCg==",
        "payload_printable": "GET / HTTP/1.1\r\n..\u0000.",
        "flow": _counts(random),
    }


def _counts(random: Random) -> Record:
    at = moment(random)
    return {
        "pkts_toserver": random.randrange(99),
        "pkts_toclient": random.randrange(99),
        "bytes_toserver": random.randrange(10**6),
        "bytes_toclient": random.randrange(10**6),
        "start": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06}+0000",
    }


def _dns(random: Random) -> Record:
    answer = {"rrname": "example.com", "rrtype": "A", "ttl": 300, "rdata": ipv4(random)}
    soa = {"mname": "ns.example.com", "serial": random.randrange(2**32)}
    if is_one_in(random, 2):
        return {"dns": {"type": "query", "id": random.randrange(65536), "rrname": "example.com"}}
    return {
        "dns": {
            "version": 2,
            "type": "answer",
            "id": random.randrange(65536),
            "flags": "8180",
            "qr": True,
            "rcode": random.choice(["NOERROR", "NXDOMAIN"]),
            "answers": [answer],
            "grouped": {"A": [ipv4(random)], "CNAME": ["www.example.com"]},
            "authorities": [{"rrname": "example.com", "rrtype": "SOA", "soa": soa}],
        }
    }


def _http(random: Random) -> Record:
    return {
        "http": {
            "hostname": f"{word(random, 6)}.example.com",
            "url": "/?q=%C3%A9&x=\\",
            "http_method": "GET",
            "protocol": "HTTP/1.1",
            "status": random.choice([200, 301, 404]),
            "length": random.randrange(10**5),
            "request_headers": [{"name": "Accept", "value": "*/*"}],
        }
    }


def _tls(random: Random) -> Record:
    return {
        "tls": {
            "subject": "CN=example.com",
            "fingerprint": ":".join(hexadecimal(random, 2) for _ in range(20)),
            "version": "TLS 1.2",
            "notbefore": "2024-01-30T00:00:00",
            "notafter": "2025-03-01T23:59:59",
            "ja3": {} if is_one_in(random, 3) else {"hash": hexadecimal(random, 32)},
        }
    }


def _flow_event(random: Random) -> Record:
    ended = {"age": random.randrange(600), "state": "closed", "alerted": is_one_in(random, 9)}
    return {"flow": _counts(random) | ended, "tcp": {"tcp_flags": "1b", "syn": True}}


EVENTS = {"alert": _alert, "dns": _dns, "http": _http, "tls": _tls, "flow": _flow_event}

VPC_FLOWS = Kind(
    name="vpc flow logs",
    records=vpc_flows,
    written=as_lines("flow-00.json", "flow-01.json.gz"),
)
SURICATA = Kind(
    name="suricata eve",
    records=suricata,
    written=as_lines("eve.json"),
)
