"""The folders of a configuration: the shipped one, and the user's own above it."""

import os
from dataclasses import dataclass
from pathlib import Path

from config.schema.agent import ConfigError

SHIPPED = Path(__file__).parent
VARIABLE = "LONGHAUL_CONFIG"
TOOLS = "tools"
KNOWN = ("agents", "prompts", "guards", "phrases", "graph", "requirements", TOOLS)
DEFAULTS = "defaults.yaml"
TEAMS = "teams.yaml"


@dataclass(frozen=True)
class Layers:
    """Configuration folders, the strongest first; the last is the shipped, complete one."""

    folders: tuple[Path, ...]

    def find_file(self, relative: str) -> Path:
        """The strongest file of this name; without one, its path in the shipped folder."""
        paths = [folder / relative for folder in self.folders]
        return next((path for path in paths if path.is_file()), paths[-1])

    def list_files(self, pattern: str) -> list[Path]:
        """Files that match the pattern, sorted by name; of files with one name, the strongest."""
        files = {
            str(path.relative_to(folder)): path
            for folder in reversed(self.folders)
            for path in folder.glob(pattern)
        }
        return [files[name] for name in sorted(files)]

    def list_all(self, relative: str) -> list[Path]:
        """The files of this name in all folders, the strongest first."""
        return [path for folder in self.folders if (path := folder / relative).is_file()]

    def below(self, path: Path) -> "Layers":
        """The folders weaker than the one that contains the path."""
        holder = next(n for n, folder in enumerate(self.folders) if path.is_relative_to(folder))
        return Layers(self.folders[holder + 1 :])

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """The folders above the shipped one."""
        return self.folders[:-1]

    def is_own(self, path: Path) -> bool:
        """Whether the file is outside the shipped folder."""
        return not path.is_relative_to(self.folders[-1])


def configuration_layers(shipped: Path = SHIPPED) -> Layers:
    """The folders of LONGHAUL_CONFIG, later ones stronger, above the shipped folder.

    Raises ConfigError: an entry is not a folder, or contains no configuration.
    """
    named = [text for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text.strip()]
    folders = []
    for text in named:
        try:
            folder = Path(text.strip()).expanduser().absolute()
        except RuntimeError:
            raise ConfigError(f"{VARIABLE}: {text}: no such user or home") from None
        if not folder.is_dir():
            raise ConfigError(
                f"{VARIABLE}: {folder}: there is no such folder; `starter.py init {text}` makes one"
            )
        if not any((folder / name).exists() for name in (*KNOWN, DEFAULTS, TEAMS)):
            raise ConfigError(
                f"{VARIABLE}: {folder}: expected {', '.join(KNOWN)} or {DEFAULTS} in it, found "
                "none of them"
            )
        folders.append(folder)
    return Layers((*reversed(folders), shipped))
