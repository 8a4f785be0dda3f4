"""A user's mistake is one line on standard error and exit code 2, never a stack trace."""

import pytest

from cli.demo import DOCUMENT


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nonsense", "nonsense"),
        ("rewind x", "--issue"),
        ("rewind x --issue y --phase none", "--phase"),
        ("show", "JOB"),
        ("start nobody --instructions x", "generalist"),
        ("start generalist", "--instructions"),
        ("start creator", "--document"),
        ("start generalist --instructions @/no/such/file", "/no/such/file"),
        ("start generalist --instructions x --set limits.rewinds", "key=value"),
        ("start generalist --instructions x --set limits.nothing=1", "limits.nothing"),
        ("start generalist --instructions x --set limits.rewinds=many", "limits.rewinds"),
        ("start generalist --instructions x --set a=[", "YAML"),
        ("start creator --document /no/such/file", "/no/such/file"),
        ("start creator --document /", "not a file"),
        ("start generalist --instructions x --id ../x", "--id"),
        ("fork x", "--phase"),
        ("fork x --phase 0", "--phase"),
        ("fork x --phase 1 --instructions @/no/such/file", "/no/such/file"),
        ("fork x --phase 1 --id ../x", "--id"),
        ("diff x 1", "PHASE"),
        ("diff x 1 then", "or now"),
        ("demo --agent nobody", "generalist"),
        ("demo --document /no/such/file", "/no/such/file"),
    ],
)
def test_a_mistake_is_one_line(offline, arguments, told):
    assert told in offline(*arguments.split()).error


@pytest.mark.parametrize(
    "command",
    ["list", "show x", "watch x", "files x", "log x", "pause x", "cancel x", "rewind x --issue y",
     "diff x 1 2", "fork x --phase 1", "start generalist --instructions x"],
)  # fmt: skip
def test_no_server_is_one_line_that_says_what_to_do(offline, command):
    error = offline(*command.split()).error
    assert "localhost:1" in error
    assert "make demo" in error


@pytest.mark.parametrize(
    "command",
    ["show nobody", "watch nobody", "files nobody", "log nobody", "pause nobody", "resume nobody",
     "diff nobody 1 2", "fork nobody --phase 1", "cancel nobody", "rewind nobody --issue y"],
)  # fmt: skip
def test_an_unknown_job_is_named(starter, command):
    assert "there is no job 'nobody'" in starter(*command.split()).error


def test_a_workflow_of_another_type_is_no_job(engine, starter):
    engine.do(engine.client.start_workflow("Other", id="other", task_queue="longhaul"))
    assert "not a job" in starter("show", "other").error


def test_a_namespace_that_does_not_exist_is_named(starter, monkeypatch):
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "nowhere")
    assert "nowhere" in starter("list").error


def test_a_broken_client_configuration_is_named(starter, monkeypatch, tmp_path):
    broken = tmp_path / "temporal.toml"
    broken.write_text("[profile")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(broken))
    assert "configuration" in starter("list").error


def test_a_root_that_cannot_be_written_is_named(starter, monkeypatch, tmp_path):
    # Below a file: a mode would not stop a test that runs as root.
    (tmp_path / "file").write_text("")
    (tmp_path / "law.md").write_text("# Law")
    root = tmp_path / "file" / "workspaces"
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root))
    error = starter("start", "creator", "--document", str(tmp_path / "law.md")).error
    assert str(root) in error
    assert "LONGHAUL_WORKSPACES" in error
    assert str(root) in starter("demo").error


COMMANDS = (
    "demo", "start", "fork", "list", "show", "watch", "rewind", "cancel", "pause", "resume",
    "files", "diff", "log", "doctor",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(offline, command):
    ran = offline(command, "--help")
    assert ran.code == 0
    assert "Usage" in ran.out


def test_the_document_of_the_demo_ships():
    assert DOCUMENT.is_file()
