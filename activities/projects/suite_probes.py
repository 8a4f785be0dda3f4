"""Changes to a product under which its tests have to fail: a suite that does not proves nothing.

Failing tests are planted beside those of the product, expected values in tests are changed, and so
are the values that the product's functions return. Python is read by its syntax tree, other
languages line by line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from activities.checkpoints import FileEntry, Files

TestKey = tuple[str, str, str]
"""A test by the stem of its file, its class (or an empty text) and its name."""
MAX_BYTES = 1_000_000
MAX_PARTS = 8
"""Most changes that are tried one by one where all together cannot be built."""
PYTHON = frozenset({".py"})
LANGUAGES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("pytest", "unittest"), PYTHON),
    **dict.fromkeys(
        ("node", "jest", "vitest", "mocha"),
        frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"}),
    ),
    "go": frozenset({".go"}),
    "cargo": frozenset({".rs"}),
}
"""Endings of the files that a runner's tests are about."""
_OF_TESTS = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|e2e|testing)/|(?:^|/)(?:test_[^/]*|tests?\.\w+)$"
    r"|[._-]test\.\w+$|[._]spec\.\w+$|(?:^|/)conftest\.py$"
)
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


def is_test_file(path: str) -> bool:
    """Return whether a file belongs to the tests, by its folder or name."""
    return _OF_TESTS.search(path) is not None


@dataclass
class Challenge:
    """A changed product, and the tests that have to fail in it."""

    product: Files
    planted: dict[TestKey, str] = field(default_factory=dict)
    """Planted tests; each is expected only if a test of the same class and file passed before."""
    changed: dict[TestKey, str] = field(default_factory=dict)
    """Tests whose expected values were changed, with the paths of their files."""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """Paths and contents of files in which only one line is changed."""
    names: list[str] = field(default_factory=list)
    """Functions of the product, or its files, that were changed."""


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


def python_test_keys(product: Files) -> dict[TestKey, str]:
    """Map the tests that the files of a product define to the paths of these files."""
    found: dict[TestKey, str] = {}
    for entry, text in source_texts(product, PYTHON):
        if is_test_file(entry.path) and "test" in text:
            stem = entry.path.rpartition("/")[2].removesuffix(".py")
            for qualified in _dumped_functions(text):
                kind, _, name = qualified.rpartition(".")
                if name.startswith("test"):
                    found[stem, kind.rpartition(".")[2], name] = entry.path
    return found


def changed_tests(before: Files, product: Files, path: str) -> list[str]:
    """Return what a test file that was there says otherwise now, or no more.

    Of a Python file the functions, helpers among them; of another the file itself.
    """
    old = earlier_text(before, path)
    if not path.endswith(".py"):
        return [path] if old else []
    now = _dumped_functions(earlier_text(product, path))
    return [
        f"{path}::{name}" for name, body in _dumped_functions(old).items() if now.get(name) != body
    ]


def challenge_tests(
    product: Files, before: Files | None, endings: frozenset[str], name: str
) -> Challenge:
    """Plant failing tests, and change the expected values of tests that are new.

    Args:
        name: A name that occurs nowhere in the product; it begins with `test_`.
    """
    challenge = Challenge(product)
    for entry, text in source_texts(product, endings):
        if "node_modules/" in entry.path:
            continue
        old = earlier_text(before, entry.path)
        if ".py" in endings:
            changed = _challenge_python(entry.path, text, old, name, challenge)
        else:
            changed = _challenge_lines(entry.path, text, old, name, challenge)
        if changed != text:
            challenge.product = challenge.product.write(entry.path, changed.encode())
    return challenge


