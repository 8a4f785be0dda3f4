"""The diagram of imports sees those by name as well."""

from __future__ import annotations

import ast

import pytest

from scripts.docs.modules import imported


@pytest.mark.parametrize(
    "code",
    [
        "import activities.opening",
        "from activities.opening import PLACE",
        "importlib.import_module('activities.opening')",
        "import_module('activities.opening').PLACE",
    ],
)
def test_every_way_to_import_is_seen(code: str) -> None:
    assert list(imported(ast.parse(code))) == ["activities.opening"]


def test_other_calls_are_none() -> None:
    assert list(imported(ast.parse("print('activities')\nimport_module(name)"))) == []
