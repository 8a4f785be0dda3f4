"""The diagram of imports sees those by name as well."""

from __future__ import annotations

import ast

import pytest

from scripts.docs.modules import imported


@pytest.mark.parametrize(
    "code",
    [
        "import activities.job.opening",
        "from activities.job.opening import PLACE",
        "importlib.import_module('activities.job.opening')",
        "import_module('activities.job.opening').PLACE",
    ],
)
def test_every_way_to_import_is_seen(code: str) -> None:
    assert list(imported(ast.parse(code))) == ["activities.job.opening"]


def test_other_calls_are_none() -> None:
    assert list(imported(ast.parse("print('activities')\nimport_module(name)"))) == []
