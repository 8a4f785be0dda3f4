"""Which kind of phase a tool belongs to: the workflow refuses it in the other."""

import pytest

from activities.toolkit.registry import REGISTRY

STRATEGIC = ["todo_write", "job_complete", "add_item", "drop_item"]
BOTH = ["todo_complete", "todo_rewind", "request_clarification", "search_tools", "search_history"]
BOTH += ["read_file", "write_file", "edit_file", "list_files", "search_files"]
TACTICAL = ["wait", "run_command", "decide_requirement", "create_requirement_node"]
PHASES = {
    **dict.fromkeys(STRATEGIC, ("strategic",)),
    **dict.fromkeys(BOTH, ("strategic", "tactical")),
    **dict.fromkeys(TACTICAL, ("tactical",)),
}


@pytest.mark.parametrize("name", PHASES)
def test_a_tool_belongs_to_its_kinds_of_phase(name: str) -> None:
    assert REGISTRY[name].phases == PHASES[name]
    assert REGISTRY[name].route.phases == list(PHASES[name])
