"""Compacting: the conversation on the wire gets smaller, nothing of it is lost."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError

from activities.job.context_view import OPENING, shorten_exchanges
from activities.job.conversation_calls import WRITTEN
from activities.model.prompt import count_prompt_tokens, job_prompt_body
from activities.runtime.failures import ATTEMPTS
from activities.steps.compact import CompactActivity
from activities.text.tokens import count_tokens
from config.schema.skills import Skill
from protocol.failure_details import GIVEN_UP, read_unfinished_detail
from protocol.requests import CompactReply, CompactRequest
from rehearsal import Cut, Failure, Reply, Script
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for

LIMIT = 12_000


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    """Return a job during a phase: twenty long results, an early decision, a changed file."""
    standing = Standing.begin(tmp_path)
    snapshot = standing.open()
    snapshot.conversation = snapshot.conversation.append({"role": "user", "content": "Begin."})
    standing.commit = snapshot.save("opening", AT)
    for number in range(20):
        standing.write(f"notes/{number}.md", f"Page {number}. " + "tea and more tea " * 250)
    for number in range(20):
        standing.call("read_file", path=f"notes/{number}.md")
    standing.call("write_file", path="output/tea.md", content="green")
    return standing


def messages(job: Standing) -> list[dict[str, Any]]:
    snapshot = job.open()
    body = json.loads(job_prompt_body(snapshot, snapshot.config.model, None))
    sent: list[dict[str, Any]] = body["messages"]
    return sent


async def compact(
    job: Standing, script: Script, attempt: int = 1, id_: str = "7", **details: Any
) -> CompactReply:
    activity = CompactActivity(job.root, lambda _: client_for(script)).compact
    request = CompactRequest(
        **{"root": job.root.id, "commit": job.commit, "at": AT, "step": job.step, "limit": LIMIT}
        | details
    )
    env = environment(local=False, attempt=attempt, activity_id=id_, at=time.time())
    reply: CompactReply = await env.run(activity, request)
    return reply


def talk(job: Standing, count: int) -> None:
    """Add exchanges that are long because of the model's text."""
    for number in range(count):
        leaf = json.dumps({"path": "output/tea.md", "content": f"{number} leaves"})
        job.reply(("append_file", leaf), said="leaf " * 900)
        job.commit = job.run("append_file", job.request()).commit


async def test_old_results_become_pointers_and_the_last_five_stay(job: Standing) -> None:
    before = messages(job)
    with Script() as script:
        reply = await compact(job, script)
    job.commit = reply.commit
    after = messages(job)
    assert [message["role"] for message in after] == [message["role"] for message in before]
    results = [message["content"] for message in after if message["role"] == "tool"]
    assert results[0] == '[result cleared to make room; read_file("notes/0.md") to see it again]'
    assert sum("result cleared" in result for result in results) == 15
    # The last five stay, and the answer of the write, which is shorter than a pointer.
    assert all("Page" in result for result in results[15:20])
    assert results[20].startswith("Wrote 5 characters")
    assert reply.context == count_prompt_tokens(job.open()) < LIMIT
    assert not job.open().compaction.summary
    assert "Page 0." in job.open().conversation.messages()[3]["content"]


@pytest.mark.parametrize(
    ("tool", "arguments", "again"),
    [
        ("read_file", '{"path":"ä.md","offset":41}', 'read_file("ä.md")'),
        ("list_files", '{"path":"notes"}', 'list_files({"path":"notes"})'),
        (
            "extract_document_text",
            '{"path":"documents/a.pdf","pages":"3-4"}',
            'extract_document_text({"path":"documents/a.pdf","pages":"3-4"})',
        ),
        ("identify_requirement_candidates", '{"path":"documents/a.pdf"}', "search_history"),
        ("search_files", f'{{"query":"{"tea " * 60}"}}', "search_history"),
        ("run_command", '{"command":"ls"}', "search_history"),
    ],
)
def test_a_pointer_names_a_call_that_shows_the_same(tool: str, arguments: str, again: str) -> None:
    called = {"id": "s1c0", "function": {"name": tool, "arguments": arguments}}
    result = {"role": "tool", "tool_call_id": "s1c0", "content": "leaf " * 100}
    shown = shorten_exchanges([{"role": "assistant", "tool_calls": [called]}, result])
    assert shown[1]["content"] == f"[result cleared to make room; {again} to see it again]"


