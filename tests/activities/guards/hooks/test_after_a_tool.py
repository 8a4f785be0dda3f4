"""Hooks after a tool: what they say is added to its result, what they make of the files is kept."""

from pathlib import Path

import pytest

from tests.activities.guards.hooks.scripts import begin, call, say


def test_after_a_tool_its_result_gets_what_hooks_say(tmp_path: Path) -> None:
    expression = "open(os.path.join(event['cwd'], 'a.md')).read()"
    job = begin(
        tmp_path,
        "PostToolUse",
        f"print({expression}, 'needs a title', file=sys.stderr); sys.exit(2)",
        say({"hookSpecificOutput": {"additionalContext": "12 files now"}}),
        "sys.exit(1)",
    )
    reply, answer = call(job, "write_file", path="a.md", content="tea")
    assert reply.ok
    assert answer.startswith(
        "Wrote 3 characters to a.md.\n\n[h0] tea needs a title\n\n[h1] 12 files"
    )
    assert "[h2] The hook failed" in answer
    assert job.text("a.md") == "tea"
    assert len(reply.remarks) == 3


def test_what_a_hook_after_a_tool_makes_of_the_files_is_kept(tmp_path: Path) -> None:
    write = "open(event['tool_input']['file_path'], 'w').write"
    job = begin(
        tmp_path,
        "PostToolUse",
        f"{write}('TEA\\n')",
        f"open('instructions.md', 'w').write('x'); {write}('Tea.\\n'); sys.exit(2)",
        f"{write}('half'); sys.exit(1)",
    )
    instructions, outcome = (
        job.text("instructions.md"),
        call(job, "write_file", path="a.md", content="tea"),
    )
    assert "[h0] It changed a.md: read again before you edit." in outcome[1]
    assert "[h1] no reason was given\nIt changed a.md: read again before you edit." in outcome[1]
    assert (job.text("a.md"), job.text("instructions.md")) == ("Tea.\n", instructions)
    assert not job.root.lost_found("job").exists()


def test_what_a_hook_says_and_writes_makes_no_call_look_like_progress(tmp_path: Path) -> None:
    clock = "now = time.time_ns(); open('audit.log', 'a').write(f'{now}\\n')\n"
    job = begin(tmp_path, "PostToolUse", clock + "print(now, file=sys.stderr); sys.exit(2)")
    job.write("a.md", "tea")
    outcomes = [call(job, "read_file", path="a.md") for _ in range(2)]
    assert outcomes[0][1] != outcomes[1][1]
    assert outcomes[0][0].fingerprint == outcomes[1][0].fingerprint
    assert not outcomes[0][0].changed
    assert len(job.text("audit.log").splitlines()) == 2


@pytest.mark.parametrize("fail", ["closed", "open"])
def test_what_a_hook_after_a_tool_fails_with_tells_no_credential(tmp_path: Path, fail: str) -> None:
    # Made up by the hook: it looks like a credential, but is none of ours.
    key = "ghp_" + "a1B2" * 9
    body = f"print('no access with {key}', file=sys.stderr); sys.exit(1)"
    job = begin(tmp_path, "PostToolUse", body, fail=fail)
    reply, answer = call(job, "write_file", path="a.md", content="tea")
    disclosed = answer if fail == "closed" else ""
    assert "no access with [redacted]" in disclosed + str(reply.remarks)
    assert key not in answer + reply.model_dump_json()
