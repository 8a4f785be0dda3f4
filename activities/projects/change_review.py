"""What no run decides of a change: lines that fit the tests alone, and files that only look like
tests. Whoever accepts the change reads of it.
"""

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from activities.checkpoints import Files
from activities.projects.known_runners import KNOWN_RUNNERS
from activities.projects.stand_ins import is_decider
from activities.projects.tests_by_name import earlier_text, is_test_file, source_texts

MAX_LINE = 80
SOURCES = (
    *sorted({ending for runner in KNOWN_RUNNERS.values() for ending in runner.endings}),
    *(".rb", ".java", ".kt", ".php", ".cs", ".c", ".cc", ".cpp"),
)
_COMMENT = re.compile(r"\s*(?://|#(?!\[|!|include|define|if|el|end)|/?\*|--|;)|\s*$")
_IMPORT = re.compile(r"^.*?\b(?:import|from|require|include|use|mod)\b.*$", re.MULTILINE)
_LITERAL = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|\"[^\"\n]+\"|'[^'\n]+'")
_COMMON = frozenset({"0", "1", "-1", "2", "0.0", "1.0"})
_COMPARES = re.compile(r"[=!]==?|\bcase\b|=>|\bwhen\b|\bin\b|\.equals\(|\beq\b")
_CHOOSES = re.compile(r"\bif\b|\?|:|=>|\bcase\b|\bwhen\b")
_COUNTS = re.compile(r"\blen\(|%|\.length\b")
_REPLACES = re.compile(
    r"\s*(?:(?:setattr\(\s*)?(?=\w+,\s*[\"']\w+[\"']\s*,)|(?=\w+\.\w+\s*=(?!=)))(\w+)"
)
_NUMBER = r"\d+(?:\.\d+)?"
_TOLERANCE = re.compile(
    rf"\b(?:delta|abs|abs_tol)\s*=\s*({_NUMBER})|\)\s*<=?\s*({_NUMBER})|\bplaces\s*=\s*-(\d)"
)
_TEXT = r"Expr\(value=Constant\(value=['\"]"
_CALL = re.compile(r"(?!abs\b)\b[\w.]+\([^()=]*\)")