async def test_results_the_model_never_saw_are_not_called_processed(job: Standing) -> None:
    for number in range(12):
        job.write(f"notes/new_{number}.md", f"New {number}. " + "tea and more tea " * 250)
    read = [("read_file", json.dumps({"path": f"notes/new_{number}.md"})) for number in range(12)]
    job.reply(*read)
    for number in range(len(read)):
        job.commit = job.run("read_file", job.request(call=number)).commit
    with Script(Reply("todo 1 todo 2 todo 3 output/tea.md")) as script:
        reply = await compact(job, script, limit=9_000)
    job.commit = reply.commit
    results = [message["content"] for message in messages(job)[-13:-1]]
    left = "[result left out for lack of room, not seen yet; read_file("
    unseen = [result.startswith(left) for result in results]
    # As many as fit are shown, newest first.
    assert unseen == sorted(unseen, reverse=True)
    assert 0 < sum(unseen) < 12
    assert reply.context == count_prompt_tokens(job.open()) <= 9_000


async def test_texts_that_stand_in_files_become_pointers_and_results_stay(job: Standing) -> None:
    first = len(job.open().conversation)
    for number in range(12):
        job.call("write_file", path=f"output/{number}.md", content=f"{number} " + "leaf " * 400)
        job.call("edit_file", path=f"output/{number}.md", old=f"{number} leaf", new="tea " * 60)
    assert job.call("write_file", path="/etc/x", content="leaf " * 400).startswith("Error: ")
    job.call("list_files")
    with Script() as script:
        reply = await compact(job, script, limit=14_000)
    job.commit = reply.commit
    assert (reply.folded, job.open().compaction.summary) == (0, "")
    sent = messages(job)[:-1]
    calls = [call["function"] for message in sent for call in message.get("tool_calls", [])]
    shown = [json.loads(call["arguments"]) for call in calls if "output/" in call["arguments"]][1:]
    assert [each["path"] for each in shown[::2]] == [f"output/{number}.md" for number in range(12)]
    assert all(each["content"] == WRITTEN for each in shown[::2])
    assert {each["old"] for each in shown[1::2]} == {f"{number} leaf" for number in range(12)}
    assert all(each["new"] == WRITTEN for each in shown[1::2])
    # A call that wrote nothing keeps its text, and the last results stay.
    assert "leaf leaf" in str(sent[-4:])
    results = [message["content"] for message in sent[:first] if message["role"] == "tool"]
    assert sum("Page" in result for result in results) == 5
    assert reply.context == count_prompt_tokens(job.open()) < 14_000
    assert "leaf leaf" in str(job.open().conversation.messages()[first])
    assert "Write the text itself" in job.call("write_file", path="output/1.md", content=WRITTEN)


async def test_what_changes_between_two_compactions_is_the_end_alone(job: Standing) -> None:
    with Script() as script:
        job.commit = (await compact(job, script)).commit
    before = messages(job)
    job.call("list_files")
    after = messages(job)
    assert after[: len(before) - 1] == before[:-1]


