"""Which version of the code a worker is, for Temporal's worker versioning."""

from __future__ import annotations

import os
import re

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from engine.errors import SetupError

NAME = "LONGHAUL_DEPLOYMENT"
BUILD = "LONGHAUL_BUILD_ID"
INJECTED = ("TEMPORAL_DEPLOYMENT_NAME", "TEMPORAL_WORKER_BUILD_ID")
"""What Temporal's worker controller for Kubernetes sets; its names have a `/`."""
_INJECTED_NAME = re.compile(r"[A-Za-z0-9_/-]{1,253}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


def worker_deployment() -> WorkerDeploymentConfig | None:
    """The version that the environment names; None for a worker without one.

    Our own variables count, and without them those of Temporal's worker controller.

    Raises:
        SetupError: one of the two variables is missing, or cannot be a name.
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
        there, missing = variables if name else variables[::-1]
        raise SetupError(f"{there} is set and {missing} is not; set both, or neither")
    if not form.fullmatch(name):
        raise SetupError(f"{variables[0]}: found {name!r}, expected {expected}")
    return pinned_version(name, build)


def version_label(config: WorkerDeploymentConfig | None) -> str:
    """For the line of a worker that is ready."""
    return f"version {config.version.to_canonical_string()}, " if config else ""


def pinned_version(name: str, build: str) -> WorkerDeploymentConfig:
    """Jobs stay with the version that they were started on, until somebody moves them."""
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(deployment_name=name, build_id=build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )
