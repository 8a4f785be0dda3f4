"""Calls of a server's tools: what comes back, what is refused, what was lost on the way."""

import threading
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.mcp.servers import worker_mcp_servers
from config.schema.guards import Guard
from tests.activities.mcp.serving import (
    agent,
    answer,
    call,
    kill,
    odd,
    patient_over_http,
    processes,
    public,
    standing,
    until,
)
from tests.activities.standing import Standing
from tests.interruption import Interrupted, interrupted_once


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def job(tmp_path: Path, ledger: Path) -> Standing:
    return standing(tmp_path / "job", agent(odd=odd(ledger)))


@pytest.mark.parametrize("form", [[], ["sdk"]], ids=["by hand", "by the SDK"])
def test_a_call_is_answered_whatever_the_server_prints_beside_it(
    tmp_path: Path, ledger: Path, form: list[str]
) -> None:
    job = standing(tmp_path / "job", agent(odd=odd(ledger, *form)))
    assert call(job, "odd__note", '{"text": "green tea"}').ok
    assert answer(job) == "done"
    assert ledger.read_text().splitlines() == ["listed", "note {'text': 'green tea'}"]
    assert call(job, "odd__context", '{"context": "odd"}').ok


@pytest.mark.parametrize("code", [-32000, -32001, -32603])
def test_an_error_of_the_server_is_told_whatever_its_code(
    job: Standing, ledger: Path, code: int
) -> None:
    # The first two codes are the client's own, for lost calls.
    assert not call(job, "odd__fault", f'{{"code": {code}}}').ok
    assert answer(job) == "Error: out of water"
    assert ledger.read_text().splitlines() == ["listed", "fault"]


def test_an_error_without_a_text_is_no_result(job: Standing) -> None:
    assert not call(job, "odd__fault", '{"code": -32603, "message": " "}').ok
    assert answer(job) == "Error: odd__fault failed and did not say why."


@pytest.mark.parametrize(
    ("name", "fine", "shown", "odd"),
    [
        ("misfit", True, "3 rows were written", "'three' is not of type 'integer'"),
        ("unstructured", True, "3 rows were written", "did not return structured content"),
        ("shapeless", True, '{"rows": 3, "written": true}', "content: field required"),
        ("mistyped", True, '"3 rows were written"', "content: input should be a valid list"),
        ("failed", False, '"no rows"', "content: input should be a valid list"),
    ],
)
def test_an_odd_answer_is_an_answer(
    job: Standing, ledger: Path, name: str, fine: bool, shown: str, odd: str
) -> None:
    assert call(job, f"odd__{name}").ok is fine
    assert shown in answer(job)
    assert "[The call was made, and this is what came." in answer(job)
    assert odd in answer(job)
    assert ledger.read_text().count(name) == 1


def test_arguments_that_do_not_fit_name_the_field(job: Standing, ledger: Path) -> None:
    for raw, expected in (
        ('{"times": 2}', "'text' is a required property. Expected odd__note(text, times?)"),
        ('{"text": "tea", "times": 0}', "times: 0 is less than the minimum of 1"),
        ('{"text": "TEA"}', "text: 'TEA' does not match"),
        ('{"text": "tea", "more": 1}', "('more' was unexpected)"),
        ("[]", "must be one JSON object of the form odd__note(text, times?)"),
    ):
        assert not call(job, "odd__note", raw).ok
        assert expected in answer(job)
    assert "note" not in ledger.read_text()


def test_an_error_is_a_message_to_the_model_and_a_huge_result_is_cut(job: Standing) -> None:
    assert not call(job, "odd__refuse").ok
    assert answer(job) == "Error: no tea today"
    assert call(job, "odd__huge").ok
    assert "[TRUNCATED" in answer(job)
    assert len(answer(job)) <= 20_000


def test_a_server_that_ends_within_a_call_is_told_of_and_the_next_call_has_a_new_one(
    job: Standing, ledger: Path
) -> None:
    assert not call(job, "odd__crash").ok
    assert "odd ended during the call (it said: at work out of paper)" in answer(job)
    assert "may have happened" in answer(job)
    assert ledger.read_text().count("crash") == 1
    assert call(job, "odd__look").ok


