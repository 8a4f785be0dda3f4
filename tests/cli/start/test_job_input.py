"""`start`: what reaches the job, and what happens when an id is already taken."""

import json

from cli.signals.signal_sending import signal_sender_name, start_by_sender
from tests.http_server import Handler, served


def test_the_job_gets_the_plain_object_of_the_contract(engine, starter, tmp_path, workspaces):
    law = tmp_path / "the law.md"
    law.write_text("# Law")
    instructions_file = tmp_path / "told.md"
    instructions_file.write_text("Read ünicode")
    ran = starter(
        "start", "creator", "--id", "started", "--instructions", f"@{instructions_file}",
        "--document", str(law), "--document", "https://example.org/law.html",
        "--item", "§ 1", "--item", "§ 2", "--set", "limits.rewinds=3", "--json",
    )  # fmt: skip
    assert ran.code == 0
    assert json.loads(ran.out)["job_id"] == "started"
    job_input = engine.status("started")["input"]
    staged = job_input["documents"][0]
    assert job_input == {
        "agent": "creator",
        "instructions": "Read ünicode",
        "documents": [staged, "https://example.org/law.html"],
        "items": ["§ 1", "§ 2"],
        "set": {"limits.rewinds": 3},
        "by": signal_sender_name(),
    }
    assert staged.startswith("staged:")
    assert staged.endswith("/the law.md")
    copy = workspaces / ".longhaul" / "staged" / staged.removeprefix("staged:")
    assert copy.read_text() == "# Law"


def test_an_id_is_made_and_printed_with_the_link(engine, starter, monkeypatch):
    with served(Handler) as address:
        monkeypatch.setenv("TEMPORAL_UI_ADDRESS", f"{address}/")
        ran = starter("start", "generalist", "--instructions", "x")
    job, link = ran.out.splitlines()
    assert job.startswith("generalist-")
    assert len(job) == len("generalist-") + 6
    assert link == f"{address}/namespaces/default/workflows/{job}"
    assert engine.status(job)["input"] == {
        "agent": "generalist",
        "instructions": "x",
        "by": signal_sender_name(),
    }


def test_a_link_is_printed_to_a_configured_web_ui_that_this_host_does_not_reach(
    engine, starter, monkeypatch
):
    monkeypatch.setenv("TEMPORAL_UI_ADDRESS", "http://no-such-host.invalid:8080")
    ran = starter("start", "generalist", "--instructions", "x")
    assert "http://no-such-host.invalid:8080/namespaces/default/workflows/" in ran.out


def test_an_id_that_runs_already_starts_nothing(engine, starter):
    engine.job("taken")
    error = starter("start", "generalist", "--instructions", "x", "--id", "taken").error
    assert "already running" in error
    assert engine.status("taken")["input"]["instructions"] == "Read the law"


def test_the_id_of_a_closed_job_stays_taken(engine, starter):
    engine.job("closed-before")
    engine.signal("closed-before", "finish")
    engine.do(engine.client.get_workflow_handle("closed-before").result())
    error = starter("start", "generalist", "--instructions", "x", "--id", "closed-before").error
    assert "completed" in error


def test_wait_prints_the_result_and_ends_by_it(engine, starter, between_looks):
    for signal, code in (("finish", 0), ("cancel", 1)):
        between_looks(signal)
        ran = starter(
            "start", "generalist", "--instructions", "x", "--id", f"waited-{signal}", "--wait"
        )
        assert ran.code == code
        assert "All is done." in ran.out
        assert "output/summary.md" in ran.out


def test_a_start_that_fails_says_why(starter):
    ran = starter("start", "generalist", "--instructions", "bad start", "--wait")
    assert ran.code == 1
    assert "agent 'x' is not known" in ran.out


def test_each_run_of_a_trial_says_who_starts_it():
    start = {"agent": "generalist"}
    for kind, data, said in (
        ("Job", start, start_by_sender("Trial", {"start": start})["start"]),
        ("Project", {"form": "features", "by": "ada@host"}, {"form": "features", "by": "ada@host"}),
        ("Job", start, {**start, "by": signal_sender_name()}),
    ):
        assert start_by_sender(kind, data) == said
