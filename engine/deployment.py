"""A worker's version of the code, for Temporal's worker versioning."""

from __future__ import annotations

import os
import re

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from engine.errors import SetupError

NAME = "LONGHAUL_DEPLOYMENT"
BUILD = "LONGHAUL_BUILD_ID"
INJECTED = ("TEMPORAL_DEPLOYMENT_NAME", "TEMPORAL_WORKER_BUILD_ID")
"""Variables set by Temporal's worker controller for Kubernetes; its names contain a `/`."""
_INJECTED_NAME = re.compile(r"[A-Za-z0-9_/-]{1,253}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


def worker_deployment() -> WorkerDeploymentConfig | None:
    """Return the version named by the environment; None for an unversioned worker.

    Our own variables take precedence over those of Temporal's worker controller.

    Raises:
        SetupError: One of the two variables is missing, or is not a valid name.
    """
    return _read_version((NAME, BUILD), _NAME, "letters, digits, _ and -") or _read_version(
        INJECTED, _INJECTED_NAME, "letters, digits and / _ -"
    )


def _read_version(
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
