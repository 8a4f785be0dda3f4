"""Puts every package below `longhaul_agents`; all else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

OURS = ("activities", "cli", "config", "engine", "examples", "protocol", "rehearsal", "workflows")
BELOW = "longhaul_agents.packages"
DATA = {
    "activities": ["projects/*.yaml"],
    "cli": ["report/*.css", "report/*.j2"]
    + [f"first_folder/**/*.{ending}" for ending in ("md", "py", "yaml")],
    "config": ["**/*.yaml", "**/*.md"],
    "examples": ["**/*.md", "**/*.yaml", "**/*.json"],
}


class BuildAfresh(build_py):
    """Builds without files of an earlier build that have since been renamed or removed."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib) / "longhaul_agents", ignore_errors=True)
        super().run()


found = find_namespace_packages(
    include=[pattern for name in OURS for pattern in (name, f"{name}.*")]
)
setup(
    cmdclass={"build_py": BuildAfresh},
    packages=["longhaul_agents", *(f"{BELOW}.{name}" for name in found)],
    package_dir={BELOW: "."},
    package_data={f"{BELOW}.{name}": patterns for name, patterns in DATA.items()},
)
