"""Whole jobs over the Responses API, against a stand-in as strict as the real provider."""

import json
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks.capable import MOST_CALLS, Capable
from rehearsal import Answer, Failure, Reply, Request, call, rehearse
from rehearsal.request_view import parse_request_view
from tests.provider.cache import PromptCache
from tests.provider.server import Provider, ProviderTransport
from tests.provider.strict import Responses
from tests.soak import soak
from tests.workflows.deviating import Deviating
from tests.workflows.serving import serving
from tests.workflows.short import Short, close, job
from tests.workflows.tea import page, tea
from tests.workflows.team import Team, answer, project, write
from tests.workflows.test_context import Reader, read_through
from tests.workflows.test_rewind import reset

ADDRESS = "http://model/v1"
RESPONSES = "responses"


def of(name: str, **more: Any) -> dict[str, Any]:
    """Return the settings of a job with that model."""
    return {"model.name": name, "model.base_url": ADDRESS, "model.temperature": None, **more}


def reasoned(request: dict[str, Any]) -> list[str]:
    """Return the ids of the reasoning that a request sends back."""
    return [item["id"] for item in request["input"] if item.get("type") == "reasoning"]


async def test_a_job_learns_the_api_once_and_comes_to_its_end(temporal: Client, root: Root) -> None:
    provider = Provider(Responses(rehearse))
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        start = page(set=of("gpt-6-learned", **{"model.temperature": 0}))
        result = await jobs.result(await jobs.start(start))
    assert result["status"] == "completed"
    paths = [path for path, _ in provider.asked]
    # Refused by chat completions, refused for its temperature, and then accepted.
    assert paths[:3] == ["chat/completions", RESPONSES, RESPONSES]
    assert set(paths[3:]) == {RESPONSES}
    [refused] = provider.responses.refusals
    assert "temperature" in refused
    assert reasoned(provider.responses.requests[-1])


