"""A worker's version of the code, for Temporal's worker versioning."""

import hashlib
import importlib.util
import os
import re
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from engine.setup_errors import SetupError

NAME = "LONGHAUL_DEPLOYMENT"
BUILD = "LONGHAUL_BUILD_ID"
INJECTED = ("TEMPORAL_DEPLOYMENT_NAME", "TEMPORAL_WORKER_BUILD_ID")
"""Variables set by Temporal's worker controller for Kubernetes; its names contain a `/`."""
REPLAYED = ("protocol", "workflows")
"""Packages whose code decides the course of a workflow."""
_INJECTED_NAME = re.compile(r"[A-Za-z0-9_/-]{1,253}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


def worker_deployment() -> WorkerDeploymentConfig | None:
    """Return the version named by the environment; None for an unversioned worker.

    Our own variables take precedence over those of Temporal's worker controller.

    Raises:
        SetupError: One of the two variables is missing, or is not a valid name.
    """
    return _read_deployment_version(
        (NAME, BUILD), _NAME, "letters, digits, _ and -"
    ) or _read_deployment_version(INJECTED, _INJECTED_NAME, "letters, digits and / _ -")


def _read_deployment_version(
    variables: tuple[str, str], form: re.Pattern[str], expected: str
) -> WorkerDeploymentConfig | None:
    name, build = (os.environ.get(variable, "").strip() for variable in variables)
    if not name and not build:
        return None
    if not name or not build:
        present, missing = variables if name else variables[::-1]
        raise SetupError(f"{present} is set and {missing} is not; set both, or neither")
    if not form.fullmatch(name):
        raise SetupError(f"{variables[0]}: found {name!r}, expected {expected}")
    return pinned_deployment_version(name, build)


def version_label(config: WorkerDeploymentConfig | None) -> str:
    """Return the version's label in the line that reports a ready worker."""
    return f"version {config.version.to_canonical_string()}, " if config else ""


def pinned_deployment_version(name: str, build: str) -> WorkerDeploymentConfig:
    """Return a version whose jobs stay with it until somebody moves them."""
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=name, build_id=build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


@cache
def worker_build_id() -> str:
    """Return release, commit if this is a checkout, and code of an unversioned worker.

    The histories of its jobs record it, so people find the version that a job needs.
    """
    try:
        release = version("longhaul-agents")
    except PackageNotFoundError:
        release = ""
    parts = (release, _checkout_commit(Path(__file__).parents[1]), unversioned_build_id()[:12])
    return "-".join(filter(None, parts))


def _checkout_commit(folder: Path) -> str:
    """Return the commit of a checkout, in short; empty if git does not say."""
    command = ["git", "-C", str(folder), "rev-parse", "--short=10", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        if (folder / ".git").exists():
            return subprocess.run(
                command, capture_output=True, text=True, timeout=5, check=True
            ).stdout.strip()
    return ""


@cache
def unversioned_build_id(packages: tuple[str, ...] = REPLAYED) -> str:
    """Return a hash of the workflows' code.

    The SDK's default hashes every loaded module, which delays the start by an eighth of a second.
    """
    digest = hashlib.sha256()
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in sorted(Path(folder).glob("**/*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:32]
