"""A user's mistake gives one line on standard error and exit code 2, never a stack trace."""

import logging

import pytest

from activities.checkpoints import Root
from engine.logs import JsonFormatter
from tests.activities.traces.noting import store, trace


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("nonsense", "nonsense"),
        ("rewind x", "--issue"),
        ("rewind x --issue y --phase none", "--phase"),
        ("show", "JOB"),
        ("start nobody --instructions x", "generalist"),
        ("start generalist", "--instructions"),
        ("start creator", "--document"),
        ("start generalist --instructions @/no/such/file", "/no/such/file"),
        ("start generalist --instructions @~nosuchuser/x", "no such user"),
        ("start generalist --instructions /etc/passwd", "a file; @/etc/passwd reads it"),
        ("fork x --phase 1 --instructions /etc/passwd", "a file; @/etc/passwd reads it"),
        ("start generalist --instructions x --set limits.rewinds", "key=value"),
        ("start generalist --instructions x --set limits.nothing=1", "limits.nothing"),
        ("start generalist --instructions x --set limits.rewinds=many", "limits.rewinds"),
        ("start generalist --instructions x --set tools=[nix]", "tools: 'nix' is neither a tool"),
        ("start generalist --instructions x --set tools=[files]", "without todo_complete"),
        ("start generalist --instructions x --set approve=[nix]", "approve: 'nix' is neither"),
        ("start generalist --instructions x --set folders=[../x]", "folders: The path '../x'"),
        ("start generalist --instructions x --set mcp.files.command=[a]", "mcp: files is the name"),
        ("start generalist --instructions x --set review.agent=creator", "a reviewer only reads"),
        ("start generalist --instructions x --set a=[", "YAML"),
        ("start creator --document /no/such/file", "/no/such/file"),
        ("start creator --document /", "not a file"),
        ("start creator --document ~nosuchuser/x", "no such user"),
        (f"start creator --document {'x' * 300}", "file name too long"),
        ("start generalist --instructions x --id ../x", "--id"),
        ("start generalist --instructions x --id=", "--id '': expected letters"),
        ("project x.yaml --id=", "--id '': expected letters"),
        ("fork x --phase 1 --id=", "--id '': expected letters"),
        ("traces --type foo", "'violation', 'correction'"),
        ("traces --universal 9T6", "such as 96 or T96"),
        ("guards list x", "guards list: takes no name"),
        ("guards propose x", "`starter.py guards show x`"),
        ("limit x", "KEY=VALUE"),
        ("limit x cost", "'cost': expected key=value, such as cost=20"),
        ("limit x =20", "expected key=value"),
        ("limit x cost=", "expected key=value"),
        ("limit x cost=much", "limit: cost: input should be a valid number"),
        ("limit x cost=-2", "limit: cost: input should be greater than 0"),
        ("limit x cost=nan", "limit: cost: input should be a finite number"),
        ("limit x tokens=1.5", "limit: tokens: input should be a valid integer"),
        (
            "limit x money=3",
            "limit: money: unknown key; its keys are: model_calls, tool_calls, "
            "tokens, cost, seconds, phase.model_calls, phase.tool_calls",
        ),
        ("limit x phase=3", "limit: phase:"),
        ("limit x phase.money=3", "limit: phase.money: unknown key"),
        ("limit x phase.phase.cost=3", "limit: phase.phase.cost: unknown key"),
        ("limit x phase=3 phase.cost=3", "phase.cost is given twice"),
        ("limit x cost=3 cost=4", "cost is given twice"),
        ("limit x phase.cost=3 phase.cost=4", "phase.cost is given twice"),
        ("fork x --phase 0", "--phase"),
        ("fork x --phase 1 --instructions @/no/such/file", "/no/such/file"),
        ("fork x --phase 1 --id ../x", "--id"),
        ("fork x --phase 1 --set model.name", "key=value"),
        ("config nonsense", "nonsense"),
        ("config schema nonsense", "nonsense"),
        ("config check nobody", "generalist"),
        ("tools nobody", "generalist"),
        ("diff x 1", "PHASE"),
        ("diff x 1 then", "or now"),
        ("demo --agent nobody", "generalist"),
        ("demo --document /no/such/file", "/no/such/file"),
    ],
)
def test_a_mistake_is_one_line(offline, arguments, expected):
    error = offline(*arguments.split()).error
    assert expected in error
    assert "Value error" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["project", "a\nb"],
        ["start", "creator", "--document", "a\nb"],
        ["show", "x" * 100_000, "y"],
        ["list", "x" * 100_000],
        ["guards", "x" * 100_000],
        ["project", "x.yaml", "--id", "x" * 100_000],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_was_typed_makes_the_line_no_page(offline, arguments):
    assert len(offline(*arguments).error) < 2500


