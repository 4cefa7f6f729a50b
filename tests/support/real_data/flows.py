"""VPC flow logs as JSON."""

from random import Random

from tests.support.real_data.kind import (
    Kind,
    Record,
    as_lines,
    hexadecimal,
    ipv4,
    is_one_in,
    moment,
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


VPC_FLOWS = Kind(
    name="vpc flow logs", records=vpc_flows, written=as_lines("flow-00.json", "flow-01.json.gz")
)
