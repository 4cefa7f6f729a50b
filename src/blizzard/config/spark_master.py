"""What the address of a Spark master says of where executors run. Pure.

Executors on this machine see its disks and its loopback; others do not, and what they would find
there by the same name is their own.
"""

import re
from urllib.parse import urlsplit

HERE = re.compile(r"local(-cluster)?(\[.*\])?")
LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|\[?::1\]?", re.IGNORECASE)


def runs_in_this_process(master: str) -> bool:
    """Whether Spark runs its tasks from here, with no cluster."""
    return HERE.fullmatch(master) is not None


def stays_on_this_machine(master: str) -> bool:
    """Whether executors can only be on this machine: no other can reach such a master."""
    if runs_in_this_process(master):
        return True
    scheme, _, rest = master.partition("://")
    return scheme == "spark" and all(leads_to_loopback(f"//{each}") for each in rest.split(","))


def leads_to_loopback(url: str) -> bool:
    """Whether a URL is a loopback address; one that cannot be parsed is not."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether an address means the machine that uses it."""
    return LOOPBACK.fullmatch(host) is not None


def unreachable_driver(master: str, host: str) -> str | None:
    """Return what is wrong with the address at which executors look for the driver, if anything."""
    if stays_on_this_machine(master) or not is_loopback(host):
        return None
    return (
        f"spark.conf: spark.driver.host is {host}, so executors of {master} would look for the "
        "driver on their own machines; set it to an address of this machine that they can reach"
    )
