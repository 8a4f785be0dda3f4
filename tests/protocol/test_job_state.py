"""Copies of a job's state."""

from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import ScopeItem
from protocol.todo_list import Todo


def test_a_copy_is_equal_and_shares_nothing() -> None:
    todos = [Todo(id=1, content="Look.", items=["S1"])]
    phase = Phase(number=2, kind="tactical", purpose="work", name="Look", todos=todos)
    state = JobState(
        step=3, phase=phase, scope=[ScopeItem(id="S1", text="Tea")], found_tools=["wait"]
    )
    copy = state.deep_copy()
    assert copy == state
    copy.seen.add_work(["output/tea.md"])
    copy.complete_todo(1, "done")
    copy.found_tools.append("find")
    assert (state.phase.open_count, state.found_tools) == (1, ["wait"])
    assert [item.status for item in state.items_changed_since(copy.scope)] == ["open"]
    assert state.items_changed_since(state.scope) == []
