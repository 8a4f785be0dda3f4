"""The folders that a configuration is read from: what ships, and one's own above it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from config.schema.agent import ConfigError

SHIPPED = Path(__file__).parent
VARIABLE = "LONGHAUL_CONFIG"
KNOWN = ("agents", "prompts", "guards", "phrases", "graph", "requirements")
"""Folders that are read."""
DEFAULTS = "defaults.yaml"


@dataclass(frozen=True)
class Layers:
    """Folders of one form, the strongest first; the last one ships and is complete."""

    folders: tuple[Path, ...]

    def find_file(self, relative: str) -> Path:
        """The strongest file of this name; the place in what ships where there is none."""
        paths = [folder / relative for folder in self.folders]
        return next((path for path in paths if path.is_file()), paths[-1])

    def list_files(self, pattern: str) -> list[Path]:
        """Every file of the pattern by its name: of several of one name, the strongest."""
        found = {
            str(path.relative_to(folder)): path
            for folder in reversed(self.folders)
            for path in folder.glob(pattern)
        }
        return [found[name] for name in sorted(found)]

    def list_all(self, relative: str) -> list[Path]:
        """The files of this name in all folders, the strongest first."""
        return [path for folder in self.folders if (path := folder / relative).is_file()]

    def below(self, path: Path) -> Layers:
        """The folders that are weaker than the one that holds the path."""
        holder = next(n for n, folder in enumerate(self.folders) if path.is_relative_to(folder))
        return Layers(self.folders[holder + 1 :])

    def is_own(self, path: Path) -> bool:
        """Whether the file does not ship."""
        return not path.is_relative_to(self.folders[-1])


def configuration_layers(shipped: Path = SHIPPED) -> Layers:
    """The folders of LONGHAUL_CONFIG above what ships, of which later ones win.

    Raises:
        ConfigError: one of them is no folder, or has nothing that is read.
    """
    named = [text for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text.strip()]
    own = []
    for text in named:
        try:
            folder = Path(text.strip()).expanduser().absolute()
        except RuntimeError:
            raise ConfigError(f"{VARIABLE}: {text}: no such user or home") from None
        if not folder.is_dir():
            raise ConfigError(
                f"{VARIABLE}: {folder}: there is no such folder; `starter.py init {text}` makes one"
            )
        if not any((folder / name).exists() for name in (*KNOWN, DEFAULTS)):
            raise ConfigError(
                f"{VARIABLE}: {folder}: expected {', '.join(KNOWN)} or {DEFAULTS} in it, found "
                "none of them"
            )
        own.append(folder)
    return Layers((*reversed(own), shipped))
