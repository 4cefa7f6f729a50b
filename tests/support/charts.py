"""The Helm chart as helm renders it, kept beside the tests: these need no helm.

`make test-helm` renders it anew and compares, `make helm-renderings` writes it. Each file says of
which chart it is, so that a chart that was changed alone is found without helm.
"""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "deploy" / "helm"
KEPT = Path(__file__).parents[1] / "data" / "helm"
HELM = Path(__file__).parents[2] / ".tools" / "bin" / "helm"
KUBERNETES = "1.33.0"

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "local": (),
    "spark-application": ("blizzard.mode=sparkApplication", "data.existingClaim=disk"),
}
"""What is set in each of the renderings that are kept."""


def digest() -> str:
    """Return what changes with every file of the chart."""
    found = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        body = path.read_bytes()
        found.update(f"{path.relative_to(CHART)} {len(body)}\n".encode() + body)
    return found.hexdigest()


def rendered(name: str) -> str:
    """Return a rendering by helm, with the mark of the chart that it is of."""
    words = [word for each in SETTINGS[name] for word in ("--set", each)]
    command = [str(HELM), "template", "lake", str(CHART), "--kube-version", KUBERNETES, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"# chart {digest()}\n{done.stdout}"


def kept(name: str) -> str:
    """Return the rendering that is kept."""
    return (KEPT / f"{name}.yaml").read_text()


def documents(name: str) -> list[dict[str, Any]]:
    """Return what would be given to Kubernetes."""
    return [document for document in yaml.safe_load_all(kept(name)) if document]


def main() -> None:
    """Write all renderings."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in SETTINGS:
        (KEPT / f"{name}.yaml").write_text(rendered(name))


if __name__ == "__main__":
    main()
