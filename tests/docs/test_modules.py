"""The diagram of imports includes imports by name."""

import ast

import pytest

from scripts.docs.modules import imported_modules


@pytest.mark.parametrize(
    "code",
    [
        "import activities.job.activity_context",
        "from activities.job.activity_context import PLACE",
        "importlib.import_module('activities.job.activity_context')",
        "import_module('activities.job.activity_context').PLACE",
    ],
)
def test_every_way_to_import_is_seen(code: str) -> None:
    assert list(imported_modules(ast.parse(code))) == ["activities.job.activity_context"]


def test_other_calls_are_none() -> None:
    assert list(imported_modules(ast.parse("print('activities')\nimport_module(name)"))) == []