def test_what_another_machine_may_have_is_left_to_the_worker(offline):
    start = ["start", "generalist", "--instructions", "x", "--set"]
    # Valid changes: another model with a known price; a sandbox; a server asked for its tools.
    served = ["mcp.web2.command=[a]", "--set", "approve=[web2__fetch]"]
    for left in (["limits.job.cost=2"], ["tools=[files, todos, job, shell]"], served):
        assert "no Temporal server" in offline(*start, *left).error


def test_a_document_over_the_limit_is_not_handed_in(offline, tmp_path, workspaces):
    law = tmp_path / "law.md"
    law.write_text("§" * 600)
    start = ["start", "creator", "--document", str(law), "--set", "limits.file_bytes=1000"]
    message = f"document {law}: 1,200 bytes, larger than 1,000 (limits.file_bytes); split it"
    assert offline(*start).error == message
    assert not (workspaces / ".longhaul" / "staged").exists()


def test_more_than_fits_into_a_start_is_refused(offline, tmp_path):
    instructions_file = tmp_path / "told.md"
    instructions_file.write_text("x" * 200_001)
    for command in (["start", "generalist"], ["fork", "x", "--phase", "1"]):
        error = offline(*command, "--instructions", f"@{instructions_file}").error
        assert error.startswith("instructions have 200,001 characters; at most 200,000 fit")
    start = ["start", "generalist", "--instructions"]
    items = ["--item=x"] * 2001
    assert "2,001 items; a job takes 2,000" in offline(*start, "x", *items).error
    # Within the limit of characters, but each has four bytes.
    instructions_file.write_text("\N{TEACUP WITHOUT HANDLE}" * 200_000)
    items = [f"--item={'x' * 400}"] * 2000
    assert (
        "bytes as JSON; at most 1,500,000" in offline(*start, f"@{instructions_file}", *items).error
    )


@pytest.mark.parametrize("number", ["96", "T96"])
def test_a_trace_is_named_by_its_number_as_it_is_listed(offline, workspaces, number):
    Root.open(workspaces, create=True)
    assert f"there is no trace {number};" in offline("traces", "--universal", number).error


def test_what_a_database_or_a_disk_does_not_take_is_named(offline, workspaces):
    root = Root.open(workspaces, create=True)
    assert "less than or equal to" in offline("traces", "--limit", "9" * 20).error
    for number in range(6):
        store(root, trace(number), job=f"job-{number % 2}")
    (workspaces / ".longhaul" / "guards").touch()
    assert ": Not a directory" in offline("guards", "propose").error


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "lat\udce9"],
        ["start", "creator", "--document", "lat\udce9"],
        ["start", "creator", "--instructions", "lat\udce9"],
        ["lat\udce9"],
    ],
)
def test_an_argument_that_is_not_utf_8_is_named(starter, arguments):
    error = starter(*arguments).error
    assert error.startswith(r"argument 'lat\xe9' is not UTF-8; ")


