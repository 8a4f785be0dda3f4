"""The rehearsal model as a programmer: it can only implement linear functions.

A feature with examples such as `feet(3) is 0.9144` becomes the line through the first two of them,
with a test for each. If the other examples are not on this line, their tests fail.
"""

import re
from dataclasses import dataclass

from rehearsal.procedure_replay import Steps, call_procedure_tool
from rehearsal.request_view import RequestView

_NUMBER = r"-?\d+(?:\.\d+)?"
_EXAMPLE = re.compile(rf"\b([a-z]\w*)\(({_NUMBER})\)\s+is\s+({_NUMBER})")
_FAILED = re.compile(r"^(?:FAIL|ERROR): (\w+)|^(\w*(?:Error|Exception): .*)", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """An expected result of a function of one number."""

    name: str
    argument: str
    result: str


def parse_programmer_examples(description: str) -> list[Example]:
    """Return the examples of the first function that a description mentions."""
    examples = [Example(*groups) for groups in _EXAMPLE.findall(description.replace("`", ""))]
    return [example for example in examples if example.name == examples[0].name]


def feature_module_path(feature: str) -> str:
    return feature.replace("-", "_")


def feature_module_source(description: str) -> str:
    docstring = " ".join(description.replace('"', "'").replace("\\", "/").split())[:90]
    examples = parse_programmer_examples(description)
    if not examples:
        return f'"""{docstring}"""\n\nMADE = True\n'
    x1, y1 = float(examples[0].argument), float(examples[0].result)
    x2, y2 = (
        (float(examples[1].argument), float(examples[1].result)) if examples[1:] else (0.0, 0.0)
    )
    slope = (y2 - y1) / (x2 - x1) if x2 != x1 else 0.0
    return (
        f'"""{docstring}"""\n\n\n'
        f"def {examples[0].name}(value: float) -> float:\n"
        f"    return value * {round(slope, 12)!r} + {round(y1 - slope * x1, 12)!r}\n"
    )


def feature_test_source(feature: str, description: str) -> str:
    """Return the source of a feature's tests, one for each example."""
    module, examples = feature_module_path(feature), parse_programmer_examples(description)
    lines = [f'"""Tests of {feature}."""', "", "import unittest", "", f"import {module}", "", ""]
    lines += ["class Examples(unittest.TestCase):"]
    for number, each in enumerate(examples, 1):
        shown = f"{each.name}({each.argument})"
        lines += [
            *([""] if number > 1 else []),
            f"    def test_example_{number}(self):",
            f'        self.assertAlmostEqual({module}.{shown}, {each.result}, 6, "{shown}")',
        ]
    if not examples:
        lines += ["    def test_made(self):", f"        self.assertTrue({module}.MADE)"]
    return "\n".join([*lines, ""])


def programmer_test_command(feature: str) -> str:
    """Return the command that runs those tests in the repository's top folder."""
    return f"python3 -B -m unittest -v tests.test_{feature_module_path(feature)}"


def programmer_test_in_workspace(folder: str, feature: str) -> str:
    """Return the command that runs them from the workspace; it leaves no files behind."""
    return f"cd {folder} && {programmer_test_command(feature)}"


def programmer_test_findings(result: str) -> list[str]:
    """Return what a test run found wrong; empty if it succeeded."""
    if result.startswith("Exit code 0."):
        return []
    named = [": ".join(filter(None, groups)) for groups in _FAILED.findall(result)]
    return [" · ".join(named)[:700] or f"The tests did not run: {' '.join(result.split())[:300]}"]


MENDER = "mender"
FOLDER = "repo"
TEST = "python3 -B -m unittest discover"
_PLACE = re.compile(r"^([\w./-]+\.py):\d+:", re.MULTILINE)
_RETURN = re.compile(r"^ *\d+\t( +return .*)$", re.MULTILINE)


def mend_by_examples(view: RequestView) -> Steps:
    """Find the function of the issue's examples, mend it with a test, and complete the job."""
    examples = parse_programmer_examples(view.opening)
    if not examples:
        return "The issue names no example such as feet(3) is 9.84."
    name = examples[0].name
    hits = yield from call_procedure_tool("search_files", query=f"def {name}(", path=FOLDER)
    if not (place := _PLACE.search(hits)):
        return f"No file defines {name}."
    source = yield from call_procedure_tool("read_file", path=place[1])
    old = _RETURN.search(source.partition(f"def {name}(")[2])
    module_source = feature_module_source(view.opening)
    new = next(line for line in module_source.splitlines() if line.strip().startswith("return"))
    module = place[1].removeprefix(f"{FOLDER}/").removesuffix(".py")
    argument = re.search(rf"def {name}\((\w+)", source)
    new = new.replace("value", argument[1] if argument else "value")
    tests = feature_test_source(module, view.opening)
    path = f"{FOLDER}/test_{module}_{name}.py"
    yield [
        ("edit_file", {"path": place[1], "old": old[1] if old else "", "new": new}),
        ("write_file", {"path": path, "content": tests}),
        ("run_command", {"command": f"cd {FOLDER} && {TEST}"}),
    ]
    summary = (
        f"Give what {name}() is for\n\nIt returned another value than the issue's examples name. "
        "The function now goes through them, and a test has each."
    )
    claim = {"summary": summary, "deliverables": [place[1], path], "confidence": 0.9}
    yield [("job_complete", claim)]
    return "The job is complete."
