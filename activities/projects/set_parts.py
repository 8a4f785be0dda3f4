"""The parts of other modules that a source sets, as `json.dumps = faster`.

Of the standard library and of test runners any is meant, of other packages one that becomes a
function or class of the source: many are set up by values.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator

from activities.projects.stand_ins import MODULES

_IN_NODE = re.compile(
    r"(?:assert|buffer|child_process|console|crypto|dns|events|fs|https?|module|net|os|path|process"
    r"|stream|test|timers|tls|url|util|vm|zlib)(?:/|$)"
)
_MEANT_TO_BE_SET = re.compile(
    r"sys\.(?!modules\b)|warnings\.(?:show|format)warning$|threading\.excepthook$"
    r"|.*\.(?:argtypes|restype|errcheck)$|builtins\._$"
)
"""Attributes by which modules of Python are set up."""
_REQUIRED = re.compile(
    r"\b(?:const|let|var)\s+(\w+)\s*=\s*require\(\s*['\"](?:node:)?([^'\"./][^'\"]*)"
    r"|\bimport\s+(?:\*\s+as\s+)?(\w+)\s+from\s*['\"](?:node:)?([^'\"./][^'\"]*)"
)
_SET_IN_NODE = re.compile(
    r"\s*(\w+)((?:\.\w+)+)\s*=(?![=>])\s*(.*)"
    r"|\s*Object\.(?:assign|definePropert(?:y|ies))\(\s*(\w+)\s*,"
)
_FUNCTION_IN_NODE = re.compile(r"(?:async\b|function\b|\([^()]*\)\s*=>|\w+\s*=>)")
_Found = tuple[int, int, str, ast.expr | None]


def set_parts(text: str, is_own: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Yield the parts that a file of Python sets, as `module.part`, each with its lines.

    Args:
        is_own: Whether a module at the top is the product's.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    tops = {name: top for name, top in imported_tops(text).items() if not is_own(top)}
    defined = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    parts = _Parts(tops)
    parts.collect(tree)
    for first, last, name, value in parts.found:
        top = name.partition(".")[0]
        replaces = isinstance(value, ast.Lambda) or (
            isinstance(value, ast.Name) and value.id in defined
        )
        is_known = top in sys.stdlib_module_names or top in MODULES or top == "__main__"
        if not is_own(top) and (is_known or replaces) and not _MEANT_TO_BE_SET.match(name):
            yield from ((line, name) for line in range(first, last + 1))


def imported_tops(text: str) -> dict[str, str]:
    """Return the names that a file of Python imports, each with the module at the top."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    names = dict[str, str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                names[each.asname or top] = top
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            top = node.module.partition(".")[0]
            names |= {each.asname or each.name: top for each in node.names}
    return names


class _Parts(ast.NodeVisitor):
    def __init__(self, tops: dict[str, str]) -> None:
        self.tops = tops
        self.imported = set(tops)
        self.local = [set[str]()]
        self.found = list[_Found]()

    def collect(self, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and isinstance(node.value, (ast.Name, ast.Attribute))
                and (named := self._dotted(node.value))
            ):
                self.tops.setdefault(node.targets[0].id, named)
        self.visit(tree)

    def _dotted(self, node: ast.expr) -> str:
        """Return `module.part` for a part of another module; else empty."""
        if isinstance(node, ast.Name):
            return "" if node.id in self.local[-1] else self.tops.get(node.id, "")
        if isinstance(node, ast.Attribute):
            inside = self._dotted(node.value)
            return f"{inside}.{node.attr}" if inside else ""
        if isinstance(node, ast.Call) and node.args:
            imports = ast.unparse(node.func).endswith(("__import__", "import_module"))
            return _constant_text(node.args[0]) if imports else ""
        if isinstance(node, ast.Subscript) and self._dotted(node.value) == "sys.modules":
            return _constant_text(node.slice)
        return ""

    def _add(self, node: ast.stmt | ast.expr, name: str, value: ast.expr | None) -> None:
        self.found.append((node.lineno, node.end_lineno or node.lineno, name, value))

    def _set(self, node: ast.stmt, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._set(node, each, value)
        elif isinstance(target, ast.Attribute) and (name := self._dotted(target)):
            self._add(node, name, value)
        elif isinstance(target, ast.Subscript):
            inside, key = target.value, _constant_text(target.slice)
            if self._dotted(inside) == "sys.modules" and key:
                self._add(node, key, value)
            if isinstance(inside, ast.Call) and inside.args and ast.unparse(inside.func) == "vars":
                inside = ast.Attribute(inside.args[0], "__dict__")
            if (name := self._dotted(inside)).endswith(".__dict__"):
                self._add(node, f"{name.removesuffix('.__dict__')}.{key}", value)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._set(node, target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._set(node, node.target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._set(node, node.target, node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "setattr"
            and len(node.args) == 3
            and (inside := self._dotted(node.args[0]))
        ):
            self._add(node, f"{inside}.{_constant_text(node.args[1])}", node.args[2])
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        local = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        local |= self.imported & {
            each.id
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        self.local.append(self.local[-1] | local)
        self.generic_visit(node)
        self.local.pop()

    visit_AsyncFunctionDef = visit_FunctionDef


def _constant_text(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def set_parts_in_node(text: str) -> Iterator[tuple[int, str]]:
    """As `set_parts`, of JavaScript and by lines."""
    modules = {a or c: b or d for a, b, c, d in _REQUIRED.findall(text)}
    for number, line in enumerate(text.splitlines(), 1):
        if not (match := _SET_IN_NODE.match(line)):
            continue
        name, parts, value, changed = match.groups()
        module = modules.get(name or changed, "")
        if _IN_NODE.match(module):
            yield number, f"{module}{parts or ''}"
        elif module and parts:
            is_shallow = parts.count(".") == 1 or ".prototype." in parts
            is_function = _FUNCTION_IN_NODE.match(value) or re.search(
                rf"\b(?:function|class)\s+{re.escape(value.rstrip(';') or '?')}\b", text
            )
            if is_shallow and is_function:
                yield number, f"{module}{parts}"