def test_a_level_of_the_log_that_is_none_is_named(offline, monkeypatch):
    monkeypatch.setenv("LONGHAUL_LOG", "loud")
    assert offline("list").error.startswith("LONGHAUL_LOG: found 'loud', expected one of DEBUG")
    monkeypatch.setenv("LONGHAUL_LOG", "")
    assert "no Temporal server" in offline("list").error


def test_a_form_of_the_log_that_is_none_is_named(offline, monkeypatch):
    monkeypatch.setenv("LONGHAUL_LOG_FORMAT", "xml")
    error = offline("demo", "--agent", "nobody").error
    assert error == "LONGHAUL_LOG_FORMAT: found 'xml', expected json or text"


def test_a_server_that_was_asked_by_tls_is_said_to_be(offline, monkeypatch):
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    assert "asked by TLS, as the configuration or an API key demands)" in offline("list").error
    monkeypatch.delenv("TEMPORAL_TLS")
    assert "TLS" not in offline("list").error


@pytest.mark.parametrize("option", ["--restore-files", "--keep-files"])
def test_a_rewind_of_the_running_phase_takes_no_word_on_files(offline, option):
    error = offline("rewind", "x", "--issue", "y", option).error
    assert "--restore-files and --keep-files need --phase" in error


def test_the_demo_logs_as_a_worker_does(offline, monkeypatch):
    monkeypatch.setenv("LONGHAUL_LOG_FORMAT", "json")
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        assert "generalist" in offline("demo", "--agent", "nobody").error
        assert [type(handler.formatter) for handler in root.handlers] == [JsonFormatter]
        assert root.level == logging.ERROR
    finally:
        root.handlers[:], level = before
        root.setLevel(level)


@pytest.mark.parametrize(
    "command",
    ["list", "show x", "watch x", "files x", "log x", "pause x", "cancel x", "rewind x --issue y",
     "diff x 1 2", "fork x --phase 1", "limit x cost=2", "forget x",
     "start generalist --instructions x"],
)  # fmt: skip
def test_no_server_is_one_line_that_says_what_to_do(offline, command):
    error = offline(*command.split()).error
    assert "localhost:1" in error
    assert "make demo" in error


@pytest.mark.parametrize(
    "command",
    ["show nobody", "watch nobody", "files nobody", "log nobody", "pause nobody", "resume nobody",
     "diff nobody 1 2", "fork nobody --phase 1", "cancel nobody", "rewind nobody --issue y",
     "limit nobody cost=2"],
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


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("start mine --instructions Go.", ""),
        ("project FILE", "form: pipeline\nstages: [{agent: mine, task: Go.}]\ninstructions: Go."),
        (
            "trial FILE",
            "configurations: {a: {}, b: {set: {limits.rewinds: 1}}}\nruns: 1\n"
            "start: {agent: mine, instructions: Go.}",
        ),
    ],
)
def test_an_agent_with_an_unknown_tool_is_not_started(
    starter, monkeypatch, tmp_path, command, text
):
    agent = tmp_path / "own" / "agents" / "mine" / "agent.yaml"
    agent.parent.mkdir(parents=True)
    agent.write_text("description: Mine.\ntools: [files, todos, job, reed_file]\n")
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path / "own"))
    file = tmp_path / "start.yaml"
    file.write_text(text)
    error = starter(*command.replace("FILE", str(file)).split()).error
    assert "tools: 'reed_file' is neither a tool nor a group of tools, expected read_file" in error


def test_a_root_that_cannot_be_written_is_named(starter, monkeypatch, tmp_path):
    # Below a file, as a mode would not stop a test that runs as root.
    (tmp_path / "file").write_text("")
    (tmp_path / "law.md").write_text("# Law")
    root = tmp_path / "file" / "workspaces"
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root))
    error = starter("start", "creator", "--document", str(tmp_path / "law.md")).error
    assert str(root) in error
    assert "LONGHAUL_WORKSPACES" in error
    assert str(root) in starter("demo").error
