"""Older tests that pass with a work only as it changed them, or what they stand on.

All that belongs to the tests is put back as it was before the work, and the command runs once more:
however a test was weakened, this shows what it no longer sees.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from activities.checkpoints import Files, FilesError
from activities.projects.change_review import SOURCES, ChangeReview, imports_file, words_of
from activities.projects.runner_reports import RunCounts
from activities.projects.stand_ins import is_decider
from activities.projects.tests_by_name import (
    Function,
    earlier_text,
    is_test_file,
    only_asserts,
    test_key,
)

MOST_RUNS = 2
"""Most runs: a test may fail by chance, and a file that cannot be loaded hides those beside it."""
_FOR_TESTS = re.compile(r"^\s*(?:import|from)\s+(?:unittest|pytest)\b", re.MULTILINE)
_LOADED_BY_ITSELF = re.compile(r"(?:^|/)(?:conftest\.py|__init__\.py|__mocks__/.*)$")


@dataclass(frozen=True)
class OlderTests:
    """The tests of a product before a work, beside the product with the work."""

    product: Files
    before: Files
    known: Sequence[str]
    """Names of the tests that passed before the work."""

    def fitted(self, run: Callable[[Files], RunCounts | None], counts: RunCounts) -> list[str]:
        """Return the tests that pass with the work, and not as they were before it.

        Args:
            run: Runs the command on a product.
            counts: The run on the product with the work.
        """
        now, put_back = set(map(test_key, counts.named("passed"))), self._changed_for_tests
        doubted = [name for name in self.known if put_back and test_key(name) in now]
        unloadable = list[str]()
        for _ in range(MOST_RUNS if doubted else 0):
            ran = run(self._as_before(put_back))
            if ran is None or not ran.ended:
                # Which one hangs or ends the run is not known: first those that were changed.
                doubted = _in_files(doubted, put_back) or doubted
                break
            passed = set(ran.named("passed"))
            # Names of cases may have a time or an address, so that as many are asked for.
            few = Counter(map(test_key, self.known)) - Counter(map(test_key, passed))
            doubted = [name for name in doubted if name not in passed and test_key(name) in few]
            broken = ran.others & set(put_back)
            unloadable += _in_files(doubted, broken)
            doubted = [name for name in doubted if name not in unloadable]
            put_back = [path for path in put_back if path not in broken]
            if not doubted:
                break
        return [name for name in self.known if name in {*doubted, *unloadable}]

    def _as_before(self, paths: Collection[str]) -> Files:
        files = self.product
        for path in paths:
            parts = tuple(path.split("/"))
            with suppress(FilesError):  # a file is where its folder was
                files = files.with_tree_entry(parts, self.before.tree_entry(parts))
        return files

    @cached_property
    def _changed_for_tests(self) -> list[str]:
        """Return the changed files that belong to the tests; none if no older test can notice."""
        files = [{each.path: each for each in f.walk()} for f in (self.before, self.product)]
        then, now = files
        old = [path for path in then if path not in now or now[path].id != then[path].id]
        new = [path for path in now if path not in then]
        modules = {PurePosixPath(path).name for path in now if not is_test_file(path)}
        changed = self._serving_tests(old)
        noticed = [
            path
            for path in filter(is_test_file, new)
            if now[path].size
            and (_LOADED_BY_ITSELF.search(path) or PurePosixPath(path).name in modules)
        ]
        if not (changed or noticed):
            return []
        of_product = ChangeReview(self.before, None, changed).used_as_code()
        of_product |= ChangeReview(self.product, None, new).used_as_code()
        return [
            path
            for path in (*filter(is_test_file, new), *changed)
            if path not in of_product and not self._follows_move(path)
        ]

    def _follows_move(self, path: str) -> bool:
        """Return whether a test file of Python has only new tests and other imports than it had,
        of modules of the product that were moved.
        """
        old, new = earlier_text(self.before, path), earlier_text(self.product, path)
        if not (path.endswith(".py") and old and new):
            return False
        kept, known = set(new.splitlines()), set(old.splitlines())
        removed = [line for line in known - kept if line.strip()]
        gone = {
            PurePosixPath(each.path.removesuffix("/__init__.py")).stem
            for each in self.before.walk()
            if each.path.endswith(".py") and self.product.entry(each.path) is None
        }
        added = "\n".join(line for line in kept - known if _IMPORTS.match(line))
        tests = [each.path for each in self.product.walk() if is_test_file(each.path)]
        return (
            bool(removed)
            and all(_IMPORTS.match(line) and words_of(line) & gone for line in removed)
            and not any(imports_file(added, path, each) for each in tests if each != path)
            and _beside_tests(old) == _beside_tests(new)
        )

    def _serving_tests(self, paths: Sequence[str]) -> list[str]:
        """Return those of some files of the product before that have tests or serve tests alone."""
        of_tests = {each.partition("::")[0] for each in self.known}
        others = [each for each in paths if not (is_test_file(each) or each in of_tests)]
        review = ChangeReview(self.product, self.before, paths)
        python = {p: earlier_text(self.before, p) for p in others if p.endswith(".py")}
        helpers = {p for p, text in python.items() if _FOR_TESTS.search(text) or only_asserts(text)}
        data = [path for path in others if not (path.endswith(SOURCES) or is_decider(path))]
        serving = (helpers - review.imported(helpers)) | review.named_by_tests_alone(data)
        return [path for path in paths if path not in others or path in serving]


_IMPORTS = re.compile(r"\s*(?:import|from)\s")


def _beside_tests(text: str) -> str:
    """Return the syntax of a file without its imports and tests."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [
                each
                for each in body
                if not isinstance(each, (ast.Import, ast.ImportFrom))
                and not (isinstance(each, Function) and each.name.startswith("test"))
            ]
    return ast.dump(tree)


def _in_files(names: Sequence[str], paths: Collection[str]) -> list[str]:
    return [name for name in names if name.partition("::")[0] in paths]
