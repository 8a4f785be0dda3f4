"""Reads the front matter of a `SKILL.md` leniently, with warnings for format violations."""

import re
from typing import Any, NamedTuple

from config.schema.agent import ConfigError
from config.schema.skills import MOST_DESCRIPTION, MOST_NAME, Skill
from config.yaml_files import parse_yaml
from protocol.short_text import one_line

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\r?\n)---[ \t]*(\r?\n|\Z)", re.DOTALL)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LINE = re.compile(r"^(name|description):[ \t]*(\S.*)$", re.MULTILINE)


class ParsedSkill(NamedTuple):
    """The parsed front matter of a `SKILL.md`."""

    skill: Skill | None
    """None for a file without a description: a model could not know when to use it."""
    warnings: list[str]


def parse_skill(text: str, folder: str) -> ParsedSkill:
    """Parse the skill that a file declares."""
    fields, warnings = _read_skill_fields(text)
    description = one_line(_skill_field_text(fields.get("description")), MOST_DESCRIPTION)
    if not description:
        return ParsedSkill(None, [*warnings, "it has no description, and is left out"])
    if len(_skill_field_text(fields.get("description"))) > MOST_DESCRIPTION:
        warnings.append(
            f"its description has more than {MOST_DESCRIPTION:,} characters, and is cut"
        )
    named = _skill_field_text(fields.get("name"))
    name = next(
        (each for each in (named, folder) if _is_skill_name(each)), _skill_name_from_folder(folder)
    )
    if name != named:
        warnings.append(f"its name {named[:100]!r} does not fit the format; it is called {name}")
    elif name != folder:
        warnings.append(f"its folder is called {folder[:100]}, and not as it names itself")
    return ParsedSkill(Skill(name=name, description=description), warnings)


def skill_body(text: str) -> str:
    """The file without its front matter."""
    match = _FRONT_MATTER.match(text)
    return (text[match.end() :] if match else text).strip()


def _read_skill_fields(text: str) -> tuple[dict[str, Any], list[str]]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, ["it has no front matter between lines of ---"]
    try:
        fields = parse_yaml(match[1], "front matter")
    except ConfigError:
        # The usual cause is a colon in an unquoted description.
        fields = dict(_LINE.findall(match[1]))
        return fields, ["its front matter is not valid YAML, and is read by its lines"]
    return (fields, []) if isinstance(fields, dict) else ({}, ["its front matter has no keys"])


def _skill_field_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _is_skill_name(text: str) -> bool:
    return len(text) <= MOST_NAME and bool(_NAME.fullmatch(text))


def _skill_name_from_folder(folder: str) -> str:
    words = re.findall(r"[a-z0-9]+", folder.lower())
    return "-".join(words)[:MOST_NAME].strip("-") or "skill"