@dataclass(frozen=True)
class ChangeReview:
    """The changed files of a product, beside what they were."""

    product: Files
    before: Files | None
    paths: Sequence[str]

    def code(self) -> list[str]:
        """Return the files in which more than comments and docstrings differs."""
        texts = {path: (self.old(path), self.new(path)) for path in self.paths}
        return [path for path, (old, new) in texts.items() if _bare(path, old) != _bare(path, new)]

    def used_as_code(self) -> set[str]:
        """Return the files that are named like tests and that the product imports."""
        return self.imported({path for path in self.paths if is_test_file(path)})

    def imported(self, named: Collection[str]) -> set[str]:
        """Return those of some files that the product imports, beside its tests."""
        imported = set[str]()
        for entry, text in source_texts(self.product, SOURCES) if named else ():
            if not is_test_file(entry.path):
                lines = "\n".join(_IMPORT.findall(text))
                imported |= {path for path in named if imports_file(lines, entry.path, path)}
        return imported

    def serves_tests(self, path: str) -> bool:
        """Return whether a file has tests, or whether it or its folder is named in their code."""
        if path.endswith(SOURCES) and re.search(
            r"test|spec|^__init__", PurePosixPath(path).name, re.I
        ):
            return True
        sources = source_texts(self.product, SOURCES)
        tests = {entry.path: text for entry, text in sources if is_test_file(entry.path)}
        folders = {PurePosixPath(each).parent.name for each in tests}
        names = {PurePosixPath(path).stem, PurePosixPath(path).parent.name} - folders
        texts = [text for each, text in tests.items() if each != path]
        return any(re.search(rf"(?<!\w){re.escape(n)}(?!\w)", t) for n in names for t in texts)

    def named_by_tests_alone(self, paths: Collection[str]) -> set[str]:
        """Return the files that tests, as they were, name by name or folder, and the product not.

        Of a file that they name, the folder says nothing.
        """
        if self.before is None or not paths:
            return set()
        old, new = (source_texts(each, SOURCES) for each in (self.before, self.product))
        tests = "\n".join(text for entry, text in old if is_test_file(entry.path))
        code = "\n".join(text for entry, text in new if not is_test_file(entry.path))
        alone = set[str]()
        for path in paths:
            names = (PurePosixPath(path).name, PurePosixPath(path).parent.name)
            words = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in names if name]
            if (word := next((w for w in words if w.search(tests)), None)) and not word.search(
                code
            ):
                alone.add(path)
        return alone

    def special_cases(self, tests: Collection[str]) -> list[str]:
        """Return the changed lines of code that compare with a value of the changed tests."""
        lines = [line for path in tests for _, line in self.added(path)]
        values, shown = literals_of("\n".join(lines)), []
        for path in (each for each in self.paths if each.endswith(SOURCES) and each not in tests):
            known, added = literals_of(self.old(path)), self.added(path)
            for place, (number, line) in enumerate(added):
                fitting = (literals_of(line) & values) - known
                near = literals_of("\n".join(each for _, each in added[place : place + 3])) & values
                is_chosen = _CHOOSES.search(line) and (len(fitting) > 1 or near - fitting)
                is_plain = all(re.fullmatch(r"[^\W\d][\w-]*", each) for each in fitting)
                compares = is_chosen or (_COMPARES.search(line) and not is_plain)
                if fitting and compares and not _COUNTS.search(line):
                    shown.append(shown_line(path, number, line))
        return shown

    def answers_in_data(self, tests: Collection[str], issue: str) -> list[str]:
        """Return lines of data for the code that is mostly values of the changed tests.

        Args:
            issue: What was asked for: values that it names alone are no answers.
        """
        values = literals_of("\n".join(line for path in tests for _, line in self.added(path)))
        data = [
            path
            for path in self.paths
            if not (path.endswith(SOURCES) or is_test_file(path) or is_decider(path))
            and self.product.entry(path)
        ]
        sources = source_texts(self.product, SOURCES) if data and values else ()
        code = "\n".join(text for entry, text in sources if not is_test_file(entry.path))
        shown = list[str]()
        for path in data:
            name = PurePosixPath(path)
            added = self.added(path)
            new = literals_of("\n".join(line for _, line in added))
            fitting = new & values
            answers = {
                each for each in fitting if not re.search(rf"(?<!\w){re.escape(each)}(?!\w)", issue)
            }
            if answers and len(fitting) > 1 and 2 * len(fitting) >= len(new):
                read = re.search(
                    rf"(?<!\w){re.escape(name.stem)}(?:{re.escape(name.suffix)}|['\"])", code
                )
                lines = [each for each in added if literals_of(each[1]) & answers] if read else []
                shown += [shown_line(path, *each) for each in lines[:1]]
        return shown

    def new_names(self, text: str) -> set[str]:
        """Return the words of a text that only the changed code has."""
        code = [path for path in self.paths if not is_test_file(path)]
        known = {word for path in code for word in words_of(self.old(path))}
        new = {word for path in code for word in words_of(self.new(path))}
        new |= {PurePosixPath(path).stem for path in code if not self.old(path)}
        return new & words_of(text) - known

    def replaced_parts(self, tests: Iterable[str]) -> list[str]:
        """Return the lines of changed tests that put something else in the place of a module's."""
        return [
            shown_line(path, number, line)
            for path in tests
            for number, line in self.added(path)
            if (match := _REPLACES.match(line))
            and match[1] in words_of("\n".join(_IMPORT.findall(self.new(path))))
        ]

    def wide_tolerances(self) -> list[str]:
        """Return the new lines of tests that accept 0 in the place of what they expect."""
        return [
            shown_line(path, number, line)
            for path in filter(is_test_file, self.paths)
            for number, line in self.added(path)
            if _accepts_nothing(_CALL.sub("", line))
        ]

    def old(self, path: str) -> str:
        return earlier_text(self.before, path)

    def new(self, path: str) -> str:
        return earlier_text(self.product, path)

    def added(self, path: str) -> list[tuple[int, str]]:
        """Return the lines that a file did not have, with their numbers."""
        known, lines = set(self.old(path).splitlines()), self.new(path).splitlines()
        return [each for each in enumerate(lines, 1) if each[1].strip() and each[1] not in known]


def _accepts_nothing(line: str) -> bool:
    """Return whether the tolerance in a line is at least the number that it expects."""
    match = _TOLERANCE.search(line)
    expected = (
        [float(each) for each in re.findall(_NUMBER, line.replace(match[0], ""))] if match else []
    )
    if not match or not expected:
        return False
    return (10.0 ** int(match[3]) / 2 if match[3] else float(match[1] or match[2])) >= min(expected)


def shown_line(path: str, number: int, line: str) -> str:
    return f"{path}:{number} `{line.strip()[:MAX_LINE]}`"


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d]\w+", text))


def literals_of(text: str) -> set[str]:
    return {each.strip("\"'") for each in _LITERAL.findall(text)} - _COMMON


def _bare(path: str, text: str) -> object:
    """Return a source without comments and docstrings."""
    if not path.endswith(".py"):
        return [line.rstrip() for line in text.splitlines() if not _COMMENT.match(line)]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [each for each in body if not re.match(_TEXT, ast.dump(each))]
    return ast.dump(tree)


def imports_file(lines: str, importer: str, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    stem, parent = re.escape(name.partition(".")[0]), re.escape(folder.rpartition("/")[2])
    beside = importer.rpartition("/")[0] == folder
    pattern = rf"\b{stem}\b" if beside else rf"\b{parent}\b(?:[./\\]+|\s+import\b.*)\b{stem}\b"
    return re.search(pattern, lines) is not None
