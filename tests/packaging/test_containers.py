"""Image, compose file and manifests name only things that exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.schema.agent import AgentFile
from config.yaml_files import parse_yaml

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
IMAGE = (ROOT / "Containerfile").read_text(encoding="utf-8")
DOCUMENTED = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def load(path: Path) -> Any:
    return parse_yaml(path.read_text(encoding="utf-8"), str(path))


def worker_pod() -> dict[str, Any]:
    manifest = load(ROOT / "examples" / "kubernetes" / "worker.yaml")
    return dict(manifest["spec"]["template"]["spec"])


def test_the_image_runs_an_installed_command_as_an_ordinary_user() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [command] = re.findall(r'^CMD \["(.+)"\]$', IMAGE, re.M)
    assert command in project["project"]["scripts"]
    [user] = re.findall(r"^USER (\d+)$", IMAGE, re.M)
    assert f"--uid {user}" in IMAGE
    assert worker_pod()["securityContext"]["runAsUser"] == int(user) != 0


def test_all_that_the_wheel_is_built_from_is_copied_into_the_image() -> None:
    copied = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    [ours] = re.findall(r"^OURS = \((.+)\)$", (ROOT / "setup.py").read_text(encoding="utf-8"), re.M)
    for name in [*re.findall(r'"(\w+)"', ours), "longhaul_agents", "pyproject.toml", "LICENSE"]:
        assert f"!{name}" in copied
        assert (ROOT / name).exists()


@pytest.mark.parametrize(
    "path", [ROOT / "compose.yaml", ROOT / "Containerfile", *MANIFESTS], ids=str
)
def test_every_variable_of_ours_is_documented(path: Path) -> None:
    named = set(re.findall(r"LONGHAUL_[A-Z_]+", path.read_text(encoding="utf-8")))
    assert [name for name in named if f"`{name}`" not in DOCUMENTED] == []


def suite_probes_ask_where_the_worker_answers() -> None:
    [worker] = worker_pod()["containers"]
    ports = {port["name"]: port["containerPort"] for port in worker["ports"]}
    assert f"LONGHAUL_HEALTH=0.0.0.0:{ports['health']}" in IMAGE
    assert f"LONGHAUL_METRICS=0.0.0.0:{ports['metrics']}" in IMAGE
    assert worker["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert worker["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}


def test_workspaces_and_configuration_are_where_they_are_mounted() -> None:
    pod = worker_pod()
    [worker] = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in worker["volumeMounts"]}
    assert f"LONGHAUL_WORKSPACES={mounts['workspaces']}" in IMAGE
    variables = {entry["name"]: entry.get("value") for entry in worker["env"]}
    assert variables["LONGHAUL_CONFIG"] == mounts["configuration"]
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)


def test_the_configuration_is_one_that_agents_take() -> None:
    data = load(ROOT / "examples" / "kubernetes" / "configuration.yaml")["data"]
    defaults = yaml.safe_load(data["defaults.yaml"])
    shipped = yaml.safe_load((ROOT / "config" / "defaults.yaml").read_text(encoding="utf-8"))
    checked = AgentFile.model_validate({**shipped, "tools": ["files"], **defaults})
    assert checked.shell.sandbox == "none"
    assert checked.workspace.remote


def test_manifests_refer_to_each_other() -> None:
    by_kind = {manifest["kind"]: manifest for manifest in map(load, MANIFESTS)}
    worker = by_kind["WorkerDeployment"]
    connection = worker["spec"]["workerOptions"]["connectionRef"]["name"]
    assert connection == by_kind["Connection"]["metadata"]["name"]
    scaled = by_kind["WorkerResourceTemplate"]["spec"]["workerDeploymentRef"]["name"]
    assert scaled == worker["metadata"]["name"]


def test_services_of_the_compose_file_wait_for_services_that_there_are() -> None:
    services = load(ROOT / "compose.yaml")["services"]
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
    assert services["worker"]["build"]["dockerfile"] == "Containerfile"
