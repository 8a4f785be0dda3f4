"""Follows a test command to the runners that it starts.

What make targets, npm scripts and shell files reach is followed until a known runner or a
preparation is found. The system then starts the runner itself, so that nothing on the way decides
how tests are run or what is counted. A command that cannot be followed proves nothing.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from activities.checkpoints import Files, FilesError, PathRefused
from activities.commands.sandbox import CommandResult
from activities.projects.runner_commands import (
    INSPECTION_PROGRAMS,
    CommandRefused,
    RunnerStep,
    check_command_words,
    identify_runner,
    is_preparation_command,
    split_runner_commands,
    strip_launchers,
    unknown_command_text,
)

_NO_CODE = re.compile(r"^(?:set [-+][a-zA-Z]+(?: pipefail)?|set -o \w+|#.*|:|)$")
_TO_OWN_FOLDER = re.compile(
    r'^cd +"?\$\(dirname +"?(?:\$0|\$\{0\}|\$\{?BASH_SOURCE(?:\[0\])?\}?)"?\)"?((?:/\.\.)*)/?"?$'
)
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
MAX_DEPTH, MAX_STEPS = 6, 40
MAKE = "longhaul-make"
"""What `$(MAKE)` becomes in a dry run, so that an inner make is followed instead of run."""


@dataclass(frozen=True)
class CommandFollower:
    """Follows commands through the files of one product."""

    product: Files
    show_make: Callable[[str, list[str]], CommandResult]
    """Returns what `make` with these arguments would run in that folder, without running it."""
    by_person: bool = False
    """Whether a person wrote the command, whose options are therefore settled."""

    def follow(self, command: str) -> list[RunnerStep]:
        """Return the programs that a command starts, in order.

        Raises:
            CommandRefused: It cannot be followed, or starts no runner.
        """
        steps = self._follow_parts(split_runner_commands(command), RunnerStep(()), 0)
        if not any(step.runner for step in steps):
            words = steps[-1].words if steps else (command,)
            if all(step.words[0] in INSPECTION_PROGRAMS for step in steps):
                raise CommandRefused("it runs no test: it only looks at files or prints")
            raise CommandRefused(unknown_command_text(words))
        return steps

    def _follow_parts(
        self, parts: list[list[str]], origin: RunnerStep, depth: int
    ) -> list[RunnerStep]:
        steps: list[RunnerStep] = []
        place = origin
        for words in parts:
            if words[0] == "cd":
                target = words[1] if len(words) == 2 else ""
                folder = posixpath.normpath(posixpath.join(place.folder, target or "."))
                if target.startswith(("/", "~", "-", "$")) or folder.startswith(".."):
                    raise CommandRefused(f"leave out cd {target}: tests are run in the repository")
                place = replace(place, folder="" if folder == "." else folder)
                continue
            if words[0] == "export":
                check_command_words(words, by_person=self.by_person)
                pairs = dict(word.partition("=")[::2] for word in words[1:] if "=" in word)
                place = replace(place, variables={**place.variables, **pairs})
                continue
            steps += self._follow_words(replace(place, words=tuple(words)), depth)
            if len(steps) > MAX_STEPS:
                raise CommandRefused("it starts too many programs")
        return steps

    def _follow_words(self, step: RunnerStep, depth: int) -> list[RunnerStep]:
        if depth > MAX_DEPTH:
            raise CommandRefused(f"it goes through too many files: {' '.join(step.through)}")
        check_command_words(list(step.words), by_person=self.by_person)
        if step.words[:2] == (":", MAKE):
            step = replace(step, words=step.words[1:])
        step = strip_launchers(step)
        if not step.words:
            return []
        if runner := identify_runner(step, by_person=self.by_person):
            self._check_python_path(runner)
            return [runner]
        program = step.words[0].rpartition("/")[2]
        if program in ("make", "gmake", MAKE):
            return self._follow_make(step, depth)
        if program in ("npm", "yarn", "pnpm") and not is_preparation_command(step.words):
            return self._follow_scripts(step, depth)
        if program in ("sh", "bash", "dash") and len(step.words) > 1:
            flags = [word for word in step.words[1:] if word.startswith(("-", "+"))]
            rest = [word for word in step.words[1:] if word not in flags]
            if rest:
                return self._follow_file(step, rest[0], depth)
        if step.words[0].startswith("./") or program.endswith(".sh"):
            return self._follow_file(step, step.words[0], depth)
        if re.fullmatch(r"python[\d.]*", program) and len(step.words) == 2:
            return [self._unittest_file(step)]
        if self.by_person and program == "node" and not step.words[-1].startswith("-"):
            # A program whose tests print TAP.
            return [replace(step, runner="tape")]
        # What a file of the repository runs beside its tests is its own business.
        if is_preparation_command(step.words) or (self.by_person and step.through):
            return [step]
        raise CommandRefused(self._refusal_text(step, unknown_command_text(step.words)))

    def _refusal_text(self, step: RunnerStep, why: str) -> str:
        return f"it goes through {' and '.join(step.through)}: {why}" if step.through else why

    def _read(self, step: RunnerStep, path: str) -> tuple[str, str]:
        """Return the path of a file in the product, and its text."""
        place = posixpath.normpath(posixpath.join(step.folder, path))
        try:
            entry = None if place.startswith(("..", "/")) else self.product.entry(place)
            if entry is None or entry.kind != "file":
                raise CommandRefused(
                    f"{place} is no file of the repository, so that it cannot be seen what it runs",
                    missing=True,
                )
            return place, self.product.read_entry(entry).decode()
        except (FilesError, PathRefused, UnicodeDecodeError):
            raise CommandRefused(f"{place} is no text that could be followed") from None

    def _follow_file(self, step: RunnerStep, path: str, depth: int) -> list[RunnerStep]:
        place, text = self._read(step, path)
        first = text.partition("\n")[0]
        if first.startswith("#!") and not re.search(r"\b(?:ba|da|z)?sh\b", first):
            raise CommandRefused(self._refusal_text(step, unknown_command_text(step.words)))
        origin = replace(step, words=(), through=(*step.through, place))
        parts: list[list[str]] = []
        for number, raw in enumerate(text.replace("\\\n", " ").split("\n"), 1):
            line = raw.strip().replace('"$@"', "").replace("$@", "").strip()
            line = line.removeprefix("exec ").strip()
            if own_folder := _TO_OWN_FOLDER.match(line):
                up = posixpath.normpath(posixpath.dirname(path) + (own_folder[1] or "") or ".")
                parts.append(["cd", up])
            elif not _NO_CODE.match(line):
                try:
                    parts += split_runner_commands(line, in_file=True)
                except CommandRefused as refused:
                    raise CommandRefused(
                        f"line {number} of {place} cannot be followed to a test runner: {refused}"
                    ) from None
        return self._follow_parts(parts, origin, depth + 1)

    def _follow_make(self, step: RunnerStep, depth: int) -> list[RunnerStep]:
        arguments = list(step.words[1:])
        if not any(word.startswith(("-C", "-f", "--file", "--dir")) for word in arguments):
            places = [posixpath.join(step.folder, name) for name in MAKEFILES]
            if not any(self.product.entry(place) for place in places):
                raise CommandRefused(
                    "there is no Makefile, so that it cannot be seen what it runs", missing=True
                )
        ended = self.show_make(step.folder, arguments)
        if ended.exit_code:
            raise CommandRefused(
                f"`{step.line}` cannot be followed: {ended.output.strip()[-300:]}",
                missing=ended.exit_code != 127,
            )
        parts: list[list[str]] = []
        for line in ended.output.replace("\\\n", " ").splitlines():
            if line.strip() and not line.startswith(("make:", "make[", "#")):
                try:
                    parts += split_runner_commands(line.strip(), in_file=True)
                except CommandRefused as refused:
                    raise CommandRefused(
                        f"`{line.strip()[:100]}` of the Makefile cannot be followed to a test "
                        f"runner: {refused}"
                    ) from None
        folder = step.folder
        for word, value in pairwise(arguments):
            if word == "-C":
                folder = posixpath.normpath(posixpath.join(folder, value))
        origin = replace(step, words=(), folder=folder, through=(*step.through, "Makefile"))
        return self._follow_parts(parts, origin, depth + 1)

    def _follow_scripts(self, step: RunnerStep, depth: int) -> list[RunnerStep]:
        words = [word for word in step.words[1:] if word not in ("-s", "--silent", "run-script")]
        extra = words[words.index("--") + 1 :] if "--" in words else []
        words = words[: words.index("--")] if "--" in words else words
        words = [word for word in words if word != "--if-present"]
        words = [word for word in words if word != "run"]
        name = {"t": "test", "tst": "test"}.get(words[0], words[0]) if words else ""
        if len(words) != 1 or name.startswith("-"):
            raise CommandRefused(
                f"`{step.line}` cannot be followed: name a script and nothing else"
            )
        steps: list[RunnerStep] = []
        place, text = self._read(step, "package.json")
        scripts = _json_object(text, place).get("scripts")
        scripts = scripts if isinstance(scripts, dict) else {}
        if name not in scripts:
            raise CommandRefused(f"{place} has no script {name}", missing=True)
        origin = replace(
            step, words=(), launcher=("npx", "--no-install"), through=(*step.through, place)
        )
        for each in (f"pre{name}", name, f"post{name}"):
            line = str(scripts.get(each) or "")
            line = f"{line} {shlex.join(extra)}" if extra and each == name else line
            # What follows the tests decides nothing of them: an audit needs the network, say.
            is_needless = self.by_person and each != name and each.startswith("post")
            try:
                followed = (
                    self._follow_parts(split_runner_commands(line), origin, depth + 1)
                    if line
                    else []
                )
            except CommandRefused as refused:
                if is_needless:
                    continue
                why = f"the script {each} of {place} cannot be followed: {refused}"
                raise CommandRefused(why, missing=refused.missing) from None
            if not is_needless or any(step.runner for step in followed):
                steps += followed
        return steps

    def _unittest_file(self, step: RunnerStep) -> RunnerStep:
        """Return the run of a file that calls `unittest.main()`."""
        place, text = self._read(step, step.words[1])
        if "unittest.main(" not in text or not place.endswith(".py"):
            raise CommandRefused(self._refusal_text(step, unknown_command_text(step.words)))
        return replace(
            step,
            runner="unittest",
            words=(step.words[1],),
            launcher=(*step.launcher, step.words[0]),
        )

    def _check_python_path(self, step: RunnerStep) -> None:
        """Refuse a folder for imports that is not the repository's or hides its modules."""
        value = step.variables.get("PYTHONPATH", "")
        if not value or self.by_person:
            return
        modules: dict[str, str] = {}
        for entry in value.split(":"):
            place = posixpath.normpath(posixpath.join(step.folder, entry))
            if entry.startswith(("/", "~", "$")) or place.startswith(".."):
                raise CommandRefused(
                    f"leave out PYTHONPATH={entry}: it is no folder of the product"
                )
            for path in python_modules(self.product, "" if place == "." else place):
                modules.setdefault(path.rpartition("/")[2], path)
        for path in python_modules(self.product, step.folder):
            other = modules.get(path.rpartition("/")[2], path)
            if other != path:
                raise CommandRefused(
                    f"leave out PYTHONPATH={value}: {other} would be imported in place of {path}"
                )


def python_modules(product: Files, folder: str) -> list[str]:
    """Return the paths of the modules and packages directly in a folder, without `.py`."""
    prefix = f"{folder}/" if folder else ""
    names = set()
    for entry in product.walk():
        if entry.path.startswith(prefix) and entry.path.endswith(".py"):
            first, _, rest = entry.path[len(prefix) :].partition("/")
            if not rest or rest == "__init__.py":
                names.add(prefix + first.removesuffix(".py"))
    return sorted(names)


def _json_object(text: str, place: str) -> Mapping[str, object]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandRefused(f"{place} is no valid JSON") from None
    return package if isinstance(package, dict) else {}
