"""The tests of a product: their files, their names as runners report them, and Python's by text."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from activities.checkpoints import FileEntry, Files
from activities.projects.known_runners import KNOWN_RUNNERS

TestKey = tuple[str, str, str]
"""A test by the stem of its file, its class (or an empty text) and its name."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
MAX_BYTES = 1_000_000
PYTHON = frozenset({".py"})
_OF_TESTS = re.compile(
    r"(?:^|/)(?:tests?|specs?|t|__tests__|e2e|testing)/|(?:^|/)(?:test_[^/]*|tests?\.\w+)$"
    r"|[._-]test\.\w+$|[._]spec\.\w+$|(?:^|/)conftest\.py$"
)


@dataclass(frozen=True)
class PythonTest:
    """A test as its file defines it."""

    path: str
    body: str
    """Its syntax with its name, without its docstring."""
    checks: Sequence[tuple[str, int]]
    """The statements that can fail it by themselves, with how many values each compares."""

    @property
    def strength(self) -> int:
        return sum(size for _, size in self.checks)


def is_test_file(path: str) -> bool:
    """Return whether a file belongs to the tests, by its folder or name."""
    return _OF_TESTS.search(path) is not None


def test_key(name: str) -> TestKey:
    """Return the key of a test of pytest or unittest by its reported name."""
    name = re.sub(r"(?: \(.*\)|\[.*\])$", "", name, flags=re.DOTALL)
    if "::" in name:
        path, *inner = name.split("::")
        stem = path.rpartition("/")[2].partition(".")[0]
        return stem, inner[-2] if len(inner) > 1 else "", inner[-1]
    *modules, kind, test = name.rsplit(".", 2) if name.count(".") > 1 else ("", "", name)
    stem = modules[0].rpartition(".")[2].rpartition("/")[2] if modules else ""
    return stem, kind, test


def endings_of(runners: set[str]) -> frozenset[str]:
    """Return the endings of the files that the tests of these runners are about."""
    return frozenset().union(*(KNOWN_RUNNERS[runner].endings for runner in runners))


def source_texts(
    product: Files, endings: Iterable[str], *, only: Collection[str] | None = None
) -> Iterator[tuple[FileEntry, str]]:
    """Yield each file of a language that can be decoded.

    Args:
        only: Paths of the files that are meant; None for all.
    """
    known = tuple(endings)
    for entry in product.walk():
        if only is not None and entry.path not in only:
            continue
        if entry.kind == "file" and entry.path.endswith(known) and entry.size <= MAX_BYTES:
            try:
                yield entry, product.read_entry(entry).decode()
            except UnicodeDecodeError:
                continue


def earlier_text(before: Files | None, path: str) -> str:
    """Return a file as last accepted; empty if there is none."""
    if before is None or (entry := before.entry(path)) is None or entry.kind != "file":
        return ""
    return before.read_entry(entry).decode(errors="replace")


_PRINTS = re.compile(r"print|(?:logging|logger|log|_log)\.\w+")
"""Calls that check nothing."""


def python_tests(product: Files, *, helpers: bool = False) -> dict[TestKey, PythonTest]:
    """Return the tests that the Python files of a product define.

    Args:
        helpers: Whether other functions of these files are wanted as well.
    """
    by_key: dict[TestKey, PythonTest] = {}
    for entry, text in source_texts(product, PYTHON):
        if is_test_file(entry.path):
            stem = entry.path.rpartition("/")[2].removesuffix(".py")
            for qualified, function in _parsed_functions(text):
                kind, _, name = qualified.rpartition(".")
                if helpers or name.startswith("test"):
                    by_key[stem, kind.rpartition(".")[2], name] = _python_test(entry.path, function)
    return by_key


def _python_test(path: str, test: Function) -> PythonTest:
    checks = tuple((ast.dump(node), size) for node in ast.walk(test) if (size := _check_size(node)))
    if ast.get_docstring(test, clean=False) is not None:
        del test.body[0]
    return PythonTest(path, ast.dump(test), checks)


def _check_size(node: ast.AST) -> int:
    """Return what a statement compares, as a number; 0 for one that checks nothing."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return len(node.items)
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(call, ast.Call) or _PRINTS.fullmatch(ast.unparse(call.func)):
            return 0
        return max(1, _operands(*call.args))
    return _operands(node.test) if isinstance(node, ast.Assert) else 0


def _operands(*values: ast.expr) -> int:
    """Return how many different values are compared; a text or a number alone is none."""
    values_compared, pending, constant = set[str](), list(values), True
    while pending:
        value = pending.pop()
        if isinstance(value, ast.Compare):
            pending += [value.left, *value.comparators]
        elif isinstance(value, (ast.BoolOp, ast.Tuple)):
            pending += value.values if isinstance(value, ast.BoolOp) else value.elts
        elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
            pending.append(value.operand)
        else:
            values_compared.add(ast.dump(value))
            constant = constant and isinstance(value, ast.Constant)
    return 0 if constant else len(values_compared)


def changed_tests(before: Files, product: Files, path: str) -> list[str]:
    """Return what a test file that was there says otherwise now, or no more.

    Of a Python file the functions, helpers among them; of another the file itself.
    """
    old = earlier_text(before, path)
    if not path.endswith(".py"):
        return [path] if old else []
    now = dumped_functions(earlier_text(product, path))
    return [
        f"{path}::{name}" for name, body in dumped_functions(old).items() if now.get(name) != body
    ]


def functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{above}{node.name}.")
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from functions(node, above)


def _parsed_functions(text: str) -> list[tuple[str, Function]]:
    try:
        return list(functions(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return []


def dumped_functions(text: str) -> dict[str, str]:
    return {name: ast.dump(node) for name, node in _parsed_functions(text)}


def only_asserts(text: str) -> bool:
    """Return whether a Python file has functions, and each asserts and returns nothing."""
    nodes = [list(ast.walk(node)) for _, node in _parsed_functions(text)]
    return bool(nodes) and all(
        any(isinstance(each, ast.Assert) for each in inner)
        and not any(isinstance(each, ast.Return) and each.value for each in inner)
        for inner in nodes
    )
