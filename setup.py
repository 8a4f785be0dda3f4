"""Puts every package below `longhaul_agents`; all else is in pyproject.toml."""

from setuptools import find_namespace_packages, setup

OURS = ("activities", "cli", "config", "engine", "examples", "protocol", "rehearsal", "workflows")
BELOW = "longhaul_agents.packages"
DATA = {
    "cli": ["report/*.css", "report/*.j2", "first_folder/**/*.md", "first_folder/**/*.yaml"],
    "config": ["**/*.yaml", "**/*.md"],
    "examples": ["**/*.md", "**/*.yaml"],
}

found = find_namespace_packages(
    include=[pattern for name in OURS for pattern in (name, f"{name}.*")]
)
setup(
    packages=["longhaul_agents", *(f"{BELOW}.{name}" for name in found)],
    package_dir={BELOW: "."},
    package_data={f"{BELOW}.{name}": patterns for name, patterns in DATA.items()},
)
