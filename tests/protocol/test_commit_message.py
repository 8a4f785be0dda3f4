"""Messages of commits that the system makes."""

from __future__ import annotations

from protocol.commit_message import commit_message


def test_a_commits_message_says_what_was_done() -> None:
    message = commit_message(
        "Added the parser. It reads\ttables.\n\nTests: 3.",
        {"Job": "tea.brew-coder-1", "Evidence": ["unit: pytest: exit code 0", "api: x"]},
    )
    assert message == (
        "Added the parser\n\nAdded the parser. It reads\ttables.\n\nTests: 3.\n\n"
        "Job: tea.brew-coder-1\nEvidence: unit: pytest: exit code 0\nEvidence: api: x\n"
    )
    assert commit_message("Done.", {}) == "Done\n"
    subject = commit_message("word " * 40, {}).partition("\n")[0]
    assert len(subject) <= 72
    assert subject.endswith("word…")
