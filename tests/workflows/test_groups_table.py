"""Parallel groups in every state, without any job: waves, work sent back, the end."""

import json
from typing import Any

from protocol.job_record import MOST_BYTES
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_units import Group
from protocol.routing import routing_problems
from tests.workflows.project_records import Play, routing, started
from workflows.projects.project_result import project_result
from workflows.projects.project_status import project_status_answer
from workflows.rules.groups import routing_frame_of_groups
from workflows.rules.project_moves import EndProject, ParkProject, WaitForJobs
from workflows.rules.project_units import block_project_unit
from workflows.runtime.inbox import Inbox

ITEMS = ["green tea", "black tea", "cups", "spoons", "sugar"]
DONE = ChildWork(commit="c1")


def grouped(**items: list[str]) -> list[dict[str, Any]]:
    return [{"id": name, "title": name, "items": ids} for name, ids in items.items()]


def divided(parallel: int = 4, **items: list[str]) -> Play:
    play = Play(started("groups", items=ITEMS[: len(items)], parallel=parallel))
    play.one(routing(groups=grouped(**items)))
    return play


def group(project: ProjectRecord, name: str) -> Group:
    return next(each for each in project.groups if each.id == name)


def test_the_manager_divides_first_and_its_division_is_held_against_the_scope() -> None:
    play = Play(started("groups", items=ITEMS))
    [move] = play.start()
    assert (move.job, move.handoff.report) == ("tea.scope-manager-1", "groups")
    assert move.handoff.routing
    assert move.handoff.routing.required == ["S1", "S2", "S3", "S4", "S5"]


def test_groups_run_side_by_side_up_to_the_limit() -> None:
    play = divided(2, a=["S1"], b=["S2"], c=["S3"])
    first, second = play.start()
    assert play.moves == [WaitForJobs()]
    play.end(first.job, DONE)
    assert play.jobs == ["tea.c-worker-1"]
    play.start()
    play.end(second.job, DONE)
    assert play.moves == [WaitForJobs()]


def test_after_a_wave_the_manager_always_runs_and_the_next_wave_waits_for_it() -> None:
    play = Play(started("groups", items=ITEMS[:2]))
    play.one(routing(groups=[*grouped(a=["S1"]), {**grouped(b=["S2"])[0], "after": ["a"]}]))
    play.one(DONE)
    assert play.jobs == ["tea.scope-manager-2"]
    play.one(routing(groups=[]))
    assert play.jobs == ["tea.b-worker-1"]
    assert group(play.project, "b").wave == 2


def test_a_group_that_fails_does_not_take_others_with_it() -> None:
    play = divided(a=["S1"], b=["S2"])
    a, b = play.start()
    play.end(a.job, status="failed", reason="no water")
    assert play.jobs == ["tea.a-worker-2"]
    play.one(ChildWork(commit="c2", problems=["There is no a.md."]))
    assert group(play.project, "a").status == "blocked"
    assert group(play.project, "a").reasons == ["There is no a.md."]
    assert play.moves == [WaitForJobs()]
    play.end(b.job, DONE)
    assert group(play.project, "b").status == "completed"
    assert play.jobs == ["tea.scope-manager-2"]
    assert [item.status for item in play.project.scope] == ["open", "completed"]


def test_a_conflict_goes_back_to_the_groups_agent_and_the_wave_waits_for_it() -> None:
    play = divided(a=["S1"], b=["S2"])
    play.project.start.attempts = 3
    a, b = play.start()
    play.end(a.job, DONE)
    play.end(b.job, ChildWork(commit="c2"), conflicts=("menu.md",))
    [move] = play.start()
    assert move.job == "tea.b-worker-2"
    assert move.fork
    assert move.fork.job == "tea.b-worker-1"
    assert move.handoff.inputs.commit == "c-both"
    # A cancelled job leaves the conflict to the next.
    play.end(move.job, status="cancelled", phases=0)
    [move] = play.start()
    assert "menu.md" in move.handoff.inputs.findings[1]
    assert move.handoff.inputs.commit == "c-both"
    assert [item.status for item in play.project.scope] == ["completed", "open"]
    play.end(move.job, ChildWork(commit="c3"))
    assert [item.status for item in play.project.scope] == ["completed", "completed"]


