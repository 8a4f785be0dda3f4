"""Messages of commits that the system makes."""

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


def test_a_line_that_was_written_as_the_subject_stays_as_it_is() -> None:
    for subject in ("Strip what follows a group.", "[Fix] Tell 1. from e.g. 10.", "Fix it"):
        for written in (subject, f"{subject}\n\nNobody did."):
            assert commit_message(written, {}, has_subject=True) == f"{written}\n"
    long = f"{'word ' * 16}. More\n\nNobody did."
    subject = f"{('word ' * 14).strip()}…"
    assert commit_message(long, {}, has_subject=True) == f"{subject}\n\n{long}\n"
