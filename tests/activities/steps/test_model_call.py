"""The model call as an activity: paid once, stored whole, the same commit for every attempt."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_core import from_json
from sqlalchemy import Connection
from temporalio.exceptions import ApplicationError

from activities.job.job_folder import PAUSE_SECONDS
from activities.model.prompt import job_prompt_body
from activities.redaction import credentials
from activities.steps.model_call import ModelCallActivity
from activities.stores.endpoint_turns import EndpointTurns, TurnKey
from activities.stores.learned_quota import Quota
from activities.stores.relational_store import RelationalStore
from activities.stores.schema import PLACES
from protocol.requests import ModelReply, ModelRequest
from rehearsal import Failure, Reply, Script, call
from rehearsal.rehearsal_transport import RehearsalTransport
from tests.activities.standing import AT, JOB, Standing, environment
from tests.full_disk import files_of_at_most
from tests.workflows.serving import client_for


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path)


async def ask(
    job: Standing,
    script: Callable[[Any], Any],
    *,
    attempt: int = 1,
    id_: str = "7",
    at: float = AT,
    calls: ModelCallActivity | None = None,
) -> ModelReply:
    calls = calls or ModelCallActivity(job.root, lambda _: client_for(script))
    request = ModelRequest(root=job.root.id, commit=job.commit, at=AT, step=job.step + 1)
    env = environment(local=False, attempt=attempt, activity_id=id_, at=at)
    reply: ModelReply = await env.run(calls.model_call, request)
    reply.model_dump_json()
    return reply


def with_pause(job: Standing, script: Script) -> ModelCallActivity:
    """A model that takes long enough for the folder to be updated meanwhile."""
    transport = RehearsalTransport(script, delay=PAUSE_SECONDS + 0.2)
    return ModelCallActivity(job.root, lambda _: client_for(transport))


async def test_a_reply_becomes_a_checkpoint(job: Standing) -> None:
    with Script(call("write_file", path="a.md", content="x")) as script:
        reply = await ask(job, script, calls=with_pause(job, script))
    assert [(reply_call.tool, reply_call.path) for reply_call in reply.calls] == [
        ("write_file", "a.md")
    ]
    after = job.open(reply.commit)
    assert after.state.step == 1
    assert after.tool_call(0)["id"] == "s1c0"
    assert (job.root.workspace(JOB) / "instructions.md").is_file()


async def test_a_retry_finds_the_reply_and_does_not_pay_again(job: Standing) -> None:
    with Script(call("list_files")) as script:
        first = await ask(job, script)
        again = await ask(job, script, attempt=2)
    assert again == first
    assert len(script.requests) == 1


@pytest.mark.parametrize("content", ["", "\n\n"])
async def test_a_reply_of_nothing_leaves_nothing_that_endpoints_refuse(
    job: Standing, content: str
) -> None:
    with Script(Reply(content), Reply(content, calls=[("list_files", {})])) as script:
        silent = job.open((await ask(job, script)).commit).conversation.messages()[-1]
        called = job.open((await ask(job, script, id_="8")).commit).conversation.messages()[-1]
    assert silent["content"].strip()
    assert called["content"] is None


async def test_another_activity_asks_anew(job: Standing) -> None:
    with Script(call("list_files"), call("list_files")) as script:
        first, again = [job.open((await ask(job, script, id_=each)).commit) for each in "78"]
    # The commits have the times of their replies.
    assert first.conversation.messages() == again.conversation.messages()
    assert len(script.requests) == 2


async def test_a_folder_that_cannot_be_written_does_not_cost_the_reply(job: Standing) -> None:
    job.root.workspace(JOB).write_text("a file where the folder should be")
    with Script(call("list_files")) as script:
        assert (await ask(job, script, calls=with_pause(job, script))).calls


async def test_a_kept_reply_that_is_garbled_counts_as_none(job: Standing) -> None:
    with Script(call("list_files"), call("list_files")) as script:
        await ask(job, script)
        (reply_file,) = (job.root.repository(JOB) / "replies").iterdir()
        reply_file.write_bytes(reply_file.read_bytes()[:20])
        assert (await ask(job, script, attempt=2)).calls


async def test_one_kept_reply_of_a_job_is_enough(job: Standing) -> None:
    """A reply that breaks off while it overwrites the previous one is not taken as complete."""
    long, short = Reply("x" * 5000, calls=[("list_files", {})]), call("list_files")
    with Script(long, short, short) as script:
        calls = ModelCallActivity(job.root, lambda _: client_for(script))
        await ask(job, script, id_="1", at=AT + 1, calls=calls)
        second = await ask(job, script, id_="2", at=AT + 2, calls=calls)
        (reply_file,) = (job.root.repository(JOB) / "replies").iterdir()
        assert await ask(job, script, id_="2", at=AT + 2, attempt=2) == second
        with files_of_at_most(64), pytest.raises(ApplicationError):
            await ask(job, script, id_="3", at=AT + 3, calls=calls)
        assert not reply_file.parent.joinpath(reply_file.name.replace(".2", ".3")).exists()
    assert reply_file.name.endswith(".2")


async def test_an_attempt_that_comes_late_takes_no_later_reply_away(job: Standing) -> None:
    """The late attempt was frozen while another made the call and the job continued."""
    with Script(call("list_files"), call("list_files")) as script:
        calls = ModelCallActivity(job.root, lambda _: client_for(script))
        later = await ask(job, script, id_="8", at=AT + 8, calls=calls)
        await ask(job, script, id_="7", at=AT + 7, calls=calls)
        assert await ask(job, script, id_="8", at=AT + 8, attempt=2) == later


async def test_no_credential_of_the_worker_is_sent(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that no tool has shown may hold one: workspace.md, or what a judge sees changed."""
    monkeypatch.setenv("TEA_TOKEN", 'l0ng-"leaf"-4711')
    monkeypatch.setenv("ODD_TOKEN", "not-\udcff-utf-8")
    credentials.refresh_credential_values()
    snapshot = job.open()
    snapshot.begin_conversation({"role": "system", "content": 'The key is l0ng-"leaf"-4711.'})
    job.commit = snapshot.save("begin", AT)
    sent: list[Any] = []

    def model(request: Any) -> Reply:
        sent.append(request)
        return call("list_files")

    await ask(job, model)
    assert sent[0]["messages"][0]["content"] == "The key is [redacted]."