async def test_a_result_that_names_another_is_understood_by_calls_of_any_id(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    text = (Path(__file__).parents[2] / "examples/documents/records-policy.md").read_text()
    (policy := tmp_path / "policy.md").write_text(text.partition("## 4. ")[0])
    async with serving(temporal, root, ProviderTransport(Provider(Responses(rehearse)))) as jobs:
        start = {"agent": "creator", "documents": [str(policy)], "set": of("gpt-6-notes")}
        handle = await jobs.start(start)
        assert (await jobs.result(handle))["status"] == "completed"
        status = await handle.query("status")
    assert (status["rewinds"], status["refusals"]) == (0, 0)


async def test_a_rewind_a_review_and_a_fork_are_whole_for_the_model(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Replies of the reviewer, another agent.
    monkeypatch.setenv("OPENAI_BASE_URL", ADDRESS)
    verdict = {"id": "B1", "verdict": "met", "quote": "tea"}
    judged = call("judge_statements", verdicts=[verdict])
    reviews = cycle([call("read_file", path="output/tea.md"), judged])
    model = Short({"Close": [close("output/tea.md")]}, reviewer=lambda _: next(reviews))
    ask = call("request_clarification", question="Which tea?", default="Any.")
    provider = Provider(Responses(Deviating({4: ask}, model)), chat=frozenset({"chatty"}))
    settings = {"reflection": False, "review": {"agent": "reviewer", "attempts": 2, "calls": 3},
                "todos.fork": ["Rethink", "Hand over"]}  # fmt: skip
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        handle = await jobs.start(job(set=of("gpt-6-rewound", **settings)))
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("rewind", {"issue": "It missed white tea.", "phase": 2})
        result = await jobs.result(handle)
        assert (result["status"], result["rewinds"]) == ("completed", 1)
        fork = {"fork": {"job": handle.id, "phase": 2}, "set": of("chatty")}
        forked = await jobs.result(await jobs.start(fork))
    assert forked["status"] == "completed"
    assert provider.chats
    # Only the reviewer's settings were refused.
    assert all("temperature" in refused for refused in provider.responses.refusals)
    looked_up = [
        request
        for request in provider.responses.requests
        if any(tool["name"] == "judge_statements" for tool in request.get("tools", []))
    ]
    assert reasoned(looked_up[-1])


@pytest.mark.parametrize("share", soak([0.6], [0.0, 0.3, 0.6, 0.8]))
async def test_temporals_reset_sends_no_reply_without_its_neighbours(
    temporal: Client, root: Root, share: float
) -> None:
    ask = call("request_clarification", question="Which tea?", default="Any.")
    provider = Provider(Responses(Deviating({8: ask}, rehearse)))
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        handle = await jobs.start(tea(set=of("gpt-6-reset", **{"model.api": RESPONSES})))
        await jobs.until(handle, waiting_for="clarification")
        request_count = len(provider.asked)
        again = await reset(jobs, handle, handle.first_execution_run_id or "", share)
        result = await jobs.result(again)
    assert result["status"] == "completed"
    assert len(provider.asked) > request_count
    assert provider.responses.refusals == []
    assert any(map(reasoned, provider.responses.requests[request_count:]))


async def test_the_model_changes_within_a_phase_and_between_phases(
    temporal: Client, root: Root
) -> None:
    away: list[str] = []

    def model(request: Request) -> Answer:
        """Refuses the second request of each phase, which another model then answers."""
        view = parse_request_view(request)
        key = f"{view.number}.{view.replies}"
        if request["model"] == "gpt-6-main" and view.replies == 1 and key not in away:
            away.append(key)
            return Failure(400, "I will not")
        return rehearse(request)

    provider = Provider(Responses(model), chat=frozenset({"chatty"}))
    settings = of(
        "gpt-6-main",
        phase_models={"tactical": {"name": "gpt-6-other"}},
        fallbacks=[{"name": "chatty"}],
    )
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        result = await jobs.result(await jobs.start(page(set=settings)))
    assert result["status"] == "completed"
    assert provider.responses.refusals == []
    assert away
    # One model's reasoning is sent to no other, and goes to the first again afterwards.
    for request in provider.chats:
        assert "reasoning" not in str([message.keys() for message in request["messages"]])
    assert any(reasoned(request) for request in provider.responses.requests)
    assert {name for _, name in provider.asked} == {"gpt-6-main", "gpt-6-other", "chatty"}


async def test_a_long_phase_is_compacted_and_read_from_the_cache(
    temporal: Client, root: Root
) -> None:
    reader = Reader(pages=40)
    provider = Provider(Responses(reader))
    result = await read_through(
        temporal, root, reader, of("gpt-6-compacted", **{"context.tokens": 28_000}),
        ProviderTransport(provider),
    )  # fmt: skip
    assert result["status"] == "completed"
    assert provider.responses.refusals == []
    assert reader.summaries >= 1
    # Reasoning of summarized turns goes with them, that of cleared results stays.
    counts = [len(reasoned(request)) for request in provider.responses.requests]
    assert max(counts) > 5


@pytest.mark.parametrize(
    ("style", "name"),
    [("cache_control", "claude-cached"), *soak([], [("breakpoint", "gpt-6-cached")])],
)
async def test_nine_tenths_of_a_long_phase_are_read_from_the_cache(
    temporal: Client, root: Root, style: str, name: str
) -> None:
    marked, bare = [
        await _cached(temporal, root, style, f"{name}-{marks}", marks) for marks in ("auto", "none")
    ]
    assert marked >= 0.9
    assert bare < 0.05


async def _cached(temporal: Client, root: Root, style: str, name: str, marks: str) -> float:
    """Return the share of a long phase's prompts that is read from the provider's cache."""
    cache = PromptCache(style)
    # Without marks nothing is read from it, however long the phase is.
    reader = Reader(pages=40 if marks == "auto" else 10)
    is_chat = style == "cache_control"
    provider = Provider(
        Responses(reader, cache=cache), chat=frozenset({name} if is_chat else ()), cache=cache
    )
    result = await read_through(
        temporal, root, reader,
        of(name, **{"model.cache_marks": marks, "context.tokens": 80_000}),
        ProviderTransport(provider),
    )  # fmt: skip
    used = result["usage"]
    assert result["status"] == "completed"
    assert used["cached_tokens"] == cache.read
    assert used.get("written_tokens", 0) == cache.written
    return cache.read / cache.sent


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (Reply("I write", calls=[("write_file", "{")], finish="length"), "cut"),
        (Reply(calls=[("write_file", '{"path": "a')]), "arguments"),
        (Reply("I am done."), ""),
        (Reply(calls=[("no_such_tool", {})]), ""),
    ],
)
async def test_replies_that_are_cut_or_broken_are_followed_by_others(
    temporal: Client, root: Root, cut: Reply, expected: str
) -> None:
    provider = Provider(Responses(Deviating({2: cut}, Short())))
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        result = await jobs.result(await jobs.start(job(set=of("gpt-6-cut"))))
    assert result["status"] == "completed"
    assert provider.responses.refusals == []