async def test_old_exchanges_become_a_summary_that_names_what_is_open(job: Standing) -> None:
    talk(job, 12)
    model_reply = Reply(
        "todo 1, todo 2 and todo 3 are open. output/tea.md holds leaves. Decided: green."
    )
    with Script(model_reply) as script:
        reply = await compact(job, script)
    request = script.requests[0]
    assert "tools" not in request
    assert "- todo 2: Step 2." in request["messages"][1]["content"]
    assert "- output/tea.md" in request["messages"][1]["content"]
    job.commit = reply.commit
    sent = messages(job)
    assert sent[0]["role"] == "system"
    assert sent[1]["content"] == "Begin."
    assert "Decided: green." in sent[2]["content"]
    assert "Go on with the current todo" in sent[2]["content"]
    assert sent[3]["role"] == "assistant"
    assert sent[4]["role"] == "tool"
    assert reply.context == count_prompt_tokens(job.open()) <= LIMIT
    assert reply.usage.model_calls == 1
    # The next summary includes this one and covers only what came after it.
    talk(job, 12)
    with Script(model_reply) as script:
        again = await compact(job, script, id_="8")
    shown = script.requests[0]["messages"][1]["content"]
    assert "Decided: green." in shown
    assert "notes/0.md" not in shown
    assert again.folded > reply.folded


async def test_a_summary_that_forgets_is_asked_for_once_more(job: Standing) -> None:
    talk(job, 12)
    complete = Reply("todo 1, todo 2, todo 3, output/tea.md")
    with Script(Reply("All is well."), complete) as script:
        reply = await compact(job, script)
    assert "left out: todo 1, todo 2, todo 3, output/tea.md" in str(script.requests[1])
    assert job.open(reply.commit).compaction.summary == "todo 1, todo 2, todo 3, output/tea.md"
    assert reply.usage.model_calls == 2


async def test_a_summary_need_not_name_what_the_system_keeps(job: Standing) -> None:
    job.call("generate_workspace_summary")
    talk(job, 12)
    with Script(Reply("todo 1, todo 2, todo 3, output/tea.md")) as script:
        assert (await compact(job, script)).usage.model_calls == 1
    assert "workspace_summary.md" in job.open().changed_since(0)
    assert "- workspace_summary.md" not in str(script.requests[0])


async def test_one_that_forgets_twice_is_completed_by_the_system(job: Standing) -> None:
    talk(job, 12)
    with Script(Reply("All is well."), Reply("Still well.")) as script:
        reply = await compact(job, script)
    summary = job.open(reply.commit).compaction.summary
    assert summary.startswith("Still well.")
    assert "- todo 3: Step 3." in summary
    assert "- output/tea.md" in summary
    assert count_tokens(summary) <= 2000


@pytest.mark.parametrize("answer", [Failure(400, "no"), Reply("")])
async def test_without_a_summary_the_oldest_exchanges_go_and_what_is_open_stays(
    job: Standing, answer: Any
) -> None:
    talk(job, 12)
    with Script(*[answer] * (2 if isinstance(answer, Reply) else 1)) as script:
        reply = await compact(job, script)
    summary = job.open(reply.commit).compaction.summary
    assert "the model was not to be had" in summary
    assert "- todo 1: Step 1." in summary
    assert reply.context <= LIMIT


