"""The test runners that the system knows, as one table: `known_runners.yaml`.

The system starts runners itself, with whole files or folders of tests. An option that selects
tests, names a configuration or a plugin, or writes the report elsewhere is refused, unless a person
wrote the command.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import yaml

from config.yaml_files import YAML


@dataclass(frozen=True)
class KnownRunner:
    """What is known of a runner; options are words with spaces between them."""

    endings: Sequence[str] = ()
    """Endings of the files that its tests are about."""
    deciders: Sequence[str] = ()
    """Names of files that decide what it shows."""
    report: Literal["signed", "tap", "go", "cargo", "jest", "case lists", "junit"] = "signed"
    """The form of its report."""
    report_options: str = ""
    """Options with which it writes its report, at the place of `{}`."""
    prints_with: str | None = None
    """Options with which it prints its report; None if it writes one."""
    short: str = ""
    """Pattern of the short options that it may have."""
    flags: str = ""
    """Names of the options without a value that it may have."""
    valued: str = ""
    """Names of the options that it may have with a value."""
    dashes: str = "--"
    takes_value: str = ""
    """Options whose value is the next word."""
    refused: str = ""
    """Options that it may not have, where those that it may have are not listed."""

    @cached_property
    def allowed(self) -> re.Pattern[str] | None:
        """The options that it may have; None if these are not listed."""
        if not self.valued:
            return None
        valued = [f"{name}(?:=.*)?" for name in self.valued.split()]
        named = f"{self.dashes}(?:{'|'.join([*self.flags.split(), *valued])})"
        return re.compile("|".join(filter(None, [self.short, named])))


_TABLE = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
KNOWN_RUNNERS = {name: KnownRunner(**known) for name, known in yaml.load(_TABLE, YAML).items()}
_PLUGINS_OFF = frozenset({"no:cacheprovider", "no:randomly", "no:xdist", "no:warnings"})


def runner_option_fault(runner: str, words: Sequence[str]) -> str:
    """Return which word selects tests or their configuration; empty if none does."""
    place = 0
    known = KNOWN_RUNNERS[runner]
    while place < len(words):
        word = words[place]
        place += 1
        if runner == "pytest" and word == "-p" and words[place : place + 1]:
            if words[place] not in _PLUGINS_OFF:
                return f"leave out -p {words[place]}: the system chooses the plugins"
            place += 1
            continue
        if not word.startswith("-"):
            if fault := _argument_fault(runner, word):
                return fault
            continue
        if _is_refused_option(runner, word):
            name = word.partition("=")[0]
            return (
                f"leave out {name}: whole files or folders of tests are run, with the project's "
                "own settings"
            )
        if word in known.takes_value.split():
            value = words[place] if place < len(words) else ""
            place += 1
            if runner == "node" and value.startswith((".", "/")):
                return f"leave out {word} {value}: a file of the product decides what is run"
        elif runner == "node" and re.match(r"--(?:import|require|loader)=[./]", word):
            return f"leave out {word}: a file of the product decides what is run"
    return ""


def _is_refused_option(runner: str, word: str) -> bool:
    known = KNOWN_RUNNERS[runner]
    if known.allowed is not None:
        return known.allowed.fullmatch(word) is None
    name, refused = word.partition("=")[0], known.refused.split()
    if name in refused:
        return True
    if word.startswith("-D") and runner == "maven":
        return any(name.startswith(each) for each in refused if each.startswith("-D"))
    # A short option may have its value joined to it.
    short = not word.startswith("--") and runner not in ("maven", "ctest")
    return short and any(len(each) == 2 and word.startswith(each) for each in refused)


def _argument_fault(runner: str, word: str) -> str:
    if "::" in word and runner in ("pytest", "unittest"):
        return "name whole files or folders of tests, not single ones"
    if word.startswith(("/", "~", "@")) or ".." in word.split("/"):
        return f"leave out {word}: tests are files of the repository"
    return ""
