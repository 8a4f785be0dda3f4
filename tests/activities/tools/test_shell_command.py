"""`run_command`: from a checkpoint to a checkpoint, through a private folder in a sandbox."""

import json
import sys
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.commands import sandbox
from activities.guards.hooks.voters import hook_tool_name
from activities.redaction.credentials import refresh_credential_values
from protocol.scope_ledger import scope_from_texts
from tests.activities.standing import Standing

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(
        tmp_path, kind="tactical", set={"tools": ["files", "todos", "job", "shell"]}
    )


def test_a_command_sees_the_files_and_what_it_changes_is_kept(job: Standing) -> None:
    job.write("a.txt", "one\n")
    answer = job.call("run_command", command="cat a.txt; echo two > b.txt; rm a.txt; exit 2")
    assert answer == "Exit code 2.\none"
    assert job.text("b.txt") == "two\n"
    assert "a.txt" not in job.paths()
    assert job.call("run_command", command="cat b.txt; pwd") == "Exit code 0.\ntwo\n/workspace"


def test_caches_that_a_command_leaves_are_not_named_as_work(job: Standing) -> None:
    write = "mkdir -p output/__pycache__ && touch output/__pycache__/a.pyc && echo x > output/a.py"
    job.call("run_command", command=write)
    seen = job.open().state.seen
    assert (seen.calls, seen.files) == (1, ["output/a.py"])


@pytest.mark.parametrize(
    ("command", "notes", "claims"),
    [
        ("python3 -c 'print(6 * 7)'", "Prüfung bestanden.", True),
        ("python3 -c 'print(6 * 7)'", "", False),
        ("python3 -c 'assert 1 == 2'", "Reproduced.", True),
        ("wc -w instructions.md", "612 W\u00f6rter.", True),
        ("python3 --version", "All is done.", False),
        ("true; cat instructions.md", "All is done.", False),
        ("cat instructions.md", "instructions.md asks for tea.", True),
    ],
)
def test_what_came_of_a_program_is_a_claim(
    job: Standing, command: str, notes: str, claims: bool
) -> None:
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["Check the sum.", "tea"])
    snapshot.state.phase.todos[0].items = ["S1"]
    job.commit = snapshot.save("scope", 1)
    job.call("run_command", command=command)
    answer = job.call("todo_complete", notes=notes)
    [item, _] = job.open().state.scope
    assert (item.evidence.kind if item.evidence else None) == ("look" if claims else None)
    assert ("shows nothing for S1" in answer) is not claims


def test_a_command_with_a_nul_is_answered(job: Standing) -> None:
    # No program starts with a NUL: the job would wait for a person who could not help.
    answer = job.call("run_command", command="printf '\0'")
    assert answer == "Error: command holds a NUL character, which no shell takes; write \\0 in it."


def test_a_command_that_changes_nothing_is_no_change(job: Standing) -> None:
    job.reply(("run_command", '{"command": "echo 1 failed in 0.$(date +%N)s"}'))
    replies = [job.run("run_command", job.request()) for _ in range(2)]
    assert all(reply.ok and not reply.changed for reply in replies)
    assert len({reply.commit for reply in replies}) == 2
    assert len({reply.fingerprint for reply in replies}) == 1


def test_files_of_others_are_put_back_and_the_rest_is_kept(job: Standing) -> None:
    job.write("plan.md", "the plan")
    answer = job.call(
        "run_command",
        command="echo x > plan.md; rm -r archive; echo y > archive;"
        "rm instructions.md; mkdir instructions.md; echo z > instructions.md/a;"
        "echo z > tools; mkdir commands; echo forged > commands/log.jsonl; echo mine > mine.txt",
    )
    assert "Put back as they were" in answer
    for path in ("plan.md", "instructions.md", "archive", "tools", "commands/log.jsonl"):
        assert path in answer
    assert job.text("plan.md") == "the plan"
    assert job.text("instructions.md") == "Write about tea.\n"
    assert job.text("mine.txt") == "mine\n"
    assert "tools" not in job.paths()
    assert len(job.text("commands/log.jsonl").splitlines()) == 1


def test_what_a_command_leaves_running_is_named(job: Standing) -> None:
    # A model that starts a build in the background would wait for it in vain.
    begun = "until grep -q sleep /proc/$!/comm; do :; done"
    command = f"sleep 60 > /dev/null & {begun}; echo started; exit 3"
    assert job.call("run_command", command=command) == (
        "Exit code 3.\nstarted\n\n[Ended with this command, since nothing outlives it: sleep]"
    )
    assert job.call("run_command", command="sleep 0 & wait; echo ended | cat") == (
        "Exit code 0.\nended"
    )


def test_long_output_is_in_a_file(job: Standing) -> None:
    answer = job.call("run_command", command="seq 1 200000")
    assert "all of it: commands/000001.txt" in answer
    assert 18_000 < len(answer) <= job.open().config.limits.result_characters
    assert job.text("commands/000001.txt").startswith("1\n2\n")
    assert job.text("commands/000001.txt").endswith("\n200000\n")