async def test_without_a_summary_what_one_that_broke_off_has_used_counts(job: Standing) -> None:
    talk(job, 12)
    with Script(*[Cut(Reply("tea " * 400))] * 2) as script:
        with pytest.raises(ApplicationError):
            await compact(job, script)
        reply = await compact(job, script, attempt=ATTEMPTS)
    assert reply.usage.model_calls == 0
    sent = sum(len(json.dumps(request)) // 4 for request in script.requests)
    assert reply.usage.unfinished_tokens > sent * 0.9


async def test_what_a_given_up_compaction_has_paid_for_counts(job: Standing) -> None:
    """The first summary is complete, the second is on its way."""
    talk(job, 12)
    env = environment(local=False, at=time.time())
    request = CompactRequest(root=job.root.id, commit=job.commit, at=AT, step=job.step, limit=LIMIT)
    second = asyncio.Event()
    with Script(Reply("tea " * 400)) as script:

        def connect(_: object) -> AsyncOpenAI:
            if script.requests:
                second.set()
            return client_for(script)

        running = asyncio.create_task(env.run(CompactActivity(job.root, connect).compact, request))
        async with asyncio.timeout(20):
            await second.wait()
        env.cancel(cancellation_details=ActivityCancellationDetails(cancel_requested=True))
        with pytest.raises(ApplicationError) as given_up:
            await running
    assert given_up.value.type == GIVEN_UP
    used = read_unfinished_detail(given_up.value.details)
    sent = len(json.dumps(script.requests[0])) // 4
    assert used.unfinished_completion_tokens > 300
    assert used.unfinished_tokens > 1.8 * sent
    assert used.model_calls == 0


async def test_a_failure_that_may_pass_is_tried_again_and_what_was_paid_is_kept(
    job: Standing,
) -> None:
    talk(job, 12)
    model_reply = Reply("nothing to say")
    with Script(Failure(401)) as script, pytest.raises(ApplicationError) as refused:
        await compact(job, script, id_="6")
    # Only a person can fix it, and nothing was dropped.
    assert refused.value.type == "Credentials"
    with Script(model_reply, Failure(503), Reply("todo 1 todo 2 todo 3 output/tea.md")) as script:
        with pytest.raises(ApplicationError) as failed:
            await compact(job, script)
        reply = await compact(job, script, attempt=2)
    # It counts as well if nobody tries again, as after a pause.
    assert read_unfinished_detail(failed.value.details).unfinished_completion_tokens > 0
    assert len(script.requests) == 3
    assert reply.usage.model_calls == 2
    with Script(model_reply, Failure(401)) as script:
        reply = await compact(job, script, id_="8")
    assert reply.usage.model_calls == 1
    assert "nothing to say" in job.open(reply.commit).compaction.summary


async def test_a_request_the_endpoint_calls_too_long_is_folded_whatever_we_count(
    job: Standing,
) -> None:
    model_reply = Reply("todo 1 todo 2 todo 3 output/tea.md")
    with Script(model_reply) as script:
        reply = await compact(job, script, hard=True, limit=3_000)
    assert reply.folded == len(job.open().conversation)
    job.commit = reply.commit
    assert len(messages(job)) == OPENING + 2


async def test_a_new_phase_starts_with_nothing_taken_away(job: Standing) -> None:
    with Script() as script:
        job.commit = (await compact(job, script)).commit
    snapshot = job.open()
    assert snapshot.compaction.cleared
    snapshot.begin_conversation({"role": "system", "content": "s"})
    assert not snapshot.compaction.cleared


SKILL = "---\nname: tea\ndescription: Makes tea.\n---\n" + "Warm the pot. " * 40


@pytest.mark.parametrize("limit", [LIMIT, 6_000])
async def test_a_skill_stays_while_the_todo_that_needed_it_is_open(
    job: Standing, limit: int
) -> None:
    config = job.open().config.model_copy(deep=True)
    config.skill_entries = [Skill(name="tea", description="Makes tea.")]
    job.pin(config)
    job.write("skills/tea/SKILL.md", SKILL)
    script = Script(lambda _: Reply("todo 1 todo 2 todo 3 output/tea.md"))
    assert "Warm the pot." in job.call("use_skill", name="tea")
    read_more(job, "first")
    job.commit = (await compact(job, script, limit=limit)).commit
    skill_messages = [
        message for message in messages(job) if "Skills in use" in str(message["content"])
    ]
    assert [message["role"] for message in skill_messages] == ["user"]
    assert str(messages(job)).count("Warm the pot.") == 40
    assert count_prompt_tokens(job.open()) < limit

    assert not job.call("todo_complete").startswith("Error")
    read_more(job, "second")
    job.commit = (await compact(job, script, limit=limit, id_="8")).commit
    assert "Warm the pot." not in str(messages(job))


def read_more(job: Standing, name: str) -> None:
    for number in range(12):
        job.write(f"notes/{name}_{number}.md", f"{name} {number} " + "tea and more tea " * 250)
        job.call("read_file", path=f"notes/{name}_{number}.md")
