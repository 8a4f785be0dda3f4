"""The compose file and the manifests agree with the schemas of those who read them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from kubernetes_validate import ValidationError, latest_version, validate

from config.yaml_files import parse_yaml
from tests.activities.mcp.serving import FETCHED

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "kubernetes"
COMPOSE_SCHEMA = FETCHED.parent / "dclint" / "schemas" / "compose.schema.json"
# A folder with the YAML files of the worker controller's definitions, one resource in each.
DEFINITIONS = os.environ.get("LONGHAUL_TEST_CRDS", "")


def load_yaml(path: Path) -> Any:
    return parse_yaml(path.read_text(encoding="utf-8"), str(path))


def deploy_worker() -> dict[str, Any]:
    """The Deployment that the controller makes of the example's pod template."""
    template = load_yaml(EXAMPLES / "worker.yaml")["spec"]["template"]
    labels = {"app": "longhaul"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "longhaul"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": {"labels": labels}},
        },
    }


def refuse_unknown_fields(schema: Any) -> None:
    """Refuses what a server would drop: fields that no `properties` name."""
    if isinstance(schema, list):
        for part in schema:
            refuse_unknown_fields(part)
    if not isinstance(schema, dict):
        return
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
    free = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not free:
        schema.setdefault("additionalProperties", False)
    for part in schema.values():
        refuse_unknown_fields(part)


def read_definitions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in sorted(Path(DEFINITIONS).rglob("*.yaml")):
        definition = load_yaml(path)
        if definition.get("kind") != "CustomResourceDefinition":
            continue
        spec = definition["spec"]
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            refuse_unknown_fields(schema)
            # Kubernetes has its own schema of metadata.
            schema["properties"]["metadata"] = {"type": "object"}
            yield f"{spec['group']}/{version['name']}", spec["names"]["kind"], schema


def test_the_compose_file_agrees_with_the_compose_specification() -> None:
    if not COMPOSE_SCHEMA.exists():
        pytest.skip("npm has not fetched dclint, which has the schema: make develop")
    validator = Draft7Validator(json.loads(COMPOSE_SCHEMA.read_text(encoding="utf-8")))
    compose = load_yaml(ROOT / "compose.yaml")
    assert [error.message for error in validator.iter_errors(compose)] == []
    compose["services"]["worker"]["health_check"] = {}
    assert not validator.is_valid(compose)


def test_the_worker_pod_agrees_with_the_schema_of_kubernetes() -> None:
    deployment = deploy_worker()
    validate(deployment, latest_version(), strict=True)
    [worker] = deployment["spec"]["template"]["spec"]["containers"]
    worker["livenessProbes"] = worker.pop("livenessProbe")
    with pytest.raises(ValidationError, match="livenessProbes"):
        validate(deployment, latest_version(), strict=True)


def test_the_configuration_map_agrees_with_the_schema_of_kubernetes() -> None:
    validate(load_yaml(EXAMPLES / "configuration.yaml"), latest_version(), strict=True)


@pytest.mark.skipif(
    not DEFINITIONS,
    reason="LONGHAUL_TEST_CRDS names no folder with the worker controller's definitions",
)
def test_manifests_agree_with_the_worker_controllers_definitions() -> None:
    schemas = {(version, kind): schema for version, kind, schema in read_definitions()}
    for name in ("connection", "worker", "scaling"):
        manifest = load_yaml(EXAMPLES / f"{name}.yaml")
        schema = schemas[manifest["apiVersion"], manifest["kind"]]
        errors = Draft202012Validator(schema).iter_errors(manifest)
        assert [error.message for error in errors] == []
