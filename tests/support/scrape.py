"""A program's pages, asked for over the loopback as Prometheus and an operator would."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from lakebed.telemetry.events import Event, MetricsServed


@dataclass
class Pages:
    """Learns the address from the log, as an operator would, and asks."""

    url: str = ""
    token: str = ""
    trusted: ssl.SSLContext | None = None
    events: list[Event] = field(default_factory=list)

    def log(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, MetricsServed):
            self.url = event.url

    def get(
        self, path: str, *, method: str = "GET", accept: str = "", host: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        headers = {"Accept": accept} if accept else {}
        if host:
            headers["Host"] = host
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=300, context=self.trusted) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, dict(refused.headers), refused.read()

    def health(self) -> tuple[int, dict[str, Any]]:
        status, _headers, body = self.get("/health")
        return status, json.loads(body)

    def types(self) -> dict[str, str]:
        """Return the type of each metric of ours, by the name it is written with."""
        text = self.get("/metrics")[2].decode()
        lines = [line.split() for line in text.splitlines() if line.startswith("# TYPE ")]
        return {name: kind for _, _, name, kind in lines if not name.startswith("process_")}

    def value(self, sample: str, **labels: str) -> float | None:
        """Return one sample; None where there is none."""
        text = self.get("/metrics")[2].decode()
        for family in text_string_to_metric_families(text):
            for found in family.samples:
                if found.name == sample and found.labels == labels:
                    return found.value
        return None