async def test_a_credential_of_any_name_is_known_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored conversation must not contain any: later requests send it unchanged."""
    monkeypatch.setenv("TEA_ACCESS", "l0ng-leaf-4711")
    job = Standing.begin(tmp_path, set={"model.api_key_variable": "TEA_ACCESS"})
    snapshot = job.open()
    snapshot.begin_conversation({"role": "system", "content": "The key is l0ng-leaf-4711."})
    assert snapshot.conversation.message(0)["content"] == "The key is [redacted]."


async def test_no_credential_is_kept_of_a_reply(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'l0ng-"leaf"-4711'
    monkeypatch.setenv("TEA_TOKEN", key)
    credentials.refresh_credential_values()
    with Script(
        Reply(f"It is {key}.", calls=[("write_file", {"path": "a", "content": key})])
    ) as it:
        after = job.open((await ask(job, it)).commit)
    (reply_file,) = (job.root.repository(JOB) / "replies").iterdir()
    assert b"4711" not in reply_file.read_bytes()
    assert after.conversation.messages()[-1]["content"] == "It is [redacted]."
    assert after.text_argument(0, "content") == "[redacted]"


async def test_nothing_is_kept_of_a_failure(job: Standing) -> None:
    with Script(Failure(503), call("list_files")) as script:
        with pytest.raises(ApplicationError):
            await ask(job, script)
        assert (await ask(job, script, attempt=2)).calls


async def test_attempts_that_only_waited_for_their_turn_lead_to_no_fallback(tmp_path: Path) -> None:
    model = {"name": "m", "requests_at_once": 1}
    job = Standing.begin(tmp_path, set={"model": model, "fallbacks": [{"name": "dear"}]})
    endpoint = "https://api.openai.com/v1 m OPENAI_API_KEY"

    def take_the_place(connection: Connection) -> None:
        turns = EndpointTurns(connection, endpoint, Quota(None, None, 1))
        turns.learned.note_place(100)
        for name in ("a", "b", "c"):
            turns.ask(TurnKey(endpoint, name, name), 100, name)
        turns.save()

    store = RelationalStore(job.root)
    store.run(take_the_place)
    with Script(Failure(503), call("list_files")) as script:
        for attempt in (1, 2, 3):
            with pytest.raises(ApplicationError, match="is in use"):
                await ask(job, script, attempt=attempt)
        store.run(lambda connection: connection.execute(PLACES.delete()))
        with pytest.raises(ApplicationError, match="503"):
            await ask(job, script, attempt=4)
        assert (await ask(job, script, attempt=5)).calls
    assert [request["model"] for request in script.requests] == ["m", "m"]


async def test_while_no_reply_can_be_kept_one_is_paid_for_and_no_more(job: Standing) -> None:
    with Script(call("list_files"), call("list_files")) as script:
        with files_of_at_most(64):
            for attempt in (1, 2, 3):
                with pytest.raises(ApplicationError) as raised:
                    await ask(job, script, attempt=attempt)
                assert raised.value.type == "Storage"
        assert len(script.requests) == 1
        assert not list((job.root.repository(JOB) / "replies").iterdir())
        assert (await ask(job, script, attempt=4)).calls


STRANGE = ['{"path": ', "[" * 100_000, '{"path": "\\ud800"}', "", "x" * 1_000_000]
STRANGE += ["[]", "7", "null", '"{}"', '{"path": NaN}', '{"path": [-Infinity]}']


@pytest.mark.parametrize("raw", STRANGE)
async def test_strange_arguments_are_stored_as_what_can_be_sent_back(
    job: Standing, raw: str
) -> None:
    with Script(Reply(calls=[("write_file", raw)])) as script:
        reply = await ask(job, script)
    assert len(reply.model_dump_json()) < 1000
    body = json.loads(body_of(job, reply.commit))
    sent_back = body["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(from_json(sent_back, allow_inf_nan=False), dict)


async def test_the_model_finds_no_call_of_its_own_to_imitate(job: Standing) -> None:
    broken: list[Any] = [("write_file", '{"path": "a.md", "content": "x'), ("list_files", "{}")]
    with Script(Reply(calls=broken)) as script:
        job.commit = (await ask(job, script)).commit
    job.step = 1
    snapshot = job.open()
    [message] = [m for m in snapshot.conversation.messages() if m["role"] == "assistant"]
    assert [c["function"]["arguments"] for c in message["tool_calls"]] == ["{}", "{}"]
    # The tool is given the arguments as they came, and says what is wrong.
    reply = job.run("write_file", job.request())
    assert "arguments are not valid JSON" in str(reply.error)
    assert '{"path": "a.md", "content": "x' in str(reply.error)


@pytest.mark.parametrize(
    ("name", "sent_back"),
    [
        ("functions.read_file", "functions_read_file"),
        ("read file\n", "read_file_"),
        ("\ud83dé", "__"),
        ("", "unnamed"),
        ("x" * 5000, "x" * 64),
    ],
)
async def test_a_made_up_name_is_sent_back_as_one_that_endpoints_take(
    job: Standing, name: str, sent_back: str
) -> None:
    with Script(Reply(calls=[(name, {})])) as script:
        reply = await ask(job, script)
    assert [reply_call.tool for reply_call in reply.calls] == [sent_back]
    body = json.loads(body_of(job, reply.commit))
    assert body["messages"][-2]["tool_calls"][0]["function"]["name"] == sent_back


@pytest.mark.parametrize("sent_back", [False, True])
async def test_reasoning_is_kept_for_the_record_and_sent_back_only_when_configured(
    tmp_path: Path, sent_back: bool
) -> None:
    job = Standing.begin(tmp_path, set={"model.send_reasoning": sent_back})
    chunk = {"reasoning_content": "Tea first.", "content": "Yes."}
    events = [{"choices": [{"delta": chunk, "finish_reason": "stop"}]}]
    content = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=content
        )
    )
    client = AsyncOpenAI(
        base_url="http://model/v1",
        api_key="k",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )
    calls = ModelCallActivity(job.root, lambda _: client)
    request = ModelRequest(root=job.root.id, commit=job.commit, at=AT, step=1)
    reply = await environment(local=False).run(calls.model_call, request)
    snapshot = job.open(reply.commit)
    assert snapshot.reasoning.read("000001.md") == b"Tea first."
    assert (b"Tea first." in body_of(job, reply.commit)) is sent_back


async def test_a_reply_of_text_alone_has_no_calls(job: Standing) -> None:
    with Script(Reply("I am done.")) as script:
        reply = await ask(job, script)
    assert reply.calls == []
    assert job.open(reply.commit).conversation.messages()[-1]["content"] == "I am done."


async def test_a_reply_is_told_apart_by_what_it_says(job: Standing) -> None:
    with Script(
        Reply("Shall I go on?"), Reply("Shall I?", [("list_files", {})]), Reply("")
    ) as script:
        verdicts = [(await ask(job, script, id_=id_)).verdict for id_ in "789"]
    assert verdicts == ["asks", "", "reports"]


def body_of(job: Standing, commit: str | None = None, correction: str | None = None) -> bytes:
    snapshot = job.open(commit)
    return job_prompt_body(snapshot, snapshot.config.model, correction)


def test_a_demand_for_a_call_disturbs_no_byte_of_the_prefix(job: Standing) -> None:
    snapshot = job.open()
    plain, demanding = (
        job_prompt_body(snapshot, snapshot.config.model, None, must_call=must)
        for must in (False, True)
    )
    assert demanding.startswith(plain[:-1])
    assert json.loads(demanding) == json.loads(plain) | {"tool_choice": "required"}


def test_the_prefix_of_a_request_stays_the_same_within_a_phase(job: Standing) -> None:
    before = body_of(job)
    for number in range(3):
        job.call("write_file", path=f"{number}.md", content="x")
        job.call("todo_complete")
    after = body_of(job, correction="Use a tool.")
    head = before[: before.rindex(b',{"role":"user"')]
    assert len(head) > 5000
    assert after.startswith(head)
    assert b"Use a tool." in after[len(head) :]
    assert b"Use a tool." not in body_of(job)


async def test_a_call_tells_its_arguments_apart_and_how_long_it_waits(job: Standing) -> None:
    reply = Reply(
        calls=[
            ("list_files", '{"path": "a", "pattern": "*"}'),
            ("list_files", '{"pattern":"*","path":"a"}'),
            ("list_files", '{"path": "b"}'),
            ("wait", {"seconds": 30, "until": "2026-03-01T09:00:00Z"}),
            ("wait", {"seconds": 10**9}),
        ]
    )
    with Script(reply) as script:
        calls = (await ask(job, script)).calls
    assert calls[0].fingerprint == calls[1].fingerprint != calls[2].fingerprint
    assert [(reply_call.seconds, reply_call.until) for reply_call in calls[2:]] == [
        (None, None),
        (30, 1_772_355_600),
        (None, None),
    ]
