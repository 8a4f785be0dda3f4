"""A job's Agent Skills: read and pinned with its files when it begins.

A skill's folder is copied to `skills/<name>/` of the workspace, which the system protects. Later
changes of the original folder do not affect running jobs.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from activities.checkpoints import Files, FilesError, PathRefused
from activities.job.snapshot import Snapshot
from config.layers import configuration_layers
from config.schema.agent import AgentConfig, ConfigError
from config.schema.skills import SKILL_FILE, Skill
from config.skill_files import parse_skill
from protocol.errors import Invalid
from protocol.short_text import first_few

PLACE = "skills"
REPOSITORY = "repo"
"""Folder of a job's repository in the workspace."""
OF_REPOSITORY = ".agents/skills"
MOST_SKILLS = 100
MAX_NAMED = 5
MOST_FILES = 2000
MOST_BYTES = 50_000_000
"""Limit for all skills of a configuration together."""
SKIPPED = frozenset({".git", "__pycache__", "node_modules"})


@dataclass
class AgentSkills:
    """Skills that were read, and notices for people about irregular ones."""

    skills: dict[str, tuple[Skill, dict[str, tuple[bytes, bool]]]] = field(default_factory=dict)
    """By name: the skill, and its files by path with content and whether they are executable."""
    notices: list[str] = field(default_factory=list)
    _count: int = 0
    _size: int = 0

    def add(self, folder: Path) -> None:
        where = f"skill {folder}"
        try:
            text = (folder / SKILL_FILE).read_text(encoding="utf-8", errors="replace")
            parsed = parse_skill(text, folder.name)
            self.notices += [f"{where}: {warning}" for warning in parsed.warnings]
            if (skill := parsed.skill) is None:
                return
            if skill.name in self.skills:
                self.notices.append(f"{where}: left out, another skill is called {skill.name}")
                return
            self.skills[skill.name] = skill, dict(self._read_files(folder))
        except (OSError, Invalid) as error:
            self.notices.append(f"{where}: left out, {error}")

    def put_into(self, files: Files) -> Files:
        if files.entry(PLACE):
            files = files.delete(PLACE)
        for name, (_, content) in self.skills.items():
            for path, (data, executable) in content.items():
                try:
                    files = files.write(f"{PLACE}/{name}/{path}", data, executable=executable)
                except (FilesError, PathRefused) as error:
                    self.notices.append(f"skill {name}: {path[:200]} is left out: {error}")
        return files

    def _read_files(self, folder: Path) -> Iterator[tuple[str, tuple[bytes, bool]]]:
        """Yield files with their paths, without links. Raises Invalid if skills are too large."""
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(set(folders) - SKIPPED)
            for name in sorted(names):
                path = Path(parent, name)
                if path.is_symlink() or not path.is_file():
                    continue
                self._count, self._size = self._count + 1, self._size + path.stat().st_size
                if self._count > MOST_FILES or self._size > MOST_BYTES:
                    raise Invalid(
                        f"with it skills have more than {MOST_FILES:,} files or {MOST_BYTES:,} "
                        "bytes"
                    )
                yield str(path.relative_to(folder)), (path.read_bytes(), os.access(path, os.X_OK))


def read_agent_skills(config: AgentConfig) -> AgentSkills:
    skills = AgentSkills()
    for path in config.skills:
        # `~` is not expanded: the worker's home differs from that of the file's author.
        places = [(folder / path).absolute() for folder in configuration_layers().folders]
        place = next((each for each in places if each.is_dir()), places[-1])
        folders = list(_skill_folders(place))
        if not folders:
            raise ConfigError(
                f"agent {config.name}: skills: {place} has no {SKILL_FILE} on this worker, nor has "
                "a folder in it: name the folder of a skill, or one with such folders"
            )
        for folder in folders:
            skills.add(folder)
    if len(skills.skills) > MOST_SKILLS:
        raise ConfigError(
            f"agent {config.name}: skills: found {len(skills.skills)}, expected {MOST_SKILLS} at "
            "most: each costs tokens in every request; name fewer folders"
        )
    config.skill_entries = [skill for skill, _ in skills.skills.values()]
    return skills


def add_repository_agent_skills(snapshot: Snapshot, folder: str) -> list[str]:
    """Add a trusted repository's skills, over the agent's own of a name; return notices."""
    config, files, place = snapshot.config, snapshot.files, f"{folder}/{OF_REPOSITORY}"
    if files.entry(place) is None:
        return []
    entries, notices = {skill.name: skill for skill in config.skill_entries}, []
    for entry in files.children(place):
        source = files.entry(f"{entry.path}/{SKILL_FILE}") if entry.kind == "folder" else None
        if source is None or source.kind != "file":
            continue
        text = files.read_entry(source).decode(errors="replace")
        parsed = parse_skill(text, entry.path.rpartition("/")[2])
        notices += [f"skill {entry.path}: {warning}" for warning in parsed.warnings]
        if (skill := parsed.skill) is None:
            continue
        if len(entries) >= MOST_SKILLS and skill.name not in entries:
            notices.append(f"skill {entry.path}: left out, a job has {MOST_SKILLS} at most")
            continue
        if skill.name in entries:
            notices.append(f"skill {entry.path}: takes the place of the agent's own")
        entries[skill.name] = skill
        # Reuse the stored tree, so nothing is copied.
        files = files.with_tree_entry(
            (PLACE, skill.name), files.tree_entry(tuple(entry.path.split("/")))
        )
    config.skill_entries = list(entries.values())
    snapshot.files = files
    snapshot.pin_config(config)
    return notices


def notice_untrusted_skills(files: Files, folder: str) -> list[str]:
    place = f"{folder}/{OF_REPOSITORY}"
    if files.entry(place) is None:
        return []
    names = [
        entry.path.rpartition("/")[2]
        for entry in files.children(place)
        if files.entry(f"{entry.path}/{SKILL_FILE}") is not None
    ]
    if not names:
        return []
    return [
        f"the repository's skills are not used: {first_few(names, MAX_NAMED)}; a start with "
        "`--set trust_skills=true` uses them"
    ]


def _skill_folders(place: Path) -> Iterator[Path]:
    if (place / SKILL_FILE).is_file():
        yield place
    elif place.is_dir():
        yield from sorted(each.parent for each in place.glob(f"*/{SKILL_FILE}") if each.is_file())
