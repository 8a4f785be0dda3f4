"""Facts cross packages as types: no package looks for the words of a sentence of another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("activities", "cli", "config", "engine", "protocol", "rehearsal", "workflows")
MODELS = {"rehearsal"}
"""It plays the model, which has nothing but the words it is sent."""
FROM_OUTSIDE = {
    "activities.acceptance.reviewer_quotes",  # of documents
    "activities.mcp.call_errors",  # of MCP servers
    "activities.model.endpoint_wordings",  # of model endpoints
    "cli.jobs.job_view",  # of Temporal: a query that failed has only its message
    "config.guard_files",  # of Pydantic
}
"""Modules that read words of others, some of which the product happens to write as well."""
MATCHING = {
    "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split",
    "rsplit", "find", "rfind", "index", "count", "replace", "compile", "match", "search",
    "fullmatch", "findall", "finditer", "sub",
}  # fmt: skip
"""Methods of texts and functions of `re` whose first argument is looked for."""
WORDS = re.compile(r"[A-Za-z]{3,}\W* |[,;:.] ?[A-Za-z]{3,}| [A-Za-z]{3,}")
"""What a text must have to be a piece of a sentence."""
OPERATORS = re.compile(r"\\.|[\^$.|?*+()\[\]{}]")
"""What divides a pattern into plain texts."""


class Module:
    """A module's constants, and the texts that it writes and looks for."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name, self.package = name, name.partition(".")[0]
        self.tree = tree
        self.constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        self.imported = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def written(self) -> Iterator[str]:
        """Yield the texts of the module that are neither documentation nor looked for."""
        looked_for = {
            id(part) for node in self._matches() for part in ast.walk(self._value_of(node))
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                looked_for.add(id(node.value))
            match node:
                case ast.Constant(value=str(text)) if id(node) not in looked_for:
                    yield text

    def looked_for(self, modules: dict[str, Module]) -> Iterator[tuple[int, str, str]]:
        """Yield line, text and owning package of each piece of a sentence that is looked for."""
        for node in self._matches():
            for text, owner in self._texts(node, modules):
                for piece in OPERATORS.split(text):
                    if WORDS.search(piece):
                        yield node.lineno, piece, owner

    def _matches(self) -> Iterator[ast.expr]:
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(func=ast.Attribute(attr=name), args=[text, *_]) if name in MATCHING:
                    yield text
                case ast.Compare(left=text, ops=[ast.In() | ast.NotIn()]):
                    yield text

    def _value_of(self, node: ast.expr) -> ast.expr:
        """Return the constant that is only looked for under this name, else the node itself."""
        if not isinstance(node, ast.Name) or node.id not in self.constants:
            return node
        uses = sum(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(self.tree))
        matches = sum(isinstance(n, ast.Name) and n.id == node.id for n in self._matches())
        return node if uses > matches + 1 else self.constants[node.id]

    def _texts(self, node: ast.expr, modules: dict[str, Module]) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, self.package
        elif isinstance(node, (ast.Tuple, ast.List)):
            for each in node.elts:
                yield from self._texts(each, modules)
        elif isinstance(node, ast.JoinedStr):
            for each in node.values:
                inner = each.value if isinstance(each, ast.FormattedValue) else each
                yield from self._texts(inner, modules)
        elif isinstance(node, ast.Name) and node.id in self.constants:
            yield from self._texts(self.constants[node.id], modules)
        elif isinstance(node, ast.Name) and node.id in self.imported:
            module, name = self.imported[node.id]
            if module in modules and name in modules[module].constants:
                yield from modules[module]._texts(modules[module].constants[name], modules)


def read_modules() -> dict[str, Module]:
    modules = {}
    for package in PACKAGES:
        for path in (REPOSITORY / package).rglob("*.py"):
            name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
            modules[name] = Module(name, ast.parse(path.read_text()))
    return modules


def foreign_sentences(modules: dict[str, Module]) -> Iterator[str]:
    """Yield where a package looks for words that another package writes."""
    written = {
        package: "\0".join(
            text for each in modules.values() if each.package == package for text in each.written()
        )
        for package in {each.package for each in modules.values()}
    }
    for module in modules.values():
        if module.package in MODELS or module.name in FROM_OUTSIDE:
            continue
        for line, text, owner in module.looked_for(modules):
            writers = {name for name, texts in written.items() if text in texts} - {*MODELS, owner}
            is_own = owner == module.package and (not writers or text in written[owner])
            if not is_own:
                yield f"{module.name}:{line} looks for {text!r} of {', '.join({owner, *writers})}"


def test_no_package_looks_for_the_words_of_another() -> None:
    assert sorted(foreign_sentences(read_modules())) == []


def fakes(**sources: str) -> dict[str, Module]:
    names = {name.replace("__", "."): text for name, text in sources.items()}
    return {name: Module(name, ast.parse(text)) for name, text in names.items()}


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        ("text.startswith('told ')", True),
        ("BEGIN = 'told '\nrest = text.removeprefix(BEGIN)", True),
        ("re.compile(r'told (\\d+) jobs at work')", True),
        ("' jobs at work' in text", True),
        ("from workflows.acts import TOLD\ntext.startswith(TOLD)", True),
        ("text.startswith('# Phase ')", False),
        ("text == 'told '", False),
        ("first, _, rest = text.partition(',')", False),
    ],
)
def test_words_of_another_package_are_found(reader: str, found: bool) -> None:
    writer = "TOLD = 'told '\ntext = f'told {count} jobs at work'"
    assert bool(list(foreign_sentences(fakes(cli__a=reader, workflows__acts=writer)))) is found
    assert list(foreign_sentences(fakes(workflows__a=reader, workflows__acts=writer))) == []
