"""Follows a test command to the runners that it starts.

What make targets, npm scripts and shell files reach is followed until a known runner or a
preparation is found. The system then starts the runner itself, so that nothing on the way decides
how tests are run or what is counted. A command that cannot be followed proves nothing.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from activities.checkpoints import Files, FilesError, PathRefused
from activities.commands.sandbox import CommandResult
from activities.projects.runner_options import runner_option_fault

INSPECTION_PROGRAMS = frozenset(
    {":", "[", "cat", "cut", "date", "echo", "file", "find", "grep", "head", "less", "ls"}
    | {"printf", "pwd", "sed", "sort", "stat", "tail", "tee", "test", "tree", "wc", "which", "true"}
)
"""Programs that show or count; their exit code says nothing about a product."""
PREPARATIONS = frozenset(
    {"mkdir", "touch", "cp", "rm", "sleep", "ln", "cmake", "ninja", "meson", "cc", "gcc", "g++"}
    | {"clang", "clang++", "c++", "ar", "ld", "rustc", "javac", "tsc", "pip", "pip3", "ruff"}
    | {"mypy", "pyright", "black", "flake8", "isort", "pylint", "eslint", "prettier", "biome"}
    | {"gofmt", "golangci-lint", "staticcheck", "composer", "bundle", "shellcheck", "chmod"}
)
"""Programs that build, install or lint. They may come before the tests."""
_SUBCOMMANDS = {
    "go": {"build", "vet", "generate", "mod", "fmt", "install", "version", "clean", "get"},
    "cargo": {"build", "check", "fmt", "clippy", "fetch", "clean", "version"},
    "npm": {"ci", "install", "i", "--version", "-v", "rebuild"},
    "pnpm": {"install", "i", "--version"},
    "yarn": {"install", "--version"},
    "coverage": {"report", "combine", "erase", "html", "xml", "json"},
    "uv": {"sync", "pip", "lock"},
    "poetry": {"install", "lock"},
}
"""Subcommands that prepare, by program."""
_PYTHON_PREPARATIONS = {"pip", "venv", "build", "compileall", "py_compile", "mypy", "ruff", "black"}
_PYTHON_PREPARATIONS |= {"flake8", "pylint", "isort", "pyflakes", "ensurepip"}
FORBIDDEN = frozenset(
    {"!", ".", "alias", "eval", "exit", "false", "set", "source", "trap", "unset"}
    | {"unalias", "builtin", "command", "kill", "enable", "hash", "shopt", "return", "disown"}
)
"""Shell words that detach the exit code from the tests."""
VARIABLES = re.compile(
    r"(?:PATH|BASH_ENV|ENV|BASH_FUNC\w*|LD_\w+|PYTEST_\w+|PYTHON(?!PATH|UNBUFFERED|DONTWRITE"
    r"BYTECODE|HASHSEED|UTF8|IOENCODING)\w*|GO(?!MAXPROCS|CACHE|PROXY|OS|ARCH)\w*|HOME|NODE_OPTIONS"
    r"|NODE_PATH|NODE_TEST\w*|RUST\w*FLAGS|RUSTC\w*|CARGO_(?!TERM|INCREMENTAL|HOME)\w*|JAVA_TOOL"
    r"_OPTIONS|_JAVA_OPTIONS|MAVEN_\w+|MAKEFLAGS|MAKEFILES|RUBY\w+|PERL\w+|PHPRC"
    r"|PHP_INI\w*|npm_config_\w+|NPM_CONFIG_\w+|VITEST\w*|JEST\w*|MOCHA\w*|SHELL|SHELLOPTS|IFS"
    r"|COVERAGE_\w+)\+?=",
)
"""Variables that decide which programs run or what a runner does."""
_CODE = frozenset({"-c", "-ec", "-lc", "-uc"})
_CODE_OF_OTHERS = frozenset({"-e", "-r", "--eval", "eval", "-p"})
_INLINE = {
    **dict.fromkeys(("python", "sh", "bash", "dash", "zsh"), _CODE),
    **dict.fromkeys(("node", "perl", "ruby", "php", "deno"), _CODE_OF_OTHERS),
}
"""Options that pass code on a program's command line."""
_OPERATORS = frozenset(
    {";", "&", "&&", "||", "|", ";;", "|&", "(", ")", "<", ">", ">>", "<<", ">&"}
)
_BLOCKS = frozenset(
    {"for", "while", "until", "if", "then", "else", "elif", "fi", "do", "done", "case", "esac"}
    | {"function", "{", "}", "select", "[["}
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_NO_CODE = re.compile(r"^(?:set [-+][a-zA-Z]+(?: pipefail)?|set -o \w+|#.*|:|)$")
_TO_OWN_FOLDER = re.compile(
    r'^cd +"?\$\(dirname +"?(?:\$0|\$\{0\}|\$\{?BASH_SOURCE(?:\[0\])?\}?)"?\)"?((?:/\.\.)*)/?"?$'
)
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
MAX_DEPTH, MAX_STEPS = 6, 40
MAKE = "longhaul-make"
"""What `$(MAKE)` becomes in a dry run, so that an inner make is followed instead of run."""
KNOWN = (
    "pytest, unittest, node --test, jest, vitest, mocha, go test, cargo test, mvn, "
    "phpunit, rspec, ctest or prove"
)
_JS = frozenset({"jest", "vitest", "mocha"})
_PLAIN = {**dict.fromkeys(("phpunit", "rspec", "ctest", "prove"), ""), "py.test": "pytest"}


class CommandRefused(ValueError):
    """A command cannot be followed to a runner; the message says why and what to do."""

    def __init__(self, why: str, *, missing: bool = False) -> None:
        super().__init__(why)
        self.missing = missing
        """Whether only a file that does not exist yet is in the way."""


@dataclass(frozen=True)
class RunnerStep:
    """A program that a test command starts."""

    words: tuple[str, ...]
    """Program and arguments; for a runner in Python, the arguments of the module."""
    folder: str = ""
    """Where it starts, below the top of the product."""
    variables: Mapping[str, str] = field(default_factory=dict)
    runner: str = ""
    """Name of the runner; empty for a preparation."""
    launcher: tuple[str, ...] = ()
    """What starts the runner, such as `uv run`, `npx` or a Python."""
    through: tuple[str, ...] = ()
    """Files that it was followed through."""

    @property
    def line(self) -> str:
        return shlex.join([*self.launcher, *self.words])


def runner_command_fault(command: str, *, by_person: bool = False) -> str:
    """Return why a command cannot prove anything, by its words alone; empty if it may."""
    try:
        parts = split_runner_commands(command)
        for words in parts:
            _check_words(words, by_person=by_person)
        if all(words[0] in INSPECTION_PROGRAMS | {"cd"} for words in parts):
            return "it runs no test: it only looks at files or prints"
        for words in parts:
            _identify_runner(RunnerStep(tuple(words)), by_person=by_person)
    except CommandRefused as refused:
        return str(refused)
    return ""


def _unknown(words: list[str] | tuple[str, ...]) -> str:
    return (
        f"`{shlex.join(words)}` is no test runner that the system knows, so that nothing of it is "
        f"counted: start {KNOWN} (only the project's file can accept a command by its exit code "
        "alone, with `exit_code_only: true`)"
    )


def _check_words(words: list[str], *, by_person: bool) -> None:
    for word in words:
        if VARIABLES.match(word) and not by_person:
            raise CommandRefused(f"leave out {word.partition('=')[0]}=, which decides what is run")
    if words and words[0] in FORBIDDEN:
        raise CommandRefused(f"leave out {words[0]}: the exit code has to be that of the tests")
    if any(word.startswith("#") for word in words):
        raise CommandRefused("leave the comment out")
    program = words[0].rpartition("/")[2].rstrip("0123456789.")
    own = words[1 : words.index("-m")] if "-m" in words else words[1:]
    if set(own) & _INLINE.get(program, frozenset()) and "--test" not in words:
        raise CommandRefused(
            f"leave out {words[0]} with code of its own: the tests belong into files"
        )


def split_runner_commands(command: str, *, in_file: bool = False) -> list[list[str]]:
    """Split a command line into the words of each program it starts.

    Filters behind a pipe are left out. Assignments before a program stay with it.

    Args:
        in_file: Whether it is a line of a script, in which `;` joins commands as well.

    Raises:
        CommandRefused: It uses more than `&&`, `|` and `2>&1`; the message says what to change.
    """
    if "`" in command or "$(" in command or "<(" in command:
        raise CommandRefused("leave out commands within the command")
    if "\n" in command.strip() or "\0" in command:
        raise CommandRefused("write it in one line")
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.commenters, lexer.whitespace_split = "", True
        words = list(lexer)
    except ValueError as problem:
        raise CommandRefused(f"the shell cannot read it ({str(problem).lower()})") from None
    parts: list[list[str]] = [[]]
    filters: list[int] = []
    place = 0
    while place < len(words):
        word = words[place]
        if word == "2" and words[place + 1 : place + 3] == [">&", "1"]:
            place += 3
            continue
        if word == "|":
            filters.append(len(parts))
        if word in ("&&", "|") or (word == ";" and in_file):
            parts.append([])
        elif word in _OPERATORS or (word and not set(word) - set(";&|()<>")):
            raise CommandRefused(
                f"leave out {word}: join commands by && alone, so that the exit code is that of "
                "the tests"
            )
        else:
            parts[-1].append(word)
        place += 1
    if in_file and not parts[-1]:
        parts.pop()
    if any(not words for words in parts):
        raise CommandRefused("a part of it starts no program")
    if block := next((words[0] for words in parts if words[0] in _BLOCKS), ""):
        raise CommandRefused(f"leave out {block}: commands are run one after the other")
    for number in filters:
        if parts[number][0] not in INSPECTION_PROGRAMS:
            raise CommandRefused(f"leave out | {parts[number][0]}")
    return [part for number, part in enumerate(parts) if number not in filters]


def _is_preparation(words: list[str] | tuple[str, ...]) -> bool:
    program = words[0].rpartition("/")[2]
    if "/" in words[0] and not words[0].startswith("/usr/"):
        return False
    if program in INSPECTION_PROGRAMS | PREPARATIONS:
        return True
    if len(words) > 1 and words[1] in _SUBCOMMANDS.get(program, ()):
        return True
    if re.fullmatch(r"python[\d.]*", program) and list(words[1:2]) == ["-m"]:
        tool = words[2:3]
        if list(tool) == ["coverage"]:
            return len(words) > 3 and words[3] in _SUBCOMMANDS["coverage"]
        return bool(tool) and tool[0] in _PYTHON_PREPARATIONS
    return False


# Runners


def _strip_launchers(step: RunnerStep) -> RunnerStep:
    """Move assignments and programs that only start others out of a step's words."""
    words, launcher, variables = list(step.words), list(step.launcher), dict(step.variables)
    while words:
        word, following = words[0], words[1:2]
        if _ASSIGNMENT.match(word):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        elif word in ("env", "exec", "time"):
            words.pop(0)
        elif word == "nice" or (word == "timeout" and len(words) > 2):
            del words[: 2 if word == "timeout" else 1]
        elif (word, *following) in (
            *(("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run")),
            *(("bundle", "exec"), ("hatch", "run"), ("rye", "run")),
        ):
            launcher += words[:2]
            del words[:2]
        elif word == "npx" or (word, *following) in (
            *(("npm", "exec"), ("pnpm", "exec"), ("yarn", "exec")),
        ):
            del words[: 1 if word == "npx" else 2]
            while words and words[0] in ("--", "--no-install", "--no", "-y", "--yes"):
                words.pop(0)
            launcher = ["npx", "--no-install"]
        else:
            break
    return replace(step, words=tuple(words), launcher=tuple(launcher), variables=variables)


def _identify_runner(step: RunnerStep, *, by_person: bool) -> RunnerStep | None:
    """Return the step with its runner, None if it starts none.

    Raises:
        CommandRefused: The runner is one of the product's own files, or an option decides.
    """
    step = _strip_launchers(step)
    if not step.words:
        return None
    if step.words[:2] == ("coverage", "run"):
        step = replace(step, words=("python3", "-m", *step.words))
    program, name = step.words[0], step.words[0].rpartition("/")[2]
    found = _identify_python_runner(step) if re.fullmatch(r"python[\d.]*", name) else None
    if found is None:
        found = _identify_other_runner(step, name)
    if found is None:
        return None
    in_modules = "node_modules/.bin/" in program and found.runner in _JS
    if "/" in program and not program.startswith("/") and not in_modules:
        raise CommandRefused(
            f"leave out {program}, a file of the product: the system's own {name} is started"
        )
    arguments = found.words if found.runner in ("pytest", "unittest") else found.words[1:]
    if not by_person and (fault := runner_option_fault(found.runner, arguments)):
        raise CommandRefused(fault)
    return found


def _identify_python_runner(step: RunnerStep) -> RunnerStep | None:
    """Return `python3 -m pytest …` as pytest with its arguments, also below `coverage run`."""
    words, place = step.words, 1
    flags = []
    while place < len(words) and words[place].startswith("-") and words[place] != "-m":
        flags.append(words[place])
        place += 1
    module = words[place + 1 : place + 2] if words[place : place + 1] == ("-m",) else ()
    if module and any(re.fullmatch(r"-[BubqsPEI]+|-X.*|-W.*", flag) is None for flag in flags):
        raise CommandRefused(f"leave out {flags[0]}: it changes how tests are run")
    rest, launcher = words[place + 2 :], (*step.launcher, words[0])
    if module == ("coverage",) and rest[:1] == ("run",):
        options, inner = _split_coverage(rest[1:])
        if inner[:1] in (("pytest",), ("unittest",)):
            return replace(
                step, runner=inner[0], words=inner[1:], launcher=(*launcher, "coverage", *options)
            )
        return None
    if module in (("pytest",), ("unittest",)):
        return replace(step, runner=module[0], words=rest, launcher=launcher)
    return None


def _split_coverage(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split what follows `coverage run` into its options and the module with its arguments."""
    if "-m" not in words:
        return words, ()
    place = words.index("-m")
    options = words[:place]
    if any(re.match(r"--(?:rcfile|concurrency|debug|plugin)", each) for each in options):
        raise CommandRefused("leave out the options of coverage but --branch, --source and -p")
    return options, words[place + 1 :]


def _identify_other_runner(step: RunnerStep, name: str) -> RunnerStep | None:
    words = step.words
    second = words[1] if len(words) > 1 else ""
    runner = ""
    if name in ("pytest", "py.test"):
        return replace(step, runner="pytest", words=words[1:], launcher=(*step.launcher, name))
    if name == "node" and "--test" in words:
        runner = "node"
    elif name in _JS or f"{name} {second}" in ("go test", "cargo test", "cargo t"):
        runner = name
    elif name in ("mvn", "mvnw") and {"test", "verify", "install", "package"} & set(words):
        runner = "maven"
    elif name in _PLAIN:
        runner = name
    return replace(step, runner=runner) if runner else None


# Following


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
            raise CommandRefused(_unknown(words))
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
                _check_words(words, by_person=self.by_person)
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
        _check_words(list(step.words), by_person=self.by_person)
        if step.words[:2] == (":", MAKE):
            step = replace(step, words=step.words[1:])
        step = _strip_launchers(step)
        if not step.words:
            return []
        if found := _identify_runner(step, by_person=self.by_person):
            self._check_python_path(found)
            return [found]
        program = step.words[0].rpartition("/")[2]
        if program in ("make", "gmake", MAKE):
            return self._follow_make(step, depth)
        if program in ("npm", "yarn", "pnpm") and not _is_preparation(step.words):
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
        if _is_preparation(step.words):
            return [step]
        raise CommandRefused(self._told(step, _unknown(step.words)))

    def _told(self, step: RunnerStep, why: str) -> str:
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
            raise CommandRefused(self._told(step, _unknown(step.words)))
        origin = replace(step, words=(), through=(*step.through, place))
        parts: list[list[str]] = []
        for number, raw in enumerate(text.replace("\\\n", " ").split("\n"), 1):
            line = raw.strip().replace('"$@"', "").replace("$@", "").strip()
            line = line.removeprefix("exec ").strip()
            if own := _TO_OWN_FOLDER.match(line):
                up = posixpath.normpath(posixpath.dirname(path) + (own[1] or "") or ".")
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
        own = words[words.index("--") + 1 :] if "--" in words else []
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
            line = f"{line} {shlex.join(own)}" if own and each == name else line
            if line:
                steps += self._follow_parts(split_runner_commands(line), origin, depth + 1)
        return steps

    def _unittest_file(self, step: RunnerStep) -> RunnerStep:
        """Return the run of a file that calls `unittest.main()`."""
        place, text = self._read(step, step.words[1])
        if "unittest.main(" not in text or not place.endswith(".py"):
            raise CommandRefused(self._told(step, _unknown(step.words)))
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
    found = set()
    for entry in product.walk():
        if entry.path.startswith(prefix) and entry.path.endswith(".py"):
            first, _, rest = entry.path[len(prefix) :].partition("/")
            if not rest or rest == "__init__.py":
                found.add(prefix + first.removesuffix(".py"))
    return sorted(found)


def _json_object(text: str, place: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandRefused(f"{place} is no valid JSON") from None
    return found if isinstance(found, dict) else {}


def runner_probe(command: str) -> str:
    """Return a command that shows whether the test runner is installed; empty if unknown."""
    try:
        parts = split_runner_commands(command)
    except CommandRefused:
        return ""
    for words in parts:
        if words[0] == "pytest":
            return "pytest --version"
        if words[1:3] == ["-m", "pytest"]:
            return f"{words[0]} -m pytest --version"
    return ""
