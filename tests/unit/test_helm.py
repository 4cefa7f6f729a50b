"""The Helm chart starts the programs as they are, without rights, and lets them end in order."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import blizzard
import blizzard.config.load
import penguin.config.load
from tests.support.charts import CHART, SETTINGS, digest, documents, kept, rendered
from tests.unit.test_deploy import takes


def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_the_renderings_that_are_kept_are_of_this_chart(name: str):
    """Where this fails, the chart was changed: render it anew with `make helm-renderings`."""
    assert kept(name).splitlines()[0] == f"# chart {digest()}"


@pytest.mark.helm
@pytest.mark.parametrize("name", SETTINGS)
def test_helm_renders_what_is_kept(name: str):
    assert rendered(name) == kept(name)


def test_the_configuration_of_the_values_is_one_that_both_programs_take(tmp_path: Path):
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(values()["config"]))
    assert blizzard.config.load.load([file], [], {}).metrics_address == "0.0.0.0:9090"
    assert penguin.config.load.load([file], [], {}).metrics_address == "0.0.0.0:9091"


def test_the_containers_start_programs_with_options_that_they_know():
    text = (CHART / "templates" / "_deployment.tpl").read_text()
    (words,) = re.findall(r"^ +args: (\[.*\])$", text, re.MULTILINE)
    for program in ("blizzard", "penguin"):
        assert takes(program, yaml.safe_load(words))


def test_blizzard_has_longer_to_end_than_a_unit_takes():
    assert values()["blizzard"]["terminationGracePeriodSeconds"] >= 900


def test_the_chart_has_the_version_of_the_package():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == blizzard.__version__


def test_the_driver_of_the_operator_is_python_that_calls_what_there_is():
    text = (CHART / "templates" / "configmap.yaml").read_text()
    (body,) = re.findall(r"  main\.py: \|\n((?:    .*\n|\n)+)", text)
    code = "\n".join(line.removeprefix("    ") for line in body.splitlines())
    compile(code, "main.py", "exec")
    for name in re.findall(r"blizzard\.(\w+)", code):
        assert hasattr(blizzard, name), name


def test_a_chart_as_it_is_rendered_has_both_programs_without_rights():
    deployments = [one for one in documents("local") if one["kind"] == "Deployment"]
    assert len(deployments) == 2
    for one in deployments:
        pod = one["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["readinessProbe"]["httpGet"]["path"] == "/health"
        assert "httpGet" not in container["livenessProbe"], "a long batch is no death"
        assert one["spec"]["replicas"] == 1
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        assert mounted == {"/etc/blizzard", "/tmp"}


def test_with_the_operator_blizzard_is_a_spark_application():
    found = documents("spark-application")
    kinds = sorted(one["kind"] for one in found)
    assert kinds == [
        "ConfigMap",
        "Deployment",
        "Role",
        "RoleBinding",
        "ServiceAccount",
        "SparkApplication",
    ]
    (application,) = (one for one in found if one["kind"] == "SparkApplication")
    assert application["spec"]["mainApplicationFile"] == "local:///etc/blizzard/main.py"
    (configured,) = (one for one in found if one["kind"] == "ConfigMap")
    compile(configured["data"]["main.py"], "main.py", "exec")
    names = {each["name"] for each in application["spec"]["driver"]["volumeMounts"]}
    assert names == {"config", "scratch", "data"}
