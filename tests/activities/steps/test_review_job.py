"""A review's verdicts, what the reviewer is shown, and what it may do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from activities.job.conversation import Conversation
from activities.preparation.agent_resolution import resolve_reviewer_tools
from activities.steps.review_job import DECIDE, ReviewJobActivity, review_task
from activities.text.tokens import count_tokens, token_encoding_name
from activities.tools.verdict import read_verdict
from config.agent_files import load_agent
from config.schema.agent import ConfigError
from protocol.endings import ReviewRequest
from protocol.scope_ledger import scope_from_texts
from rehearsal import Script
from rehearsal import call as call_of
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for
from workflows.reservations import REVIEW_TOKENS


def call(name: str, **arguments: object) -> tuple[str, str]:
    return name, json.dumps(arguments)


def test_only_accept_accepts() -> None:
    assert read_verdict([call("accept")]) == ("accepted", "")
    assert (
        read_verdict([call("read_file", path="a"), call("accept", findings="ok")])[0] == "accepted"
    )
    assert read_verdict([call("send_back", findings="a.md is empty")]) == (
        "sent back",
        "a.md is empty",
    )
    assert read_verdict([]) == read_verdict([call("read_file", path="a")]) == (None, "")


@pytest.mark.parametrize(
    "calls",
    [
        [("accept", "{")],
        [call("accept", verdict="yes")],
        [call("send_back")],
        [call("accept"), call("send_back", findings="no")],
        [call("send_back", findings="no"), call("accept")],
    ],
)
def test_a_verdict_that_cannot_be_read_and_one_that_is_divided_are_no(
    calls: list[tuple[str, str]],
) -> None:
    verdict, findings = read_verdict(calls)
    assert verdict == "sent back"
    assert findings


async def test_the_reviewer_is_shown_what_it_found_before(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, set={"review": {"agent": "reviewer"}})
    claim = call("job_complete", summary="s", deliverables=["a.md"], confidence=0.5)
    job.reply(claim)
    assert "What you found before" not in review_task(job.open(), 0)
    request = ReviewRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, call=0, number=0
    )
    looked = call_of("list_files")
    accepted = call_of("accept", findings="I read a.md.")
    sent_back = call_of("send_back", findings="a.md lacks the water.")
    with Script(sent_back, looked, accepted) as script:
        reviewing = ReviewJobActivity(job.root, lambda _: client_for(script))
        reply = await environment(local=False).run(reviewing.review_job, request)
        job.commit = reply.commit
        job.reply(claim)
        assert review_task(job.open(), 0).endswith(f"\n\na.md lacks the water.\n\n{DECIDE}")
        for activity_id in ("8", "9"):
            # The first of these reviews is given up half way.
            request = request.model_copy(update={"commit": job.commit, "step": job.step})
            later = environment(local=False, activity_id=activity_id)
            reply = await later.run(reviewing.review_job, request)
            if activity_id == "8":
                job.commit = reply.commit
                job.reply(claim)
                assert "a.md lacks the water." in review_task(job.open(), 0)
    job.commit = reply.commit
    job.reply(claim)
    assert "I read a.md." not in review_task(job.open(), 0)


def test_the_reviewer_is_shown_the_claim_beside_what_was_asked(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["green tea", "water"])
    snapshot.state.drop_item("S2", "It comes from the tap.")
    job.commit = snapshot.save("scope", 1)
    claim = {
        "summary": "The guide is written.",
        "deliverables": ["output/tea.md"],
        "confidence": 0.75,
        "unresolved": ["S1: half of it"],
    }
    job.reply(call("job_complete", **claim))
    task = review_task(job.open(), 0)
    for words in (
        "Write about tea.",
        "- S1 (open): green tea",
        "- S2 (dropped): water It comes from the tap.",
        "- output/tea.md",
        "The guide is written.",
        "0.75",
        "- S1: half of it",
    ):
        assert words in task


def test_what_it_begins_with_is_what_the_limits_reserve(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["緑茶について書く。" * 20] * 200)
    job.commit = snapshot.save("scope", 1)
    job.write("instructions.md", "緑茶について書く。" * 2000)
    lines = ["緑茶について書く。" * 20] * 200
    claim = {"summary": "茶" * 20_000, "notes": "茶" * 20_000, "confidence": 0.5}
    claim |= {"deliverables": lines, "unresolved": lines}
    job.reply(call("job_complete", **claim))
    sent = [entry.schema for entry in resolve_reviewer_tools(load_agent("reviewer", reviews=True))]
    assert 30_000 < count_tokens(review_task(job.open(), 0) + json.dumps(sent)) < REVIEW_TOKENS


async def test_its_conversation_is_counted_as_its_own_model_counts(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "model.name": "gpt-4",
        "phase_models": {"strategic": {"name": "gpt-4o"}},
    }
    job = Standing.begin(tmp_path)
    config = job.open().config
    config.reviewer = load_agent("reviewer", settings, reviews=True)
    job.pin(config)
    job.write("instructions.md", "Über grünen Tee schreiben, 緑茶について書く。\n" * 50)
    claim = {"summary": "Done.", "deliverables": [], "confidence": 0.75}
    job.reply(("job_complete", json.dumps(claim)))
    with Script(call_of("accept")) as script:
        request = ReviewRequest(
            root=job.root.id, commit=job.commit, at=AT, step=job.step, call=0, number=0
        )
        env = environment(local=False)
        reply = await env.run(
            ReviewJobActivity(job.root, lambda _: client_for(script)).review_job, request
        )
    review = Conversation(job.open(reply.commit).review)
    newer, older = (review.count_tokens(token_encoding_name(name)) for name in ("gpt-4o", "gpt-4"))
    assert reply.context == newer != older


def test_a_reviewer_only_reads_and_can_decide() -> None:
    names = [entry.name for entry in resolve_reviewer_tools(load_agent("reviewer", reviews=True))]
    assert {"read_file", "accept", "send_back"} <= set(names)
    writing = load_agent("reviewer", {"tools": ["files", "verdict"]})
    with pytest.raises(ConfigError, match="only reads; take out write_file"):
        resolve_reviewer_tools(writing)
    with pytest.raises(ConfigError, match="decides with the group verdict"):
        resolve_reviewer_tools(load_agent("reviewer", {"tools": ["read_file"]}))
    with pytest.raises(ConfigError, match="neither a tool nor a group"):
        resolve_reviewer_tools(load_agent("reviewer", {"tools": ["magic"]}))


def test_the_reviewers_configuration_is_pinned_with_the_jobs() -> None:
    config = load_agent("generalist", {"review": {"agent": "reviewer"}})
    assert config.reviewer
    assert "accept" in config.reviewer.instructions_template
    assert config.reviewer.model in config.models
    assert load_agent("generalist").reviewer is None


def test_a_reviewer_has_no_reviewer() -> None:
    with pytest.raises(ConfigError, match="has no reviewer itself"):
        load_agent("reviewer", {"review": {"agent": "generalist"}}, reviews=True)
