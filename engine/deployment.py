"""Which version of the code a worker is, for Temporal's worker versioning."""

from __future__ import annotations

import os
import re

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from engine.errors import SetupError

NAME = "LONGHAUL_DEPLOYMENT"
BUILD = "LONGHAUL_BUILD_ID"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


def worker_deployment() -> WorkerDeploymentConfig | None:
    """The version that the environment names; None for a worker without one.

    Raises:
        SetupError: one of the two variables is missing, or cannot be a name.
    """
    name, build = (os.environ.get(variable, "").strip() for variable in (NAME, BUILD))
    if not name and not build:
        return None
    if not name or not build:
        there, missing = (NAME, BUILD) if name else (BUILD, NAME)
        raise SetupError(f"{there} is set and {missing} is not; set both, or neither")
    if not _NAME.fullmatch(name):
        raise SetupError(f"{NAME}: found {name!r}, expected letters, digits, _ and -")
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
