"""The judge of a phase: what it is shown, what counts as a yes, and that it is paid once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.phases.phase_diff import MAX_TOKENS
from activities.steps.judge_phase import EARLIER, JudgePhaseActivity, judge_prompt
from activities.text import tokens
from config.agent_files import amend_agent_config, load_agent
from config.schema.agent import ConfigError
from protocol.endings import JudgeReply, JudgeRequest
from rehearsal import Failure, Reply, Request, Script, call
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for
from workflows.rules.reservations import JUDGE_TOKENS

SET = {"judge": {"model": {"name": "strict"}}, "prices": {"strict": {"prompt": 2, "completion": 4}}}


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    standing = Standing.begin(tmp_path, kind="tactical", set=SET)
    standing.write("notes/old.md", "one\ntwo\n")
    return standing


async def judged(
    job: Standing, script: Callable[[Any], Any], since: str = "", attempt: int = 1
) -> JudgeReply:
    request = JudgeRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, call=0, since=since or job.commit
    )
    env = environment(local=False, attempt=attempt)
    judging = JudgePhaseActivity(job.root, lambda _: client_for(script))
    answer: JudgeReply = await env.run(judging.judge_phase, request)
    return answer


async def test_a_yes_is_kept_and_paid(job: Standing) -> None:
    job.reply(("todo_complete", "{}"))
    with Script(Reply("PASS\n")) as script:
        answer = await judged(job, script)
    assert answer.finding == ""
    assert answer.usage.model_calls == 1
    assert answer.usage.cost > 0
    after = job.open(answer.commit)
    assert [after.judge.read(entry.path) for entry in after.judge.walk()] == [b"PASS\n"]
    assert after.files == job.open().files
    [request] = script.requests
    assert request["model"] == "strict"
    assert "tools" not in request


@pytest.mark.parametrize(
    "reply",
    [
        *(Reply(text) for text in ("", "pass", "PASS.", "PASS\nAll is well.", '{"say": "PASS"}')),
        Reply("It did not FAIL."),
        Reply("PASS", [("todo_complete", {})]),
        call("accept"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_no(job: Standing, reply: Reply) -> None:
    job.reply(("todo_complete", "{}"))
    with Script(reply) as script:
        refusal = (await judged(job, script)).finding
    assert "said neither PASS nor FAIL" in refusal
    # Its words may be findings all the same.
    assert refusal.endswith(f" It said: {reply.content}") is bool(reply.content and not reply.calls)


@pytest.mark.parametrize(
    "answer", ["The list is better.\n\n**FAIL**: a.md is empty.", "a.md is empty.\n\nFAIL"]
)
async def test_a_no_behind_other_words_is_a_no_with_its_findings(
    job: Standing, answer: str
) -> None:
    job.reply(("todo_complete", "{}"))
    with Script(Reply(answer)) as script:
        assert (await judged(job, script)).finding == "a.md is empty."


def test_it_is_shown_what_it_said_of_the_phase_before(job: Standing) -> None:
    for step, answer in enumerate(("of an earlier phase", "no water", "no cup", "no tea"), 1):
        job.reply(("todo_complete", "{}"))
        snapshot = job.open()
        snapshot.keep_judgement(f"FAIL\n{answer}")
        snapshot.state.phase.since = 1
        job.commit = snapshot.save("judge: no", AT)
        prompt = judge_prompt(job.open(), 0, job.commit)
        assert (EARLIER in prompt) is (step > 1)
    assert prompt.endswith(f"# {EARLIER}\n\nFAIL\nno cup\n\nFAIL\nno tea")


async def test_a_no_gives_its_findings_bounded_and_without_credentials(job: Standing) -> None:
    job.reply(("todo_complete", "{}"))
    key = "sk-proj-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 2
    with Script(Reply(f"FAIL\nTodo 2: a.md is empty; {key}. " + "x" * 9000)) as script:
        refusal = (await judged(job, script)).finding
    assert refusal.startswith("Todo 2: a.md is empty")
    assert key not in refusal
    assert len(refusal) < 2000


async def test_a_no_without_a_reason_is_no(job: Standing) -> None:
    job.reply(("todo_complete", "{}"))
    with Script(Reply("FAIL")) as script:
        assert "gives no reason" in (await judged(job, script)).finding


async def test_a_retry_does_not_pay_again(job: Standing) -> None:
    job.reply(("todo_complete", "{}"))
    with Script(Reply("PASS")) as script:
        first = await judged(job, script)
        assert await judged(job, script, attempt=2) == first
    assert len(script.requests) == 1


async def test_an_endpoint_that_is_away_is_no_verdict(job: Standing) -> None:
    job.reply(("todo_complete", "{}"))
    with Script(Failure(503), Reply("PASS")) as script:
        with pytest.raises(ApplicationError) as away:
            await judged(job, script)
        assert away.value.type == "Endpoint"
        assert (await judged(job, script, attempt=2)).finding == ""


async def test_it_sees_the_task_the_todos_with_notes_and_the_diff(job: Standing) -> None:
    since = job.commit
    job.call("todo_complete", notes="Looked at the tea.")
    job.call("todo_complete")
    job.write("notes/old.md", "one\nthree\n")
    job.write("output/tea.md", "green tea\n")
    job.write("output/leaf.bin", "a\0b")
    job.reply(("todo_complete", '{"notes": "All is said."}'))
    requests: list[Request] = []

    def judge(request: Request) -> Reply:
        requests.append(request)
        return Reply("PASS")

    await judged(job, judge, since)
    system, prompt = (message["content"] for message in requests[0]["messages"])
    assert "PASS" in system
    for words in (
        "Write about tea.",
        "1. Step 1.\n   Notes: Looked at the tea.",
        "2. Step 2.\n3. Step 3.\n   Notes: All is said.",
        "added output/tea.md",
        "+green tea",
        "-two\n+three",
        "output/leaf.bin: not shown line by line (3 bytes)",
    ):
        assert words in prompt


def test_it_is_shown_files_whose_names_are_not_utf_8(job: Standing) -> None:
    since = job.commit
    job.put(lambda files: files.write("caf\udce9", b"tea\n").write("n\udcff", b"\0"))
    job.reply(("todo_complete", "{}"))
    prompt = judge_prompt(job.open(), 0, since)
    for words in ("added caf?", "+++ b/caf?", "n?: not shown line by line"):
        assert words in prompt
    assert prompt.encode()


def test_what_it_is_shown_is_bounded(job: Standing) -> None:
    since = job.commit
    for number in range(12):
        text = "".join(f"line {line} of {number} says tea\n" for line in range(4000))
        job.write(f"notes/{number}.md", text)
    job.write("notes/huge.md", "tea " * 100_000)
    job.reply(("todo_complete", "{}"))
    prompt = judge_prompt(job.open(), 0, since)
    assert tokens.count_tokens(prompt) < MAX_TOKENS + 1000
    assert "left out" in prompt
    assert "added notes/huge.md" in prompt


def test_the_longest_prompt_has_room_in_what_is_reserved(job: Standing) -> None:
    since, many = job.commit, "tea " * 30_000
    job.write("notes/huge.md", many)
    job.write("instructions.md", many)
    snapshot = job.open()
    phase = snapshot.state.phase
    phase.description, phase.todos[0].notes = many, many
    job.commit = snapshot.save("long", AT)
    for answer in ("first", "last"):
        job.reply(("todo_complete", "{}"))
        snapshot = job.open()
        snapshot.keep_judgement(f"FAIL\nthe {answer}: {many}")
        job.commit = snapshot.save("judge: no", AT)
    prompt = judge_prompt(job.open(), 0, since)
    system = job.open().config.templates["judge"]
    assert tokens.count_tokens(prompt) + tokens.count_tokens(system) < JUDGE_TOKENS
    assert "FAIL\nthe first" in prompt
    assert "FAIL\nthe last" in prompt


def test_its_prompt_is_checked_and_its_model_takes_the_keys_that_differ() -> None:
    config = load_agent("generalist", SET)
    assert config.judge
    assert config.judge.model.name == "strict"
    assert config.judge.model.max_output_tokens == config.model.max_output_tokens
    assert config.judge.model in config.models
    assert "You judge" in config.templates["judge"]
    with pytest.raises(ConfigError, match=r"nowhere\.md: prompt template is missing"):
        load_agent("generalist", {"judge": {"prompt": "nowhere.md"}})
    assert "judge" not in load_agent("generalist").templates
    assert "You judge" in amend_agent_config(load_agent("generalist"), SET).templates["judge"]
