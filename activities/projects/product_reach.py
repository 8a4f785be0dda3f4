"""Where new code of a product reaches beyond it: to modules that are not its own, to tests, and to
switches that only tests set. No run shows it; whoever accepts the change reads of it.
"""

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from activities.projects.change_review import SOURCES, ChangeReview, shown_line, words_of
from activities.projects.set_parts import imported_tops, set_parts, set_parts_in_node
from activities.projects.stand_ins import MODULES
from activities.projects.tests_by_name import PYTHON, is_test_file, source_texts

_HAS_TESTS = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")
_TEXT = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`")
_FROM_HERE = re.compile(r"__file__|__dirname|\bcwd\b|import\.meta|\bGetwd\b|CARGO_MANIFEST_DIR")
_LOOKS_AT = re.compile(
    r"\b(?:open|isdir|isfile|exists|is_dir|is_file|glob|listdir|scandir|walk|Path|stat|existsSync"
    r"|readdir\w*|statSync|ReadDir|Stat|Open|ReadFile)\(\s*$"
)
_FOR_TOOLS = re.compile(
    r"(?:^|/)(?:setup|noxfile|tasks|fabfile|dodo|conf)\.py$|\.config\.\w+$"
    r"|(?:^|/)(?:Gruntfile|gulpfile)\."
)
_SWITCH = re.compile(
    r"(?:environb?(?:\.(?:get|pop|setdefault)\(|\[)|\b(?:getenv|Getenv|LookupEnv)\("
    r"|\benv::var(?:_os)?\(|\bENV(?:\.fetch\(|\[)|\bprocess\.env\[)\s*b?['\"](\w+)['\"]"
    r"|\bprocess\.env\.(\w+)|['\"](\w+)['\"]\s+(?:not\s+)?in\s+(?:os\.)?environ\b"
)
_COMMON_SWITCH = re.compile(
    r"(?:XDG|LC|GIT|HTTPS?|NO|PYTHON)_\w+|HOME|PATH|USER|USERNAME|USERPROFILE|SHELL|TERM|TZ|LANG"
    r"|LANGUAGE|COLUMNS|LINES|CI|EDITOR|VISUAL|PAGER|BROWSER|TMPDIR|TEMP|TMP|DISPLAY|APPDATA"
    r"|LOCALAPPDATA|FORCE_COLOR|COLORTERM|NODE_ENV|DEBUG|PWD",
    re.I,
)
_ARGUMENTS = re.compile(r"\b(?:sys\.argv|process\.argv|os\.Args|env::args)\b")
_RUNNERS = frozenset({"discover", "unittest", "pytest", "jest", "vitest", "mocha"})


@dataclass(frozen=True)
class ProductReach:
    """The new code of a product, beside its tests."""

    review: ChangeReview
    tests: Collection[str]
    """Changed files that belong to the tests alone."""
    issue: str
    """What was asked for: whatever it names is meant."""
    command: str = ""
    """The command that runs the tests."""

    @cached_property
    def _code(self) -> list[str]:
        review = self.review
        code = [each for each in review.paths if each.endswith(SOURCES) and each not in self.tests]
        return [each for each in code if review.product.entry(each) is not None]

    def taken_names(self, failed: Collection[str] = ()) -> list[str]:
        """Return new modules of Python that are found in the place of others of their name.

        Args:
            failed: Tests that failed before the work: what they import may have been missing.
        """
        before = self.review.before
        folders = {
            path.rpartition("/")[0] for path in self._python_paths if _HAS_TESTS.search(path)
        }
        new = {path: name for path, name in self._modules(self._python_paths, folders).items()
               if path in self.review.paths}  # fmt: skip
        if before is None or not new:
            return []
        old = [entry.path for entry in before.walk() if entry.path.endswith(".py")]
        known, used = set(self._modules(old, folders).values()), set[str]()
        inside = {PurePosixPath(part).stem for path in old for part in path.split("/")}
        for entry, text in source_texts(before, PYTHON):
            if is_test_file(entry.path) and PurePosixPath(entry.path).stem not in str(failed):
                used |= set(imported_tops(text).values()) - inside
        taken = (sys.stdlib_module_names | used) - known
        return [path for path, name in new.items() if name in taken]

    @cached_property
    def _python_paths(self) -> list[str]:
        return [entry.path for entry in self.review.product.walk() if entry.path.endswith(".py")]

    @staticmethod
    def _modules(paths: Collection[str], folders: Collection[str]) -> dict[str, str]:
        """Return the files that Python finds by one name, from the top or beside tests."""
        packages = {each.rpartition("/")[0] for each in paths if each.endswith("/__init__.py")}
        names = dict[str, str]()
        for path in paths:
            folder, _, name = path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")
            is_top = folder in ("", "src") or folder.endswith("/src") or folder in folders
            if is_top and folder not in packages and name != "__init__":
                names[path] = name
        return names

    def changed_modules(self) -> list[str]:
        """Return the new lines that set a part of a module or class that is not the product's."""
        shown, asked = [], words_of(self.issue)
        for path in self._code:
            before, found = set[str](), list[tuple[int, str]]()
            if path.endswith(".py"):
                found = list(set_parts(self.review.new(path), self._is_own))
                before = self._set_before if found else before
            elif path.endswith((".js", ".mjs", ".cjs", ".ts")):
                found = list(set_parts_in_node(self.review.new(path)))
                old = set_parts_in_node(self.review.old(path))
                before = {name.partition(".")[0] for _, name in old}
            added = dict(self.review.added(path))
            shown += [
                shown_line(path, number, added[number])
                for number, name in found
                if number in added
                and name.partition(".")[0] not in before
                and not set(name.split(".")[-2:]) <= asked
            ]
        return shown

    @cached_property
    def _set_before(self) -> set[str]:
        """The modules that the product changed before, as one does that is made for it."""
        texts = source_texts(self.review.before, PYTHON) if self.review.before else ()
        return {
            name.partition(".")[0]
            for entry, text in texts
            if not is_test_file(entry.path)
            for _, name in set_parts(text, self._is_own)
        }

    def _is_own(self, top: str) -> bool:
        if top in sys.stdlib_module_names or top in MODULES:
            return f"{top}.py" in self._python_paths or f"{top}/__init__.py" in self._python_paths
        return any(
            top == PurePosixPath(part).stem
            for path in self._python_paths
            for part in path.split("/")
        )

    def looks_at_tests(self) -> list[str]:
        """Return the new lines that look at files of the tests, how these are run, or at an
        environment variable that only new tests set.
        """
        lines = [
            (path, number, line)
            for path in self._code
            if not _FOR_TOOLS.search(path)
            for number, line in self.review.added(path)
        ]
        switches = self._switches_of_tests({name for *_, line in lines for name in _switches(line)})
        return [
            shown_line(path, number, line)
            for path, number, line in lines
            if switches & _switches(line)
            or self._names_test_file(path, line)
            or self._names_command(line)
        ]

    def _switches_of_tests(self, names: set[str]) -> set[str]:
        lines = [line for path in self.tests for _, line in self.review.added(path)]
        names &= words_of("\n".join(lines)) if names else set()
        names -= words_of(self.issue)
        for entry in self.review.before.walk() if names and self.review.before else ():
            names -= words_of(self.review.old(entry.path)) if entry.kind == "file" else set()
        return names

    @cached_property
    def _test_files(self) -> tuple[set[str], set[str]]:
        """The names of test files that no other file has, and the folders of tests."""
        paths = [entry.path for entry in self.review.product.walk() if entry.kind == "file"]
        tests = {path for path in paths if is_test_file(path)}
        others = {PurePosixPath(path).name for path in paths if path not in tests}
        folders = {
            path[: path.index("/")]
            for path in tests
            if "/" in path and is_test_file(f"{path[: path.index('/')]}/x")
        }
        return {PurePosixPath(path).name for path in tests} - others, folders

    def _names_test_file(self, path: str, line: str) -> bool:
        files, folders = self._test_files
        for match in _TEXT.finditer(line):
            text = next(filter(None, match.groups())).removeprefix("./").rstrip("/")
            first, _, rest = text.partition("/")
            if text in files or PurePosixPath(text).name in files - {"__init__.py"}:
                is_named = True
            elif first in folders and len(first) > 1:
                looked_at = _LOOKS_AT.search(line[: match.start()])
                is_named = bool(looked_at or _FROM_HERE.search(line) or self._is_there(text, rest))
            else:
                continue
            asked = rf"(?<![\w/]){re.escape(text)}(?:/|['\"`])" if not rest else re.escape(text)
            if is_named and not re.search(asked, self.issue) and text not in self.review.old(path):
                return True
        return False

    def _is_there(self, path: str, rest: str) -> bool:
        """Return whether a path below a folder of tests is one of the product's."""
        paths = (each.path for each in self.review.product.walk())
        return bool(rest) and any(f"{each}/".startswith(f"{path}/") for each in paths)

    def _names_command(self, line: str) -> bool:
        words = {*_RUNNERS, *(each for each in self.command.split() if each.isalpha())}
        texts = {text for match in _TEXT.finditer(line) for text in match.groups() if text}
        return bool(_ARGUMENTS.search(line) and texts & words - words_of(self.issue))


def _switches(line: str) -> set[str]:
    names = {name for match in _SWITCH.finditer(line) for name in match.groups() if name}
    return {name for name in names if not _COMMON_SWITCH.fullmatch(name)}
