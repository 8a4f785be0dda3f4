"""The rehearsal model as one who mends: it makes a linear function give what an issue says."""

from __future__ import annotations

import re

from rehearsal import programmer
from rehearsal.procedure_replay import Steps, call_procedure_tool
from rehearsal.request_view import RequestView

AGENT = "mender"
FOLDER = "repo"
TEST = "python3 -B -m unittest discover"
_PLACE = re.compile(r"^([\w./-]+\.py):\d+:", re.MULTILINE)
_RETURN = re.compile(r"^ *\d+\t( +return .*)$", re.MULTILINE)


def mend_by_examples(view: RequestView) -> Steps:
    """Find the function of the issue's examples, mend it with a test, and complete the job."""
    examples = programmer.parse_programmer_examples(view.opening)
    if not examples:
        return "The issue names no example such as feet(3) is 9.84."
    name = examples[0].name
    found = yield from call_procedure_tool("search_files", query=f"def {name}(", path=FOLDER)
    if not (place := _PLACE.search(found)):
        return f"No file defines {name}."
    source = yield from call_procedure_tool("read_file", path=place[1])
    old = _RETURN.search(source.partition(f"def {name}(")[2])
    made = programmer.feature_module_source(view.opening)
    new = next(line for line in made.splitlines() if line.strip().startswith("return"))
    module = place[1].removeprefix(f"{FOLDER}/").removesuffix(".py")
    argument = re.search(rf"def {name}\((\w+)", source)
    new = new.replace("value", argument[1] if argument else "value")
    tests = programmer.feature_test_source(module, view.opening)
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