async def test_replies_of_many_calls_are_never_sent_back_without_their_outputs(
    temporal: Client, root: Root
) -> None:
    """The last reply of a phase may end it before all its calls were run."""
    model = Capable(MOST_CALLS, files=20)
    provider = Provider(Responses(lambda request: _with_a_call_more(model(request))))
    start = {"agent": "generalist", "instructions": "Write 20 files.",
             "set": of("gpt-6-capable")}  # fmt: skip
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        result = await jobs.result(await jobs.start(start))
    assert result["status"] == "completed"
    assert provider.responses.refusals == []
    request_text = json.dumps(provider.responses.requests[-1])
    assert "what came after it in your reply was not run" in request_text


def _with_a_call_more(reply: Reply) -> Reply:
    """Add another call after the one that ends a phase."""
    ends = bool(reply.calls) and reply.calls[-1][0] == "todo_complete"
    more = [("list_files", {"path": "."})] if ends and len(reply.calls) < MOST_CALLS else []
    return replace(reply, calls=[*reply.calls, *more])


async def test_reasoning_that_is_not_known_again_is_left_out_from_then_on(
    temporal: Client, root: Root
) -> None:
    provider = Provider(Responses(lambda request: _with_another_key(request, provider.responses)))
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        result = await jobs.result(await jobs.start(page(set=of("gpt-6-rekeyed"))))
    assert result["status"] == "completed"
    [refused] = provider.responses.refusals
    assert "could not be verified" in refused
    assert not reasoned(provider.responses.requests[-1])


def _with_another_key(request: Request, responses: Responses) -> Answer:
    """The rehearsal model, with another encryption key from the middle of a phase on."""
    if reasoned(responses.requests[-1]):
        responses.key = "another"
    return rehearse(request)


async def test_a_project_of_jobs(temporal: Client, root: Root) -> None:
    features = {"features": [{"id": "brew", "description": "Brews.", "checks": ["unit"]}]}
    good = {
        "health": "It is there.", "checks": [{"check": "unit", "passed": True}],
        "passed": True, "findings": [],
    }  # fmt: skip
    team = Team(
        {
            "Set the project up": lambda told: [
                write("repo/readme.md", "Tea.\n"), answer("output/features.json", features)
            ],
            "Make the feature brew": lambda told: [write("repo/brew.md", "tea\n")],
            "Test the feature brew": lambda told: [
                ("search_files", {"query": "tea", "path": "repo"}),
                answer("output/verdict.json", good),
            ],
        }
    )  # fmt: skip
    provider = Provider(Responses(team))
    settings = {"tools": ["files", "todos", "job"], **of("gpt-6-project")}
    start = project("features", proof={"unit": ["search_files"]}, set=settings,
                    instructions="Make a tea room.\n\n## Scope\n\n- tea\n")  # fmt: skip
    async with serving(temporal, root, ProviderTransport(provider)) as jobs:
        handle = await jobs.start(start, kind="Project", job_id="tearoom-responses")
        result = await jobs.result(handle)
    assert result["status"] == "completed", result
    assert [unit["status"] for unit in result["units"]] == ["completed"]
    assert provider.responses.refusals == []
