"""Names that other people's code may import: `docs/public.md` lists them."""

import ast
import importlib
import re
from collections.abc import Iterator

import pytest

from tests.docs.reading import ROOT, blocks, documentation_pages, page, tables

OWN = ("activities", "cli", "config", "engine", "protocol", "rehearsal", "workflows")


def public_names() -> dict[str, list[str]]:
    """Return the names of each module, from the page's first table."""
    _, _, *rows = tables(page("public.md"))[0]
    cells = [[re.findall(r"`([\w.]+)`", cell) for cell in row.split("|")] for row in rows]
    return {module: names for _, [module], names, *_ in cells}


def imports_of_examples() -> Iterator[tuple[str, str, str]]:
    """Return page, module and name of every import of ours in a documented example."""
    texts = {
        str(each.relative_to(ROOT)): each.read_text(encoding="utf-8")
        for each in documentation_pages()
    }
    codes = [(name, code) for name, text in texts.items() for code in blocks(text, "python")]
    codes += [(path.name, path.read_text()) for path in ROOT.glob("examples/python/*.py")]
    for name, code in codes:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OWN):
                for alias in node.names:
                    yield name, node.module or "", alias.name


@pytest.mark.parametrize(("module", "names"), public_names().items(), ids=str)
def test_public_names_can_be_imported(module: str, names: list[str]) -> None:
    assert names
    missing = [name for name in names if not hasattr(importlib.import_module(module), name)]
    assert missing == []


def test_a_package_exports_what_is_public_of_it() -> None:
    exported = importlib.import_module("activities.toolkit").__all__
    assert sorted(public_names()["activities.toolkit"]) == sorted(exported)


def test_documented_examples_need_only_public_names() -> None:
    public = public_names()
    imported = list(imports_of_examples())
    assert imported
    assert [each for each in imported if each[2] not in public.get(each[1], ())] == []