def test_what_only_reads_is_asked_once_more(job: Standing, ledger: Path) -> None:
    assert call(job, "odd__stumble").ok
    assert not call(job, "odd__fall").ok
    assert ledger.read_text().count("fall") == 2
    assert "odd ended during the call" in answer(job)
    assert "may have happened" not in answer(job)


def test_a_server_that_was_killed_before_a_call_is_started_again(
    job: Standing, ledger: Path
) -> None:
    assert call(job, "odd__look").ok
    kill(str(ledger))
    until(lambda: not processes(str(ledger)))
    assert call(job, "odd__note", '{"text": "tea"}').ok
    assert ledger.read_text().count("note") == 1


def test_a_server_killed_within_a_call(job: Standing, ledger: Path) -> None:
    def stab() -> None:
        until(lambda: "slow" in ledger.read_text())
        kill(str(ledger))

    killer = threading.Thread(target=stab)
    killer.start()
    assert not call(job, "odd__slow").ok
    killer.join()
    assert "may have happened" in answer(job)
    assert ledger.read_text().count("slow") == 1
    until(lambda: not processes(str(ledger)))


def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path, ledger: Path) -> None:
    job = standing(tmp_path / "job", agent(odd=odd(ledger, call_seconds=2)))
    assert not call(job, "odd__slow").ok
    assert "odd has not answered within 2 s" in answer(job)
    assert call(job, "odd__look").ok


def test_a_call_that_was_made_is_not_sent_again(job: Standing, ledger: Path) -> None:
    job.reply(("odd__note", '{"text": "tea"}'))
    at_hand = job.commit
    assert call(job, "odd__note", again=True, activity_id="1").ok
    # In another activity: a guard asked a person about the change, or the disk was full.
    job.commit = at_hand
    assert call(job, "odd__note", again=True, activity_id="2").ok
    # As a killed attempt leaves it: the note that the call began, and no result.
    [done] = (job.open().checkpoints.path / "replies").glob("*.done")
    done.unlink()
    job.commit = at_hand
    assert not call(job, "odd__note", attempt=2, activity_id="2").ok
    assert "may have happened" in answer(job)
    assert ledger.read_text().count("note") == 1


def test_a_server_that_is_gone_is_a_dependency(tmp_path: Path, ledger: Path) -> None:
    program = tmp_path / "server"
    [python, script, path] = odd(ledger)["command"]
    program.write_text(f"#!/bin/sh\nexec {python} {script} {path}\n")
    program.chmod(0o755)
    job = standing(tmp_path / "job", agent(odd={"command": [str(program)]}))
    assert call(job, "odd__look").ok
    program.unlink()
    kill(str(ledger))
    until(lambda: not processes(str(program)))
    with pytest.raises(ApplicationError, match=r"MCP server odd .* cannot be reached") as failed:
        call(job, "odd__note", '{"text": "tea"}')
    assert failed.value.type == "Dependency"
    assert not failed.value.non_retryable
    assert "note" not in ledger.read_text()


def test_a_call_that_nobody_wants_any_more_ends_at_once(job: Standing, ledger: Path) -> None:
    def is_begun() -> bool:
        return ledger.exists() and "slow" in ledger.read_text()

    server = job.open().config.mcp["odd"]
    with pytest.raises(Interrupted), interrupted_once(is_begun):
        worker_mcp_servers().call_tool("odd", server, "slow", {}, key="k", repeatable=False)
    # The server allows one call at a time, and is free for the next.
    assert call(job, "odd__look").ok


def test_a_guard_names_the_tool_of_a_server(job: Standing, ledger: Path) -> None:
    config = job.open().config
    rule_fields = {
        "name": "quiet",
        "point": "before_tool",
        "decision": "deny",
        "message": "Not now.",
    }
    rule = Guard.model_validate({**rule_fields, "match": {"tool": ["odd__*"]}})
    job.pin(config.model_copy(update={"rules": [rule]}))
    reply = call(job, "odd__note", '{"text": "tea"}')
    assert (reply.ok, reply.guard) == (False, "quiet")
    assert "note" not in ledger.read_text()