def test_a_division_that_cannot_be_used_is_asked_for_again_and_then_a_person_decides() -> None:
    play = Play(started("groups", items=ITEMS[:1]))
    for _ in range(2):
        play.one(ChildWork(commit="c", problems=["These items are in no group: S1."]))
    [move] = play.moves
    assert isinstance(move, ParkProject)
    assert "in no group: S1" in move.message
    play.project.planning_attempts = 0
    assert play.jobs == ["tea.scope-manager-3"]


def test_the_project_ends_on_an_accepted_claim_only() -> None:
    play = divided(a=["S1"])
    play.one(DONE)
    assert play.jobs == ["tea.scope-manager-2"]
    play.one(routing(complete=True))
    assert play.moves == [EndProject("completed")]


def test_an_item_dropped_with_a_reason_is_kept_apart() -> None:
    play = Play(started("groups", items=ITEMS[:2]))
    drop = [{"id": "S2", "reason": "Nobody drinks it."}]
    play.one(routing(groups=grouped(a=["S1"]), drop=drop))
    assert (play.project.scope[1].status, play.project.scope[1].reason) == (
        "dropped",
        "Nobody drinks it.",
    )
    assert routing_frame_of_groups(play.project).required == []


def told(play: Play, **answer: Any) -> list[str]:
    group_routing = routing(**answer).routing
    assert group_routing
    return routing_problems(group_routing, routing_frame_of_groups(play.project))


def test_a_first_division_neither_drops_all_nor_claims_completion() -> None:
    play = Play(started("groups", items=ITEMS[:1]))
    for reason, wrong in ((".", "dropped without a reason: S1"), ("Nobody asks.", "Nothing has")):
        problems = told(play, groups=[], drop=[{"id": "S1", "reason": reason}])
        assert any(wrong in problem for problem in problems), problems
    assert any("Nothing has been worked on" in each for each in told(play, complete=True))


def test_what_is_wrong_with_a_division() -> None:
    play = Play(started("groups", items=ITEMS))
    every = {"a": ["S1", "S2"], "b": ["S3", "S4", "S5"]}
    assert told(play, groups=grouped(**every)) == []
    assert told(play, groups=grouped(a=["S1", "S2"]))[0].startswith(
        "These items are in no group: S3, S4, S5."
    )
    assert "more than once: S3" in told(play, groups=grouped(**every, c=["S3"]))[0]
    assert "not in the scope" in told(play, groups=grouped(**every, c=["S9"]))[0]
    twice = [*grouped(**every), *grouped(a=["S9"])]
    assert "id of its own" in told(play, groups=twice)[0]
    strange = [{**each, "after": ["zoo"]} for each in grouped(**every)]
    assert "do not exist: zoo" in told(play, groups=strange)[0]
    circle = [
        {**each, "after": [other]} for each, other in zip(grouped(**every), "ba", strict=True)
    ]
    assert "wait for one another: a, b" in told(play, groups=circle)[0]
    assert "in no group" in told(play, complete=True)[0]


def test_groups_are_taken_for_as_long_as_the_record_has_room() -> None:
    """Each wave again includes what the previous one had accepted, with the largest groups."""
    play = Play(started("groups", items=["茶" * 160] * 2000, parallel=50))
    for wave in range(100):
        large = [
            {
                "id": f"{wave}-{n}",
                "title": "茶" * 300,
                "task": "茶" * 800,
                "items": [f"S{20 * n + place}" for place in range(1, 21)],
            }
            for n in range(100)
        ]
        if why := told(play, groups=large):
            break
        play.one(routing(groups=large))
        while play.project.planned:
            for move in play.start():
                play.end(move.job, DONE)
    assert len(why) == 1
    assert "the project has room for" in why[0]
    assert play.project.groups
    assert play.project.fits
    assert told(play, complete=True) == []
    assert size(project_status_answer(play.project, Inbox()).model_dump(mode="json")) < MOST_BYTES


