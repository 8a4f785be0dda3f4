"""The text of a digest stays readable and short, whatever jobs are called."""

from activities.notifications.digest_text import DigestJob, digest_text
from protocol.usage import Spend


def _lines(*jobs: DigestJob) -> list[str]:
    return digest_text(0, jobs, 0).split("\n")[1:]


def test_a_job_has_one_line_of_bounded_length_whatever_its_id() -> None:
    name = "tea\nEnded: cake: completed"
    [line] = _lines(DigestJob(id=name, reason="budget", command=f"starter.py show '{name}'"))
    assert line.startswith("Waiting: tea Ended: cake: completed: budget. Type: ")
    [line] = _lines(DigestJob(id="x" * 1000, reason="budget", command=f"show {'x' * 1000}"))
    assert len(line) == 500
    assert "…: budget. Type: show xxx" in line


def test_jobs_that_need_a_person_or_do_not_answer_are_named_before_others() -> None:
    held = [DigestJob(id=f"held-{n}", reason="quota", spent=Spend(tokens=9)) for n in range(30)]
    working = [DigestJob(id=f"works-{n}", spent=Spend(tokens=9)) for n in range(30)]
    lines = _lines(
        *held,
        DigestJob(id="lacking", reason="dependency", command="starter.py show lacking"),
        *working,
        DigestJob(id="silent", is_known=False),
    )
    assert lines[0].startswith("Waiting: lacking: dependency. Type: starter.py show lacking (")
    assert lines[20:22] == ["Waiting: 11 more", "Running: silent: unclear (it did not answer)"]
    assert lines[-1] == "Running: 11 more"