def test_each_command_is_on_record(job: Standing) -> None:
    job.call("run_command", command="exit 1")
    job.call("run_command", command="sleep 9", timeout=1)
    first, second = map(json.loads, job.text("commands/log.jsonl").splitlines())
    assert (first["command"], first["exit_code"], first["step"]) == ("exit 1", 1, 1)
    assert (second["exit_code"], second["trouble"]) == (None, "it did not end within 1 s")
    assert "kept by the system" in job.call(
        "write_file", path="commands/log.jsonl", content="all is well"
    )


def test_a_timeout_beyond_the_limit_is_refused(job: Standing) -> None:
    assert "at most 600" in job.call("run_command", command="true", timeout=601)


def test_what_looks_like_a_credential_is_not_run(job: Standing) -> None:
    answer = job.call("run_command", command=f"echo ghp_{'a1B2' * 9} > x")
    assert answer.startswith("Error: Refused by secrets")
    assert "x" not in job.paths()


def test_a_hook_sees_a_command_as_bash(tmp_path: Path) -> None:
    script = (
        "import json, sys; e = json.load(sys.stdin);"
        "sys.exit(2 if e['tool_name'] == 'Bash' and 'rm' in e['tool_input']['command'] else 0)"
    )
    hook = tmp_path / "hook.py"
    hook.write_text(script)
    job = Standing.begin(
        tmp_path,
        kind="tactical",
        set={
            "tools": ["files", "todos", "job", "shell"],
            "hooks": {"PreToolUse": [{"matcher": "Bash", "command": f"{sys.executable} {hook}"}]},
        },
    )
    job.write("a.txt", "one")
    assert hook_tool_name("run_command") == "Bash"
    assert job.call("run_command", command="rm a.txt").startswith("Error: Refused by")
    assert "a.txt" in job.paths()
    assert job.call("run_command", command="cat a.txt") == "Exit code 0.\none"


@pytest.mark.parametrize("network", [True, ["pypi.org"]])
def test_with_the_network_an_interrupted_command_is_not_run_again(
    tmp_path: Path, network: object
) -> None:
    job = Standing.begin(
        tmp_path,
        kind="tactical",
        set={"tools": ["files", "todos", "job", "shell"], "shell.network": network},
    )
    job.reply(("run_command", '{"command": "date +%N > now; cat now"}'))
    first = job.run("run_command", job.request(), local=False)
    again = job.run("run_command", job.request(), local=False)
    assert first.commit == again.commit


def test_a_repository_made_by_a_command_is_kept_whole(job: Standing) -> None:
    setup = "git init -q r && cd r && git config user.email a@b.c && git config user.name n"
    job.call("run_command", command=f"{setup} && echo 1 > a && git add a && git commit -qm one")
    assert "one" in job.call("run_command", command="cd r && git log --format=%s && git status")


def test_a_variables_value_is_in_no_file_of_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_LOGIN", "sesame-open-42")
    refresh_credential_values()
    job = Standing.begin(
        tmp_path,
        kind="tactical",
        set={
            "tools": ["files", "todos", "job", "shell"],
            "shell.environment": {"LOGIN": "INDEX_LOGIN"},
        },
    )
    answer = job.call(
        "run_command", command='printf "a%sb" "$LOGIN" > login; chmod +x login; echo 1 > other'
    )
    assert answer.startswith("Exit code 0.")
    assert "Credentials became [redacted] in: login" in answer
    assert job.text("login") == "a[redacted]b"
    assert job.text("other") == "1\n"
    monkeypatch.delenv("INDEX_LOGIN")
    refresh_credential_values()
    # The job waits for a person, as the model cannot set it.
    with pytest.raises(ApplicationError, match="Set INDEX_LOGIN where workers start"):
        job.call("run_command", command=":")


def test_hosts_that_were_refused_are_named_in_the_result(tmp_path: Path) -> None:
    job = Standing.begin(
        tmp_path,
        kind="tactical",
        set={"tools": ["files", "todos", "job", "shell"], "shell.network": ["pypi.org"]},
    )
    answer = job.call("run_command", command="curl -s https://refused.example/")
    assert answer.endswith("[shell.network refused: refused.example:443]")


def test_folders_nested_without_end_are_told_to_the_agent(tmp_path: Path) -> None:
    job = Standing.begin(
        tmp_path,
        kind="tactical",
        set={"tools": ["files", "todos", "job", "shell"], "shell.caches": {"TEA_CACHE": "tea"}},
    )
    nest = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"
    for folder in (".", "/cache"):
        answer = job.call("run_command", command=f'cd {folder}; python3 -c "{nest}"; sleep 1.2')
        assert "in folders nested too deeply to count" in answer
    assert job.call("run_command", command="echo on") == "Exit code 0.\non"