def change_returned_values(
    product: Files, before: Files | None, endings: frozenset[str], name: str
) -> Challenge:
    """Change what the functions return that are new or differ from the accepted ones."""
    challenge = Challenge(product)
    for entry, text in source_texts(product, endings):
        old = earlier_text(before, entry.path)
        if text == old or is_test_file(entry.path):
            continue
        if ".py" in endings:
            changed, names = _change_python_returns(text, old, name)
            challenge.names += [f"{each}() in {entry.path}" for each in names]
        else:
            changed = _change_lines(entry.path, text, old, challenge)
            challenge.names += [entry.path] if changed != text else []
        if changed != text:
            challenge.product = challenge.product.write(entry.path, changed.encode())
    challenge.parts = challenge.parts[:: max(1, len(challenge.parts) // MAX_PARTS)][:MAX_PARTS]
    return challenge


# Python


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


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{above}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _functions(node, above)


def _dumped_functions(text: str) -> dict[str, str]:
    try:
        return {name: ast.dump(node) for name, node in _functions(ast.parse(text))}
    except (SyntaxError, ValueError, RecursionError):
        return {}


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes within it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (Function, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)


def _challenge_python(path: str, text: str, old: str, name: str, challenge: Challenge) -> str:
    stem = path.rpartition("/")[2].removesuffix(".py")
    if stem == "conftest" or not re.search(r"\bdef test|\bTestCase\b", text):
        return text
    try:
        source = _Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    known = _dumped_functions(old)
    in_classes: dict[str, list[Function]] = {}
    for qualified, function in _functions(source.tree):
        kind, _, test = qualified.rpartition(".")
        if not test.startswith("test"):
            continue
        in_classes.setdefault(kind, []).append(function)
        if known.get(qualified) != ast.dump(function) and _change_expected(source, function, name):
            challenge.changed[stem, kind.rpartition(".")[2], test] = path
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
            challenge.planted |= {
                (stem, node.name, each): path for each in re.findall(r"def (\w+)", "\n".join(lines))
            }
    if in_classes.get("") and not re.search(r"pytestmark\s*=.*parametrize", text):
        lines = _planted_tests(name, in_classes[""])
        source.insert_line(source.line_after_head(), "".join(f"{line}\n" for line in lines))
        challenge.planted |= {
            (stem, "", each): path
            for each in re.findall(r"^(?:async )?def (\w+)", "\n".join(lines), re.MULTILINE)
        }
    return source.text


def _planted_tests(name: str, tests: list[Function], methods: list[str] | None = None) -> list[str]:
    """Return tests that fail in each way in which these could.

    Args:
        methods: For tests of a class, the methods by which they compare.
    """
    own = "" if methods is None else "self"
    lines = [
        f"def {name}_raise({own}): raise AssertionError('{name}')",
        f"def {name}_assert({own}): assert 1 == 2, '{name}'",
    ]
    lines += [
        f"def {name}_{method}(self): self.{method}({_WRONG.get(method, '1, 2')})"
        for method in methods or ()
    ]
    known = [each for each in tests if isinstance(each, ast.AsyncFunctionDef)]
    # A plain one may be the business of a fixture or a plugin.
    if known := known if own else [each for each in known if not each.decorator_list]:
        lines += _decorators(known[0])
        lines.append(f"async def {name}_async({own}): raise AssertionError('{name}')")
    return lines


def _decorators(test: Function) -> list[str]:
    texts = [ast.unparse(each) for each in test.decorator_list]
    return [f"@{each}" for each in texts if each.startswith("pytest.mark.") and "(" not in each]


def _change_expected(source: _Source, test: Function, name: str) -> bool:
    """Change the constants that a test compares with; return whether there are any."""
    found = False
    hidden = {
        each
        for node in ast.walk(test)
        if isinstance(node, (ast.With, ast.AsyncWith))
        and any("aises" in ast.dump(item.context_expr) for item in node.items)
        for each in ast.walk(node)
    }
    for node in ast.walk(test):
        if node in hidden:
            continue
        for constant in _expected_constants(node):
            source.replace(constant, f'"{name}"')
            found = True
    return found


def _expected_constants(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if (
            node.func.attr in _EQUAL
            and len(node.args) >= 2
            and isinstance(node.func.value, ast.Name)
        ):
            pair = node.args[:1] if node.func.attr == "assertIn" else node.args[:2]
            constants = [each for each in pair if _is_constant(each)]
            # Two constants compare nothing of the product.
            yield from constants[:1] if len(constants) < len(node.args[:2]) else []
    elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        compared = [node.test.left, *node.test.comparators]
        for (left, right), how in zip(pairwise(compared), node.test.ops, strict=True):
            pair = [left, right] if isinstance(how, (ast.Eq, ast.Is)) else []
            pair = [left] if isinstance(how, ast.In) else pair
            constants = [each for each in pair if _is_constant(each)]
            if len(node.test.ops) == 1 and not (_is_constant(left) and _is_constant(right)):
                yield from constants[:1]


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return all(map(_is_constant, node.elts))
    if isinstance(node, ast.Dict):
        return all(each is not None and _is_constant(each) for each in [*node.keys, *node.values])
    return False


def _change_python_returns(text: str, old: str, name: str) -> tuple[str, list[str]]:
    try:
        source = _Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return text, []
    known, names = _dumped_functions(old), list[str]()
    for qualified, function in _functions(source.tree):
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


# Other languages


_LITERAL = r"(-?\d+(?:\.\d+)?|\"[^\"\\\n]*\"|'[^'\\\n]*'|true|false|null)(?=\s*[,)])"
_FIRST = r"[^\"'`,]+(?:\([^()]*\))?[^\"'`,]*, "
"""A first argument without texts and commas of its own."""
_EXPECTATIONS = {
    ".go": re.compile(rf"!= {_LITERAL.replace('[,)]', r'(?:{|[|]{2})')}"),
    ".rs": re.compile(rf"\bassert_eq!\({_FIRST}{_LITERAL}"),
    "": re.compile(
        rf"(?:(?<!\.not)\.to(?:Be|Equal)\(|\b(?:equal|(?:deepS|s)trictEqual|deepEqual|is)\({_FIRST})"
        rf"{_LITERAL}"
    ),
}
_TITLES = {
    ".go": re.compile(r"^func (?:\(.*?\) )?(\w+)\("),
    ".rs": re.compile(r"^\s*(?:pub )?(?:async )?fn (\w+)\("),
    "": re.compile(
        r"\b(?:test|it)(?:\.\w+)?\(\s*[\"'`]([^\"'`]+)[\"'`]|^(?:async )?(function|const|let|var)\b"
    ),
}
"""Where tests begin, and functions that are none."""
_PLANTED = {
    ".rs": '\n#[test]\nfn {name}() {{ panic!("{name}") }}\n',
    ".go": '\nfunc {name}(t *testing.T) {{ t.Fatal("{name}") }}\n',
}


def _kind(path: str) -> str:
    ending = path[path.rfind(".") :]
    return ending if ending in (".go", ".rs") else ""


def _challenge_lines(path: str, text: str, old: str, name: str, challenge: Challenge) -> str:
    kind = _kind(path)
    plain = {
        ".go": "testing.T" in text and path.endswith("_test.go"),
        ".rs": "#[test]" in text,
        "": re.search(r"\b(?:test|it)(?:\.\w+)?\(", text) is not None and is_test_file(path),
    }
    if not plain[kind]:
        return text
    lines, known, title = text.split("\n"), set(old.split("\n")), ""
    for number, line in enumerate(lines):
        if match := _TITLES[kind].search(line):
            title = match[1] or ""
        is_check = kind != ".go" or re.search(
            r"\.(?:Error|Fatal|Fail)", "".join(lines[number:][:3])
        )
        if not title or line in known or not is_check:
            continue
        changed = _EXPECTATIONS[kind].sub(
            lambda found: found[0].removesuffix(found[1]) + _other_literal(found[1], kind), line
        )
        if changed != line:
            lines[number] = changed
            challenge.changed["", "", title] = path
    if kind == ".go":
        # The tests of a folder are one package.
        name = f"Test_{name}_{len(challenge.planted)}"
    challenge.planted["", "", name] = path
    return "\n".join(lines) + _planted_text(kind, text, name)


def _planted_text(kind: str, text: str, name: str) -> str:
    if kind:
        return _PLANTED[kind].format(name=name)
    is_module = re.search(r"^\s*(?:import|export)\b", text, re.MULTILINE) is not None
    fails = f"('{name}', () => {{ throw new Error('{name}'); }});\n"
    for module in ("node:test", "vitest", "@jest/globals"):
        if re.search(rf"['\"]{module}['\"]", text):
            if is_module:
                return f"\nimport {{ test as {name} }} from '{module}';\n{name}{fails}"
            return f"\n;require('{module}').test{fails}"
    # A module of the product may look like a test and be loaded without a runner.
    return f"\n;(globalThis.test || globalThis.it || (() => {{}})){fails}"


def _other_literal(literal: str, kind: str) -> str:
    if literal in ("true", "false"):
        return "false" if literal == "true" else "true"
    if literal == "null":
        return '"changed"'
    if literal[0] in "\"'":
        # A single quote of Go and Rust is one character.
        return literal if kind and literal[0] == "'" else f"{literal[:-1]} changed{literal[-1]}"
    return f"({literal} + 1.5)" if "." in literal or not kind else f"({literal} ^ 1)"


_SWAPS = {"+": "-", "-": "+", "*": "+", "/": "*", "<": ">=", ">": "<=", "==": "!=", "!=": "=="}
_SWAPS |= {"<=": ">", ">=": "<", "&&": "||", "||": "&&", "===": "!==", "!==": "==="}
_SWAPPED = re.compile(
    r"(?<= )(===|!==|==|!=|<=|>=|&&|\|\||[-+*/<>])(?= )"
    r"|(?<![\w.\[])(\d+)(?![\w.\]])|\b(true|false)\b|(\"[^\"\\\n{}$%]+\")"
)
_LEFT = re.compile(
    r"^\s*(?:import|export \*|export \{|use |package |module |//|#|\*|/\*|mod |extern |@"
    r"|const \w+ = require|struct |type |enum |impl|\}|func \(?\w*\)? *$)|\bfrom ['\"]|require\("
)
_RETURNED = re.compile(r"^(\s*return )([^;{}]+?)(;?\s*)$")
_CHANGE_IN_JS = (
    '((v)=>typeof v==="number"?v+7919:typeof v==="string"?v+"x":typeof v==="boolean"?!v:'
    'Array.isArray(v)?[...v,null]:v==null?"x":v.constructor===Object?{...v,changed:1}:v)'
)


def _change_lines(path: str, text: str, old: str, challenge: Challenge) -> str:
    """Change what new lines return, swap their operators and change their literals.

    Tests within the file are left as they are.
    """
    known, lines = set(old.split("\n")), text.split("\n")
    changed = list(lines)
    for number, line in enumerate(lines):
        if "#[cfg(test)]" in line or "#[test]" in line:
            break
        if line in known or _LEFT.search(line):
            continue
        changed[number] = _change_line(path, line)
        if changed[number] != line:
            part = [*lines[:number], changed[number], *lines[number + 1 :]]
            challenge.parts.append((path, "\n".join(part)))
        if zero := _RETURNS.match(line):
            value = f"*new({zero[1]})" if zero[1] else "Default::default()"
            part = [*lines[: number + 1], f"if true {{ return {value} }}", *lines[number + 1 :]]
            challenge.parts.append((path, "\n".join(part)))
            challenge.names.append(path)
    return "\n".join(changed)


_RETURNS = re.compile(r"\s*(?:func .*\) ([\w.\[\]*]+)|(?:pub(?:\([^)]*\))? )?fn .*-> .*) \{$")
"""The head of a function of Go or Rust that returns one value."""


def _change_line(path: str, line: str) -> str:
    returned = None if _kind(path) else _RETURNED.match(line)
    if returned and all(returned[2].count(a) == returned[2].count(b) for a, b in ("()", "[]")):
        return f"{returned[1]}{_CHANGE_IN_JS}({returned[2]}){returned[3]}"
    if re.search(r"\b(?:fn|func|function|class|let mut \w+: \[|for)\b", line):
        head, brace, body = line.partition("{")
        return line if re.search(r"\bfor\b", head) else head + brace + _SWAPPED.sub(_swap, body)
    return _SWAPPED.sub(_swap, line)


def _swap(found: re.Match[str]) -> str:
    if found[1]:
        return _SWAPS[found[1]]
    if found[2]:
        return str(int(found[2]) ^ 1)
    if found[3]:
        return "false" if found[3] == "true" else "true"
    return f'{found[4][:-1]} changed"'
