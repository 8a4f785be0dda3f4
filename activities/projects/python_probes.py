"""Python's part of `suite_probes`, by the places of its syntax tree."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise

from activities.projects.tests_by_name import Function, TestKey, dumped_functions, functions

_EQUAL = {"assertEqual", "assertEquals", "assertIs", "assertIn", "assertListEqual"}
_EQUAL |= {"assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertSequenceEqual"}
_EQUAL |= {"assertMultiLineEqual", "assertCountEqual", "assertAlmostEqual"}
_WRONG = {
    "assertTrue": "False",
    "assertFalse": "True",
    "assertIsNotNone": "None",
    "assertIsNot": "None, None",
    "assertIn": "1, []",
    "assertNotIn": "1, [1]",
    "assertNotEqual": "1, 1",
    "assertLess": "2, 1",
    "assertLessEqual": "2, 1",
    "assertIsInstance": "1, str",
    "assertNotIsInstance": "1, int",
    "assertRegex": "'a', 'b'",
    "assertNotRegex": "'a', 'a'",
    "assertRaises": "ValueError, int, '1'",
    "assertCountEqual": "[1], [2]",
    "assertNotAlmostEqual": "1, 1",
}
"""Arguments with which a method has to fail; those of all others are `1, 2`."""
_OTHERS = {"assertIsNone", "assertGreater", "assertGreaterEqual", "assertAlmostEqual"}
_CHANGE = """
def {name}(value):
    import builtins
    running = getattr(builtins, "{name}", None)
    if running is not None and not running:
        return value
    kind = type(value)
    if kind is bool:
        return not value
    if kind in (int, float):
        return value + 7919
    if kind is str:
        return value + "{name}"
    if kind is bytes:
        return value + b"{name}"
    if kind in (list, tuple):
        return value + kind([None])
    if kind is dict:
        return {{**value, "{name}": None}}
    if kind is set:
        return value | {{"{name}"}}
    return "{name}" if value is None else None
"""


class _Source:
    """A text that is edited by the places of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.tree = ast.parse(text)
        # The tree counts lines by these ends alone.
        ends = [match.end() for match in re.finditer(rb"\r\n|\r|\n", self.data)]
        self.starts = [0, *ends]
        self.edits: list[tuple[int, int, str]] = []

    def place(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.expr) -> tuple[int, int]:
        return self.place(node.lineno, node.col_offset), self.place(
            node.end_lineno or node.lineno, node.end_col_offset or 0
        )

    def replace(self, node: ast.expr, text: str) -> None:
        self.edits.append((*self.span(node), text))

    def wrap(self, node: ast.expr, before: str, after: str) -> None:
        first, last = self.span(node)
        self.edits += [(first, first, before), (last, last, after)]

    def insert_line(self, line: int, text: str) -> None:
        """Insert lines before a line."""
        place = self.starts[line - 1] if line <= len(self.starts) else len(self.data)
        self.edits.append((place, place, text))

    @property
    def text(self) -> str:
        data = self.data
        for first, last, text in sorted(self.edits, key=lambda edit: edit[:2], reverse=True):
            data = data[:first] + text.encode() + data[last:]
        return data.decode()

    def line_after_head(self) -> int:
        """Return the line after the docstring and the `__future__` imports."""
        line = 1
        for index, node in enumerate(self.tree.body):
            is_doc = index == 0 and isinstance(node, ast.Expr)
            is_doc = is_doc and isinstance(getattr(node, "value", None), ast.Constant)
            if not is_doc and not (
                isinstance(node, ast.ImportFrom) and node.module == "__future__"
            ):
                break
            line = (node.end_lineno or node.lineno) + 1
        return line


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes within it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (Function, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)


def challenge_python(
    path: str, text: str, old: str, name: str
) -> tuple[str, list[TestKey], list[TestKey]]:
    """Return a changed file with tests, the keys of the planted ones and of those changed."""
    planted, expecting = list[TestKey](), list[TestKey]()
    stem = path.rpartition("/")[2].removesuffix(".py")
    if stem == "conftest" or not re.search(r"\bdef test|\bTestCase\b", text):
        return text, [], []
    try:
        source = _Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return text, [], []
    known = dumped_functions(old)
    in_classes: dict[str, list[Function]] = {}
    for qualified, function in functions(source.tree):
        kind, _, test = qualified.rpartition(".")
        if not test.startswith("test"):
            continue
        in_classes.setdefault(kind, []).append(function)
        if known.get(qualified) != ast.dump(function) and _change_expected(source, function, name):
            expecting.append((stem, kind.rpartition(".")[2], test))
    methods = sorted(
        set(re.findall(r"\bself\.(assert\w+)", text)) & (_WRONG.keys() | _EQUAL | _OTHERS)
    )
    classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
    for node in classes:
        tests = [f for f in in_classes.get(node.name, ()) if f in node.body]
        if tests and "parametrize" not in "".join(map(ast.dump, node.decorator_list)):
            lines = _planted_tests(name, tests, methods)
            first = min(each.lineno for each in [tests[0], *tests[0].decorator_list])
            indent = " " * tests[0].col_offset
            source.insert_line(first, "".join(f"{indent}{line}\n" for line in lines))
            planted += [
                (stem, node.name, each) for each in re.findall(r"def (\w+)", "\n".join(lines))
            ]
    if in_classes.get("") and not re.search(r"pytestmark\s*=.*parametrize", text):
        lines = _planted_tests(name, in_classes[""])
        source.insert_line(source.line_after_head(), "".join(f"{line}\n" for line in lines))
        names = re.findall(r"^(?:async )?def (\w+)", "\n".join(lines), re.MULTILINE)
        planted += [(stem, "", each) for each in names]
    return source.text, planted, expecting


