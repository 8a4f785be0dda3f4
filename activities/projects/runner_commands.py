"""Words of test commands: which start a known runner, and which decide what a run shows."""

import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.commands import sandbox
from activities.projects.known_runners import runner_option_fault
from config.schema.agent import AgentConfig
from config.schema.shell import ShellConfig
from protocol.project_start import ProjectStart
from protocol.short_text import as_sentence, one_line, shorten_to_end

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
KNOWN = (
    "pytest, unittest, node --test, jest, vitest, mocha, go test, cargo test, mvn, "
    "phpunit, rspec, ctest, prove, tap or tape"
)
_JS = frozenset({"jest", "vitest", "mocha", "tap", "tape"})
_TAP_VIEW = re.compile(r"tap-[\w-]+|faucet|tspec")
"""Programs that show the TAP of the tests before a pipe."""
_COVERAGE = ("c8", "nyc")
"""Programs that start a JavaScript runner and measure its coverage."""
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
            check_command_words(words, by_person=by_person)
        if all(words[0] in INSPECTION_PROGRAMS | {"cd"} for words in parts):
            return "it runs no test: it only looks at files or prints"
        for words in parts:
            identify_runner(RunnerStep(tuple(words)), by_person=by_person)
    except CommandRefused as refused:
        return str(refused)
    return ""


def unknown_command_text(words: list[str] | tuple[str, ...]) -> str:
    return (
        f"`{shlex.join(words)}` is no test runner that the system knows, so that nothing of it is "
        f"counted: start {KNOWN} (a project's file can accept a command by its exit code "
        "alone, with `exit_code_only: true`)"
    )


def check_command_words(words: list[str], *, by_person: bool) -> None:
    for word in words:
        if VARIABLES.match(word) and not by_person:
            raise CommandRefused(f"leave out {word.partition('=')[0]}=, which decides what is run")
    if words and words[0] in FORBIDDEN:
        raise CommandRefused(f"leave out {words[0]}: the exit code has to be that of the tests")
    if any(word.startswith("#") for word in words):
        raise CommandRefused("leave the comment out")
    program = words[0].rpartition("/")[2].rstrip("0123456789.")
    options = words[1 : words.index("-m")] if "-m" in words else words[1:]
    if set(options) & _INLINE.get(program, frozenset()) and "--test" not in words:
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
        program = parts[number][0].rpartition("/")[2]
        if parts[number][0] not in INSPECTION_PROGRAMS and not _TAP_VIEW.fullmatch(program):
            raise CommandRefused(f"leave out | {parts[number][0]}")
    return [part for number, part in enumerate(parts) if number not in filters]


def is_preparation_command(words: list[str] | tuple[str, ...]) -> bool:
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


def strip_launchers(step: RunnerStep) -> RunnerStep:
    """Move assignments and programs that only start others out of a step's words."""
    words, launcher, variables = list(step.words), list(step.launcher), dict(step.variables)
    while words:
        word, following = words[0], words[1:2]
        if _ASSIGNMENT.match(word):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        elif word in ("env", "exec", "time", "cross-env"):
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
        elif word in _COVERAGE:
            runner = next((n for n, each in enumerate(words) if each in _JS | {"node"}), 1)
            del words[:runner]
        else:
            break
    return replace(step, words=tuple(words), launcher=tuple(launcher), variables=variables)


def identify_runner(step: RunnerStep, *, by_person: bool) -> RunnerStep | None:
    """Return the step with its runner, None if it starts none.

    Raises:
        CommandRefused: The runner is one of the product's own files, or an option decides.
    """
    step = strip_launchers(step)
    if not step.words:
        return None
    if step.words[:2] == ("coverage", "run"):
        step = replace(step, words=("python3", "-m", *step.words))
    program, name = step.words[0], step.words[0].rpartition("/")[2]
    identified = _identify_python_runner(step) if re.fullmatch(r"python[\d.]*", name) else None
    if identified is None:
        identified = _identify_other_runner(step, name)
    if identified is None:
        return None
    in_modules = "node_modules/.bin/" in program and identified.runner in _JS
    if "/" in program and not program.startswith("/") and not in_modules:
        raise CommandRefused(
            f"leave out {program}, a file of the product: the system's own {name} is started"
        )
    arguments = (
        identified.words if identified.runner in ("pytest", "unittest") else identified.words[1:]
    )
    if not by_person and (fault := runner_option_fault(identified.runner, arguments)):
        raise CommandRefused(fault)
    return identified


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


# What a project needs


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


SECONDS = 60
"""Time limit of one command."""
MAX_SHOWN = 150
"""Characters shown of a command's output."""
REMEDY = (
    "Install it where the sandbox sees it: with the system's packages, or in a virtual environment "
    "that shell.readable and shell.path name (for a project under `set`, docs/sandbox.md)"
)


def required_commands(start: ProjectStart) -> list[str]:
    """Return the commands that must work: those in `needs` and the runners of settled tests."""
    runners = [runner_probe(test.command) for test in start.tests.values()]
    return list(dict.fromkeys(filter(None, [*start.needs, *runners])))


def failing_required_command(start: ProjectStart, agents: Iterable[AgentConfig]) -> str:
    """Return the first need that fails for one of the agents, and why; empty if none does."""
    commands = required_commands(start)
    shells = {config.shell.model_dump_json(): config.shell for config in agents} if commands else {}
    for shell in shells.values():
        if shell.setup:
            # What the commands need may not be installed before a job's files are there.
            continue
        for command in commands:
            if why := _required_command_problem(command, shell):
                return as_sentence(f"The project needs `{one_line(command, 100)}`, which {why}")
    return ""


def _required_command_problem(command: str, shell: ShellConfig) -> str:
    with tempfile.TemporaryDirectory(prefix="needs-") as folder:
        try:
            ended = sandbox.run_sandboxed_command(command, Path(folder), shell, SECONDS)
        except sandbox.SandboxUnavailable as problem:
            return f"cannot be run: {problem}"
    if ended.exit_code == 0:
        return ""
    how = ended.trouble or f"exit code {ended.exit_code}"
    output = one_line(shorten_to_end(ended.output.strip(), MAX_SHOWN), MAX_SHOWN)
    return f"fails in the sandbox ({how}{f': {output}' if output else ''}). {REMEDY}"
