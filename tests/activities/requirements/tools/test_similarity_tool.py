"""Requirements that are like a text."""

from pathlib import Path

import pytest

from activities.stores.relational_store import RelationalStore
from tests.activities.requirements.drafts import AWAY, OTHER, QUOTE, requirement_arguments
from tests.activities.search.endpoint import serving
from tests.activities.standing import Standing
from tests.activities.stores.filling import (
    fill,
    requirement,
)


def test_similar_ones_are_found_here_and_in_the_store(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.call("add_requirement", **requirement_arguments())
    fill(
        RelationalStore(job.root),
        [requirement(7, "Every invoice must be kept for at least ten years.")],
    )
    fill(RelationalStore(job.root), [requirement(8, OTHER, job="b")], job="b")
    lines = job.call("find_similar_requirements", text=QUOTE).splitlines()
    assert lines[0] == "2 of 3 requirements are alike by their words (threshold 0.30):"
    assert lines[1].startswith("1.00 · duplicate · REQ-001 · draft · Every invoice")
    assert "· similar · maker/REQ-007 · draft ·" in lines[2]
    assert "3 of 3" in job.call("find_similar_requirements", text=QUOTE, threshold=0)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    answer = job.call("find_similar_requirements", text=QUOTE)
    assert answer.startswith("1 of 1")
    assert "Only this workspace was searched: the store" in answer


def test_what_is_compared_leaves_out_what_this_job_judges(tmp_path: Path) -> None:
    with serving() as endpoint:
        embeddings = {"model": "m", "base_url": endpoint.url}
        judge = Standing.begin(
            tmp_path, kind="tactical", agent="validator", set={"embeddings": embeddings}
        )
        judge.write("documents/a.md", "Invoices kept. Storing bills.")
        first, second = requirement(1, "Invoices kept."), requirement(2, "Storing bills.")
        fill(RelationalStore(judge.root), [first, second])
        assert judge.call("take_requirement", count=1).startswith("maker/REQ-001")
        lines = judge.call("find_similar_requirements", text=first.text).splitlines()
        assert lines[0].startswith("1 of 1 ")
        assert "· duplicate · maker/REQ-002 · draft ·" in lines[1]
        endpoint.fails_after = 0
        lines = judge.call("find_similar_requirements", text=first.text).splitlines()
        assert lines[0].startswith("0 of 1 ")
        assert lines[1].startswith("Compared by words alone: the embeddings endpoint failed")
        # An equivalent one exists: 0 would be no verdict.
        assert lines[2].startswith("One that says it in other words may not be among them")
