"""Signals have the payloads of the contract, and commands report their effect."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.client import Client

from cli.commands.signal_commands import _rewind_undo_advice
from cli.jobs.job_view import JobView
from cli.signals import signal_effects, signal_sending


def signal(name, payload):
    """Return the payload as sent, with its sender."""
    return [name, {**payload, "by": signal_sending.signal_sender_name()}]


def test_pause_and_resume_report_the_effect(engine, starter):
    engine.job("paused")
    ran = starter("pause", "paused")
    assert ran.code == 0
    assert "paused paused: waiting (paused)" in ran.out
    ran = starter("resume", "paused", "--json")
    effect = json.loads(ran.out)
    assert effect["applied"] is True
    assert effect["status"] == "running"
    assert engine.status("paused")["signals"] == [signal("pause", {}), signal("resume", {})]


def test_resuming_a_job_that_does_not_wait_is_refused(engine, starter):
    engine.job("busy")
    assert starter("resume", "busy").error == (
        "job busy refused: signal resume: the job is not waiting"
    )


def seen(**status):
    started = datetime(2026, 1, 1, tzinfo=UTC)
    return JobView("j", status, live=True, closed=False, started=started, run_id="r")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, True),
        ({"rewinds": 1}, False),
        ({"notices": ["refused: signal resume: the job is not waiting"]}, False),
        ({"notices": ["refused: signal limit: the price is not known"]}, True),
        ({"waiting": {"reason": "paused"}}, False),
        ({"waiting": {"reason": "approval"}}, True),
    ],
)
def test_what_another_set_going_in_between_was_not_resumed(after, expected):
    before = seen(waiting={"reason": "paused"}, rewinds=0)
    assert signal_effects.resume_took_effect(before, seen(**after)) is expected


@pytest.mark.parametrize(("refused", "expected"), [("", True), ("the model is unknown", False)])
def test_a_call_that_was_retried_begins_anew(refused, expected):
    before = seen(people=[])
    before.pending = ["model_call: attempt 4, The model endpoint answered 503"]
    after = seen(people=[{"signal": "resume", "refused": refused}])
    assert signal_effects.resume_took_effect(before, after) is expected


def test_limits_of_a_project_are_its_own(engine, starter):
    job = engine.job("tea-room", project=True)
    assert "tea-room has new limits: running" in starter("limit", job, "cost=20").out


@pytest.mark.parametrize(
    "command",
    [
        ["rewind", "--issue", "wrong law"],
        ["answer", "Black tea."],
        ["approve"],
        ["deny", "--reason", "no"],
        ["bypass", "secrets", "--reason", "an example"],
    ],
)
def test_what_a_project_hands_on_is_reported_with_the_job(engine, starter, command):
    name, *options = command
    job = engine.job(f"tea-room-{name}", project=True)
    output = starter(name, job, *options).out
    assert f"{job} handed {name} on to job {job}.brew" in output
    assert json.loads(starter(name, job, *options, "--json").out)["applied"] is True


@pytest.mark.parametrize(
    ("options", "payload"),
    [
        ([], {"issue": "wrong law"}),
        (["--phase", "1"], {"issue": "wrong law", "phase": 1, "restore_files": True}),
        (
            ["--phase", "2", "--keep-files"],
            {"issue": "wrong law", "phase": 2, "restore_files": False},
        ),
    ],
)
def test_rewind_sends_what_was_asked(engine, starter, options, payload):
    job = engine.job(f"rewound-{len(options)}")
    ran = starter("rewind", job, "--issue", "wrong law", *options)
    assert ran.code == 0
    assert f"{job} rewound" in ran.out
    assert engine.status(job)["signals"] == [signal("rewind", payload)]


def test_a_rewind_says_what_it_undid_and_what_undoes_it():
    status = {"phase": {"number": 5}}
    advice = _rewind_undo_advice("tea", {"phase": 2, "restore_files": True}, status)
    assert advice.startswith("undone: phases 2 to 4; files as at the start of phase 2, ")
    assert "`starter.py rewind tea --phase 4 --issue" in advice
    assert "files as they were" in _rewind_undo_advice(
        "tea", {"phase": 3, "restore_files": False}, status
    )
    # Going back to the start of the only phase that was undone would change nothing.
    assert _rewind_undo_advice("tea", {"phase": 4, "restore_files": True}, status) == (
        "undone: phase 4; files as at the start of phase 4"
    )
    assert _rewind_undo_advice("tea", {}, status) == ""


def test_limit_sends_numbers_and_reports_the_effect(engine, starter):
    engine.job("limited")
    ran = starter("limit", "limited", "cost=20", "phase.model_calls=800", "phase.cost=0.5")
    assert ran.code == 0
    assert "limited has new limits: running" in ran.out
    sent = {"cost": 20, "phase": {"model_calls": 800, "cost": 0.5}}
    assert engine.status("limited")["signals"] == [signal("limit", sent)]
    effect = json.loads(starter("limit", "limited", "tokens=5000", "--json").out)
    assert (effect["signal"], effect["applied"]) == ("limit", True)
    shown = starter("show", "limited").out
    assert "limits: job cost 0.5 of 20 · job tokens 0.5 of 5,000 · phase model calls" in shown


def test_a_limit_the_job_refuses_is_shown(engine, starter):
    engine.job("unpriced")
    error = starter("limit", "unpriced", "cost=13").error
    assert error == "job unpriced refused: signal limit: the price is not known"


def test_a_refusal_of_the_job_is_shown(engine, starter):
    engine.job("refusing")
    error = starter("rewind", "refusing", "--issue", "x", "--phase", "9").error
    assert error == "job refusing refused: signal rewind: there is no phase 9"


async def test_a_refusal_of_what_was_sent_before_is_no_refusal_of_this(monkeypatch):
    sent: list[str] = []

    async def signal(name, payload):
        sent.append(name)

    handle = SimpleNamespace(signal=signal)
    client = cast("Client", SimpleNamespace(get_workflow_handle=lambda job_id: handle))
    notices = ["refused: signal answer: no question is open"]
    states = iter([seen(), seen(notices=notices), seen(notices=notices, rewinds=1)])

    async def look(*_, **__):
        return next(states)

    monkeypatch.setattr(signal_sending, "view_job", look)
    applied, after, _ = await signal_sending.send_signal_and_wait(
        client, "j", "rewind", {}, signal_effects.rewind_took_effect
    )
    assert (applied, after.status["rewinds"], sent) == (True, 1, ["rewind"])


@pytest.mark.parametrize(
    ("words", "payload", "done"),
    [
        (["answer", "Black tea."], {"id": "q1", "text": "Black tea."}, "answered"),
        (["approve"], {"id": "a1"}, "approved"),
        (["approve", "--reason", "once"], {"id": "a1", "reason": "once"}, "approved"),
        (["deny", "--reason", "no"], {"id": "a1", "reason": "no"}, "denied"),
        (["deny", "--reason", "no", "--id", "a2"], {"id": "a2", "reason": "no"}, "denied"),
    ],
)
def test_an_answer_carries_the_id_of_what_is_open(engine, starter, words, payload, done):
    command, *options = words
    job = engine.job(f"asking-{'-'.join(words)}".replace(" ", "-").replace(".", ""))
    engine.signal(job, "ask")
    ran = starter(command, job, *options)
    assert ran.code == 0
    assert f"{job} {done}" in ran.out
    assert engine.status(job)["signals"] == [signal(command, payload)]


def test_an_answer_can_be_read_by_programs(engine, starter):
    engine.job("read")
    engine.signal("read", "ask")
    effect = json.loads(starter("answer", "read", "Black.", "--json").out)
    assert (effect["signal"], effect["applied"], effect["waiting"]) == ("answer", True, None)


def test_what_the_agent_asks_is_shown_as_it_stands(engine, starter):
    engine.job("asking-aloud")
    engine.signal("asking-aloud", "ask")
    assert "  default: [red]Any." in starter("show", "asking-aloud").out


def test_an_answer_to_nothing_is_refused(engine, starter):
    engine.job("unasked")
    error = starter("answer", "unasked", "Black.").error
    assert error == "job unasked refused: signal answer: no question is open"
    assert starter("answer", "unasked", " ").error.startswith("TEXT: ")
    assert starter("deny", "unasked", "--reason", " ").error.startswith("--reason: ")


def test_cancel_ends_the_job(engine, starter):
    engine.job("ended")
    ran = starter("cancel", "ended", "--reason", "not needed")
    assert ran.code == 0
    assert "ended cancelled" in ran.out
    assert engine.status("ended")["signals"] == [signal("cancel", {"reason": "not needed"})]


def test_a_closed_job_takes_no_signals(engine, starter):
    engine.job("closed")
    engine.signal("closed", "finish")
    engine.do(engine.client.get_workflow_handle("closed").result())
    for command in (["pause"], ["resume"], ["cancel"], ["limit", "cost=2"]):
        assert starter(command[0], "closed", *command[1:]).error == (
            "job closed is closed (completed); it takes no signals"
        )


def test_bypass_sends_guard_and_reason_and_reports_the_effect(engine, starter):
    engine.job("guarded")
    ran = starter("bypass", "guarded", "secrets", "--reason", "an example")
    assert ran.code == 0
    assert "guarded lets secrets be passed over" in ran.out
    sent = {"guard": "secrets", "reason": "an example"}
    assert engine.status("guarded")["signals"] == [signal("bypass", sent)]
    refused = starter("bypass", "guarded", "nobody", "--reason", "x")
    assert refused.code == 2
    assert "has refused nothing" in refused.err