def test_a_result_of_any_size_is_cut_to_what_the_server_takes() -> None:
    """The server ends a run whose result is too large, and rejects such an answer to a query."""
    items = ["茶" * 160] * 2000
    play = Play(started("groups", items=items))
    play.project.groups = [
        Group(id=f"g{n}", title="茶" * 300, items=[f"S{n}"]) for n in range(1, 2001)
    ]
    for blocked in play.project.groups:
        block_project_unit(blocked, ["茶" * 300] * 5)
    for item in play.project.scope:
        item.status, item.reason = "dropped", "茶" * 40
    result = play.project.result = project_result(play.project, "failed", "茶" * 2000)
    assert len(result.units) == len(result.unresolved) == 2000
    assert size(result.model_dump()) < MOST_BYTES
    assert size(project_status_answer(play.project, Inbox()).model_dump(mode="json")) < MOST_BYTES


def size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False).encode())


def test_a_claim_of_completion_does_not_pass_while_anything_is_open() -> None:
    play = divided(a=["S1"], b=["S2"])
    a, b = play.start()
    play.end(a.job, DONE)
    assert "neither accepted nor blocked: b" in told(play, complete=True)[0]
    for job in (b.job, "tea.b-worker-2"):
        play.start()
        play.end(job, ChildWork(commit="c", problems=["No."]))
    # Blocked with reasons: that may be the end, or another group may try.
    assert told(play, complete=True) == []
    assert told(play, groups=grouped(c=["S2"])) == []
    assert "or say `complete: true`" in told(play, groups=[])[0]


def test_an_item_of_an_accepted_group_that_is_not_done_after_all_is_worked_on_again() -> None:
    play = divided(a=["S1"], b=["S2"])
    a, b = play.start()
    play.end(a.job, DONE)
    assert "in work: S2" in told(play, groups=grouped(c=["S2"]))[0]
    play.end(b.job, DONE)
    assert told(play, complete=True) == []
    drop = [{"id": "S2", "reason": "Nobody drinks it."}]
    assert "cannot be dropped: S2" in told(play, groups=grouped(c=["S1"]), drop=drop)[0]
    play.one(routing(groups=grouped(c=["S1"])))
    assert [item.status for item in play.project.scope] == ["open", "completed"]
    assert play.jobs == ["tea.c-worker-1"]
    play.one(DONE)
    assert [item.status for item in play.project.scope] == ["completed", "completed"]
    assert play.jobs == ["tea.scope-manager-3"]
    play.one(routing(complete=True))
    assert play.moves == [EndProject("completed")]


def test_an_item_that_a_group_left_out_is_not_done_until_the_manager_says_what_becomes_of_it() -> (
    None
):
    play = Play(started("groups", items=ITEMS[:2]))
    play.one(routing(groups=grouped(blocked=["S2"], whole=["S1"])))
    play.project.groups[0].status = "blocked"
    play.project.groups[1].status = "blocked"
    play.project.planned = False
    play.one(routing(groups=grouped(a=["S2", "S1"])))
    # Numbered among the job's items, which are in the order of the scope.
    unresolved = ["S2: Nobody drinks it.", "The cup leaks."]
    play.one(ChildWork(commit="c1", left_items={1: "Nobody drinks it."}), unresolved=unresolved)
    assert play.project.left_open == {"a-worker": ["tea.a-worker-1: The cup leaks."]}
    # A payload has a limit.
    play.project.left_open = {"old": ["茶" * 100_000]} | play.project.left_open
    assert [item.status for item in play.project.scope] == ["completed", "open"]
    [move] = play.start()
    assert "S2: black tea (left out by a: Nobody drinks it.)" in move.handoff.task
    assert move.handoff.task.endswith("are said to be done:\n- S1: green tea")
    assert "in no group: S2" in told(play, complete=True)[0]
    play.end(move.job, routing(groups=grouped(b=["S2"])))
    play.one(ChildWork(commit="c2"))
    assert list(play.project.left_open) == ["a-worker"]
    assert [item.status for item in play.project.scope] == ["completed", "completed"]
    assert not any(item.reason for item in play.project.scope)
