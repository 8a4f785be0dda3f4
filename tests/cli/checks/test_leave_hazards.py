"""What would stop a job while nobody is there: each planted hazard is named, and its remedy."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from cli.checks.leave_facts import check_absences, file_system_type, parse_absence_hours
from cli.checks.leave_hazards import Absence, describe_wait_reasons, list_hazards, token_expiry
from cli.output import UserError
from cli.start.unattended import unattended_settings
from config.agent_files import load_agent
from protocol.status import JobStatus, LimitUse
from protocol.waiting import WaitReason, WaitState
from tests.receiver import receiver

NOW = 1_800_000_000.0
HOURS = 48.0


def token(expires: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def prepared(settings: dict[str, Any]) -> Absence:
    """Return a job that nothing known would stop, but for these settings."""
    config = load_agent(
        "generalist",
        {
            "limits.approve_hours": 1.0,
            "limits.clarification_hours": 1.0,
            "notify": {"url": "http://127.0.0.1:9/"},
            "fallbacks": [{"name": "another"}],
            "model.base_url": "http://127.0.0.1:9/v1",
            **settings,
        },
    )
    return Absence(
        HOURS,
        config,
        NOW,
        variables={"LONGHAUL_ALIVE": "http://127.0.0.1:9/", "OPENAI_API_KEY": "sk-1"},
        workers=2,
        roots=("root1",),
        retention_hours=72,
        free_bytes=10**12,
        file_system="ext4",
    )


def job(**fields: Any) -> JobStatus:
    return JobStatus(job_id="tea", status="running", **fields)


WAITING = WaitState(reason="review", message="Refused three times.", remedy="Look at it.")
SHELL = {"tools": ["files", "todos", "job", "shell"]}
HAZARDS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "approval": (
        {"approve": ["delete_file"], "limits.approve_hours": None},
        {}, "approval: each call of delete_file waits for approval without end",
        "limits.approve_hours",
    ),
    "approval hook": (
        {"hooks": {"PreToolUse": [{"command": "/bin/ask"}]}, "limits.approve_hours": 60},
        {}, "approval: the hooks ask may ask for approval, which waits for 60 hours",
        "limits.approve_hours",
    ),
    "plan": ({"approve_plan": True}, {}, "approval: the plan waits", "approve_plan=false"),
    "left out": (
        {"limits.approve_hours": None}, {}, "approval: an end with many items left out",
        "scope.beyond=list",
    ),
    "question": (
        {"limits.clarification_hours": 24}, {}, "clarification: a question waits 24 of the 48",
        "limits.clarification_hours",
    ),
    "no ceiling": (
        {"limits.job.model_calls": None}, {}, "budget: nothing limits what the job spends",
        "limits.job.cost",
    ),
    "clock": (
        {"limits.job.seconds": 3600}, {}, "budget: the job's clock ends after 1 hours",
        "limits.job.seconds=172800",
    ),
    "no price": (
        {"limits.job.cost": 5.0}, {}, "budget: cost is limited, and another, gpt-5-mini has no",
        "prices",
    ),
    "nearly used": (
        {}, {"status": job(limits={"job": {"tokens": LimitUse(limit=1000, spent=900)}})},
        "budget: 900 of 1000 of limits.job.tokens are used", "starter.py limit JOB tokens=",
    ),
    "rate": (
        {}, {"status": job(limits={"job": {"tokens": LimitUse(limit=1000, spent=100)}}),
             "elapsed_hours": 1.0},
        "budget: limits.job.tokens of 1000 is used up before then", "starter.py limit JOB tokens=",
    ),
    "token": (
        {}, {"variables": {"OPENAI_API_KEY": token(NOW + 7200), "LONGHAUL_ALIVE": "x"}},
        "credentials: OPENAI_API_KEY expires in 2 hours", "a new OPENAI_API_KEY",
    ),
    "login": (
        {}, {"variables": {"TEMPORAL_API_KEY": token(NOW - 5), "LONGHAUL_ALIVE": "x"}},
        "credentials: TEMPORAL_API_KEY expires in 0 hours", "a new TEMPORAL_API_KEY",
    ),
    "no fallback": ({"fallbacks": []}, {}, "endpoint: no other model", "fallbacks"),
    "disk": ({}, {"free_bytes": 10**9}, "storage: 1.0 GB are free", "free space"),
    "disk for large jobs": (
        {}, {"free_bytes": 10**10, "largest_job_bytes": 5 * 10**9},
        "storage: 10.0 GB are free on the disk of the workspaces root, and jobs may need 15.0",
        "free space",
    ),
    "container": ({}, {"file_system": "overlay"}, "storage: the workspaces root is on overlay",
                  "workspace.remote"),
    "keep": ({"keep_days": 1}, {}, "storage: closed jobs are deleted after 1 days", "keep_days=3"),
    "roots": ({}, {"roots": ("one", "two")}, "storage: workers with several workspaces roots",
              "LONGHAUL_WORKSPACES"),
    "sandbox": (SHELL, {"sandbox_problem": "no bwrap"}, "dependency: its commands have no sandbox",
                "extra sandbox"),
    "variables": ({"shell.environment": {"A": "PASSED_ON"}}, {},
                  "dependency: its commands need PASSED_ON", "shell.environment"),
    "retention": ({}, {"retention_hours": 24.0}, "dependency: the server forgets ended jobs",
                  "retention"),
    "no server": ({}, {"server_problem": "no Temporal server at h", "workers": None},
                  "worker: no Temporal server at h", "TEMPORAL_ADDRESS"),
    "no worker": ({}, {"workers": 0}, "worker: no worker polls", "python worker.py"),
    "one worker": ({}, {"workers": 1}, "worker: one worker alone", "second worker"),
    "no switch": ({}, {"variables": {}}, "worker: nobody notices when no worker works",
                  "LONGHAUL_ALIVE"),
    "no address": ({"notify": None}, {}, "notify: nobody learns that the job waits", "notify.url"),
    "occasions": ({"notify": {"url": "http://h/", "on": ["end"]}}, {},
                  "notify: nobody learns of: waiting, limit", "notify.on"),
    "not delivered": ({}, {"notify_problem": "h answered 500"},
                      "notify: a test notification did not arrive: h answered 500", "notify"),
    "waits already": ({}, {"status": job(waiting=WAITING)},
                      "job: it waits already (review): Refused", "starter.py resume tea"),
    "is retried": ({}, {"status": job(retrying=["model_call: attempt 3, away"])},
                   "job: it is tried again: model_call: attempt 3", "starter.py show tea"),
}  # fmt: skip


def test_a_prepared_job_has_no_hazard() -> None:
    assert list_hazards(prepared({})) == []


@pytest.mark.parametrize("name", HAZARDS)
def test_a_planted_hazard_is_named_with_its_setting(name: str) -> None:
    settings, facts, found, remedy = HAZARDS[name]
    lines = [each.as_line() for each in list_hazards(replace(prepared(settings), **facts))]
    [line] = [line for line in lines if found in line]
    assert remedy in line.partition(" → ")[2]
    # Two of them come with another.
    assert len(lines) <= 2


def test_without_an_endpoint_the_rehearsal_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    lines = [each.as_line() for each in list_hazards(prepared({"model.base_url": None}))]
    assert "✗ endpoint: no endpoint is configured: the rehearsal model answers" in lines[0]


def test_only_tokens_have_an_expiry() -> None:
    assert token_expiry(token(12.5)) == 12.5
    assert token_expiry(f"Bearer {token(7)}") == 7
    for text in ("", "sk-1", "a.b.c", "e30.W10.c2ln", "e30.e30.c2ln"):
        assert token_expiry(text) is None


def test_every_reason_to_wait_is_announced() -> None:
    assert set(describe_wait_reasons(load_agent("generalist"))) == set(get_args(WaitReason))


def test_an_unattended_start_sets_what_is_left_open() -> None:
    open_limits: dict[str, object] = {"limits.job.model_calls": None, "limits.job.seconds": None}
    assert unattended_settings("generalist", open_limits, 48) == {
        "limits.approve_hours": 1.0,
        "limits.clarification_hours": 1.0,
    }
    own: dict[str, object] = {"limits.approve_hours": 5, "limits.clarification_hours": 0.5}
    assert unattended_settings("generalist", own, 48) == {}


async def test_a_test_notification_is_sent_and_its_loss_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "localhost:1")
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(tmp_path / "root"))
    with receiver() as people:
        config = load_agent("generalist", {"notify": {"url": people.url}})
        absence = Absence(HOURS, config, NOW)
        first = [each.as_line() async for each in check_absences([absence, absence])]
        assert [body["status"] for body in people.bodies] == ["test"]
    second = [each.as_line() async for each in check_absences([absence])]
    assert not any("did not arrive" in line for line in first)
    assert any("a test notification did not arrive" in line for line in second)
    assert not (tmp_path / "root").exists()


def test_the_file_system_is_that_of_the_longest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"overlay / overlay rw 0 0\n/dev/sda {tmp_path} ext4 rw 0 0\n")
    assert file_system_type(tmp_path, mounts) == "ext4"
    assert file_system_type(Path("/"), mounts) == "overlay"
    assert file_system_type(tmp_path, tmp_path / "missing") == ""


def test_an_absence_is_hours_or_days() -> None:
    assert parse_absence_hours("48h") == parse_absence_hours("2d") == 48
    with pytest.raises(UserError, match="such as 48h or 2d"):
        parse_absence_hours("soon")