def test_only_named_variables_reach_a_server(
    tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFICE_TOKEN", "open-sesame")
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-servers")
    job = standing(tmp_path / "job", agent(odd=odd(ledger, env={"TOKEN": "OFFICE_TOKEN"})))
    assert call(job, "odd__variables").ok
    # The server got the value, and its output is redacted for the model.
    assert "TOKEN=[redacted]" in answer(job)
    assert "not-for-servers" not in answer(job)
    assert "open-sesame" not in job.open().config.model_dump_json()


def test_jobs_share_a_server_and_its_process(tmp_path: Path, ledger: Path) -> None:
    config = agent(odd=odd(ledger))
    for name in ("one", "two"):
        assert call(standing(tmp_path / name, config), "odd__look").ok
    # The server's process, and the one that keeps it.
    assert len(processes(str(ledger))) == 2


def test_results_of_the_reference_server(tmp_path: Path) -> None:
    config = agent(everything=public("everything", "stdio"))
    job = standing(tmp_path / "job", config)
    for name, raw, expected in (
        ("echo", '{"message": "tea"}', "Echo: tea"),
        ("get-sum", '{"a": 2, "b": 3}', "The sum of 2 and 3 is 5"),
        ("get-tiny-image", "{}", "[image image/png, "),
        ("get-structured-content", '{"location": "Chicago"}', "temperature"),
        ("get-resource-links", '{"count": 1}', "resource"),
    ):
        assert call(job, f"everything__{name}", raw).ok, answer(job)
        assert expected in answer(job)
    assert not call(job, "everything__get-sum", '{"a": "x"}').ok
    assert "a: 'x' is not of type 'number'" in answer(job)
    assert worker_mcp_servers() is worker_mcp_servers()


def test_a_server_of_the_older_protocol_does_not_wait_for_a_person(tmp_path: Path) -> None:
    job = standing(tmp_path / "job", agent(everything=public("everything", "stdio")))
    call(job, "everything__trigger-elicitation-request")
    assert "everything asked meanwhile: " in answer(job)
    assert "nobody answered" in answer(job)


def test_what_a_server_of_the_older_protocol_asks_is_answered_with_its_defaults(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "ledger"
    with patient_over_http(ledger, "older") as server:
        job = standing(tmp_path / "job", agent(patient=server))
        assert call(job, "patient__reserve", '{"kind": "tea"}').ok
        assert "reserved small tea" in answer(job)
        assert "patient asked meanwhile: How much tea?" in answer(job)
        assert 'It got: {"size": "small", "sugar": false}.' in answer(job)
        # A question without a default is never agreed to.
        assert call(job, "patient__pledge", '{"kind": "tea"}').ok
        assert "pledged: cancel" in answer(job)
        assert "nobody answered" in answer(job)
    assert ledger.read_text().splitlines() == ["reserve tea", "reserved tea small", "pledge cancel"]


def test_an_image_of_a_server_becomes_a_file_that_can_be_looked_at(tmp_path: Path) -> None:
    config = agent(everything=public("everything", "stdio"))
    config.model.vision = True
    job = standing(tmp_path, config)
    reply = call(job, "everything__get-tiny-image")
    assert reply.ok
    [path] = [path for path in job.paths() if path.startswith("received/")]
    assert f", in {path}]" in answer(job)
    data = job.open().files.read(path)
    assert data.startswith(b"\x89PNG")
    assert f"{len(data):,} bytes" in answer(job)
    assert job.call("view_image", path=path).startswith(f"Shown are:\n- {path} (PNG")
    # The reference server's image has a wrong checksum, so a repaired copy is shown.
    [shown] = job.open().images.walk()
    assert shown.id != job.open().files.entry(path).id  # type: ignore[union-attr]