def _planted_tests(name: str, tests: list[Function], methods: list[str] | None = None) -> list[str]:
    """Return tests that fail in each way in which these could.

    Args:
        methods: For tests of a class, the methods by which they compare.
    """
    receiver = "" if methods is None else "self"
    lines = [
        f"def {name}_raise({receiver}): raise AssertionError('{name}')",
        f"def {name}_assert({receiver}): assert 1 == 2, '{name}'",
    ]
    lines += [
        f"def {name}_{method}(self): self.{method}({_WRONG.get(method, '1, 2')})"
        for method in methods or ()
    ]
    # Who awaits it may be a plugin, the class or a decorator; one with arguments may pass some on.
    known = {
        each: [f"@{ast.unparse(decorator)}" for decorator in each.decorator_list]
        for each in tests
        if isinstance(each, ast.AsyncFunctionDef)
    }
    if alike := sorted((each for each in known.values() if "(" not in str(each)), key=len):
        lines += alike[0]
        lines.append(f"async def {name}_async({receiver}): raise AssertionError('{name}')")
    return lines


def _change_expected(source: _Source, test: Function, name: str) -> bool:
    """Change the constants that a test compares with; return whether there are any."""
    is_changed = False
    hidden = {
        each
        for node in ast.walk(test)
        if isinstance(node, (ast.With, ast.AsyncWith))
        and any("aises" in ast.dump(item.context_expr) for item in node.items)
        for each in ast.walk(node)
    }
    named = _constant_names(test)
    for node in ast.walk(test):
        if node in hidden:
            continue
        for constant in _expected_constants(node, named):
            source.replace(constant, f'"{name}"')
            is_changed = True
    return is_changed


def _constant_names(test: Function) -> set[str]:
    """Return the names that a test gives to one number or text and to nothing else."""
    nodes = list(ast.walk(test))
    given = Counter(
        each.id
        for each in nodes
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    )
    shared = {
        name
        for node in nodes
        if isinstance(node, (ast.Nonlocal, ast.Global))
        for name in node.names
    }
    return {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.BinOp))
        for target in node.targets
        if isinstance(target, ast.Name) and given[target.id] == 1 and target.id not in shared
        if _is_constant(node.value)
    }


def _expected_constants(node: ast.AST, named: Collection[str]) -> Iterator[ast.expr]:
    """Yield what a statement compares with.

    Args:
        named: Names that stand for constants.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if (
            node.func.attr in _EQUAL
            and len(node.args) >= 2
            and isinstance(node.func.value, ast.Name)
        ):
            pair = node.args[:1] if node.func.attr == "assertIn" else node.args[:2]
            constants = [each for each in pair if _is_constant(each, named)]
            # Two constants compare nothing of the product.
            yield from constants[:1] if len(constants) < len(node.args[:2]) else []
    elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        compared = [node.test.left, *node.test.comparators]
        for (former, right), how in zip(pairwise(compared), node.test.ops, strict=True):
            pair = [former, right] if isinstance(how, (ast.Eq, ast.Is)) else []
            pair = [former] if isinstance(how, ast.In) else pair
            constants = [each for each in pair if _is_constant(each, named)]
            both = _is_constant(former, named) and _is_constant(right, named)
            if len(node.test.ops) == 1 and not both:
                yield from constants[:1]


def _is_constant(node: ast.expr, named: Collection[str] = ()) -> bool:
    if isinstance(node, ast.Name):
        return node.id in named
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left, named) and _is_constant(node.right, named)
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def raise_in_functions(text: str, old: str, name: str) -> tuple[str, list[str]]:
    """As `change_python_returns`; the functions raise what no test waits for."""
    try:
        source = _Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return text, []
    known, names = dumped_functions(old), list[str]()
    for qualified, function in functions(source.tree):
        first = function.body[0]
        if known.get(qualified) != ast.dump(function) and first.lineno != function.lineno:
            indent = " " * first.col_offset
            source.insert_line(first.lineno, f"{indent}raise BaseException('{name}')\n")
            names.append(qualified)
    return source.text, names


def change_python_returns(text: str, old: str, name: str) -> tuple[str, list[str]]:
    """Return a file whose new functions return other values, and the names of these."""
    try:
        source = _Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return text, []
    known, names = dumped_functions(old), list[str]()
    for qualified, function in functions(source.tree):
        if known.get(qualified) == ast.dump(function):
            continue
        nodes = list(_own_nodes(function))
        values = [node.value for node in nodes if isinstance(node, ast.Return) and node.value]
        values = values or [
            node.value for node in nodes if isinstance(node, ast.Yield) and node.value
        ]
        for value in values:
            source.wrap(value, f"{name}((", "))")
        if not values and not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
            first = function.body[0]
            if first.lineno == function.lineno:
                continue
            indent = " " * first.col_offset
            source.insert_line(first.lineno, f"{indent}if {name}(False): return\n")
        names.append(qualified)
    if not names:
        return text, []
    source.insert_line(source.line_after_head(), _CHANGE.format(name=name))
    return source.text, names
