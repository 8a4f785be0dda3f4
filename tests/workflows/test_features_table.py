"""The feature loop row by row: the next action in each state, without any job."""

import pytest

from protocol.payload_reading import read_project_signal_payload
from protocol.payloads import ReceivedSignal
from protocol.project_record import ProjectRecord
from protocol.project_requests import ChildWork
from protocol.project_units import Feature
from tests.workflows.project_records import Play, features, proof, started, verdict
from workflows.projects import project_status
from workflows.projects.project_signals import ProjectSignals
from workflows.projects.project_steps import ProjectSteps
from workflows.rules.project_moves import EndProject, WaitForJobs
from workflows.rules.project_units import unit_merge_message
from workflows.runtime.inbox import Inbox

CODED = ChildWork(commit="c1")


def listed(*names: str) -> Play:
    """Return a project whose features are known."""
    play = Play(started("features"))
    play.one(features(*names))
    play.merges.clear()
    return play


def feature(project: ProjectRecord, name: str) -> Feature:
    return next(each for each in project.features if each.id == name)


def test_without_a_list_the_initializer_runs_and_its_work_is_merged() -> None:
    play = Play(started("features"))
    move = play.one(features("brew", "serve"))
    assert (move.job, move.handoff.to_agent) == ("tea.setup-initializer-1", "initializer")
    assert move.handoff.report == "features"
    assert play.merges == ["c-setup"]
    assert [each.status for each in play.project.features] == ["pending", "pending"]


def test_an_initializer_without_a_list_runs_again_and_then_the_project_fails() -> None:
    play = Play(started("features"))
    play.one(ChildWork(commit="c1", problems=["There is no file output/features.json."]))
    again = play.one(status="failed", reason="no model")
    assert again.job == "tea.setup-initializer-2"
    assert again.handoff.inputs.findings == ["There is no file output/features.json."]
    assert play.moves == [EndProject("failed")]


def test_a_pending_feature_gets_a_coder_and_nothing_else_begins_meanwhile() -> None:
    play = listed("brew", "serve")
    [move] = play.start()
    assert (move.job, move.fork) == ("tea.brew-coder-1", None)
    assert feature(play.project, "brew").status == "in_progress"
    assert play.moves == [WaitForJobs()]


def test_what_is_coded_is_tested_from_its_commit() -> None:
    play = listed("brew")
    play.one(
        ChildWork(
            commit="c1",
            report="Made; try it cold.",
            added="\nFiles changed: a.",
            changed=["a.py", "tests/b.py"],
            proofs=[proof()],
        )
    )
    [move] = play.start()
    assert move.job == "tea.brew-tester-1"
    # The coder's message to the tester, followed by what the system found out.
    assert move.handoff.inputs.results == [
        "Made; try it cold.",
        "What the system saw change: repo/a.py, repo/tests/b.py.",
        "What the system ran itself on it for unit: exit code 0, 3 tests.",
    ]
    assert move.handoff.inputs.commit == "c1"
    assert move.handoff.checks == ["unit"]
    # In the top folder, which agents see as repo/; no fewer tests than the coder's.
    assert move.handoff.tests["unit"].command == "pytest"
    assert [(each.command, each.tests) for each in move.handoff.accepted] == [("pytest", 3)]
    assert play.merges == []


def test_only_an_accepted_test_sets_tested_and_merges() -> None:
    play = listed("brew", "serve")
    play.one(CODED)
    assert feature(play.project, "brew").tested is False
    play.one(verdict())
    brewed = feature(play.project, "brew")
    assert (brewed.tested, brewed.status) == (True, "completed")
    assert [each.line for each in brewed.evidence] == ["unit: pytest: exit code 0, 3 tests"]
    assert brewed.merged == "c-main"
    assert play.merges == ["c1"]
    assert play.jobs == ["tea.serve-coder-1"]


def test_what_fails_goes_back_to_a_fork_of_the_coder_with_the_findings() -> None:
    play = listed("brew")
    play.project.start.attempts = 3
    play.one(CODED)
    play.one(verdict("It is cold."))
    [move] = play.start()
    assert move.job == "tea.brew-coder-2"
    assert move.fork
    assert (move.fork.job, move.fork.phase) == ("tea.brew-coder-1", None)
    assert move.handoff.inputs.commit == "c1"
    assert move.handoff.inputs.findings == ["It is cold."]
    assert move.handoff.inputs.results == []
    # A cancelled job has fixed none of that.
    play.end(move.job, status="cancelled", phases=0)
    [move] = play.start()
    assert move.handoff.inputs.findings[1:] == ["It is cold."]
    play.end(move.job, ChildWork(commit="c2", problems=["No."]))
    assert feature(play.project, "brew").reasons == ["No."]


def test_after_two_attempts_it_is_blocked_with_reasons_and_the_next_begins() -> None:
    play = listed("brew", "serve")
    for commit in ("c1", "c2"):
        play.one(ChildWork(commit=commit))
        play.one(verdict("It is cold."))
    brewed = feature(play.project, "brew")
    assert (brewed.status, brewed.reasons, brewed.tested) == ("blocked", ["It is cold."], False)
    # A blocked feature is not done.
    assert project_status.project_status_line(play.project) == "0 of 2 features, 1 blocked"
    assert play.merges == []
    [move] = play.start()
    assert move.job == "tea.serve-coder-1"
    assert move.handoff.inputs.results == [
        "brew (blocked, and repo/ has nothing of it): It is cold."
    ]
    assert move.handoff.inputs.findings == []
    status = project_status.project_unit_status(brewed, play.project)
    assert [(each["role"], each["outcome"]) for each in status["history"]] == [
        ("coder", "accepted"),
        ("tester", "did not pass"),
    ] * 2
    assert status["history"][1]["why"] == ["It is cold."]
    assert "`starter.py fork tea.brew-coder-2 --id NEW" in status["unblock"]


def test_a_job_that_completed_is_forked_at_its_end_and_a_testers_findings_say_all() -> None:
    play = listed("brew")
    play.one(CODED)
    play.one(verdict("It is cold."))
    [move] = play.start()
    assert move.fork
    assert move.fork.phase is None
    assert move.handoff.inputs.says_all
    # What proof refused is looked into, from the start of the phase it had reached.
    play.project.start.attempts = 3
    play.end(move.job, status="failed", reason="no model", phases=3)
    [again] = play.start()
    assert again.fork
    assert (again.fork.job, again.fork.phase) == (move.job, 3)
    assert not again.handoff.inputs.says_all


def test_a_merge_is_titled_by_what_is_short_and_says_what_each_attempt_did() -> None:
    play = listed("brew")
    play.one(ChildWork(commit="c1", report="Brewed it."))
    play.one(verdict("It is cold."))
    play.one(ChildWork(commit="c2", report="Warmed it."))
    [move] = play.start()
    run = play.project.running[move.job]
    message = unit_merge_message(play.project, run, verdict())
    told = "Attempt 1: Brewed it.\n\nAttempt 2: Warmed it."
    assert message.startswith(f"Do brew\n\n{told}\n\nJob: tea.brew-coder-2")
    # A description that is no subject stands below that of the coder.
    feature(play.project, "brew").task = described = f"It {'really ' * 20}brews tea."
    message = unit_merge_message(play.project, run, verdict())
    assert message.startswith(f"Warmed it\n\n{described}\n\n{told}\n\nJob:")


def test_of_other_features_a_coder_is_told_a_line_each() -> None:
    play = listed("brew", "serve")
    play.one(
        ChildWork(
            commit="c1",
            report="Made.\n\nIt is  hot.",
            added="\nFiles changed: a.",
            proofs=[proof()],
        )
    )
    play.one(verdict())
    [move] = play.start()
    assert move.handoff.inputs.results == ["brew (accepted): Made. It is hot."]
    # Proved tests must still pass, and a command shared by both must find more of them.
    [before] = move.handoff.accepted
    assert (before.command, before.tests, before.feature) == ("pytest", 3, "brew")


def test_findings_and_the_tests_that_show_them_go_on_word_for_word() -> None:
    play = listed("brew")
    play.project.start.attempts = 3
    play.one(CODED)
    finding = "`|  |  |` became `| | |`\n\n    in a\ttable"
    sent_back = verdict(finding)
    sent_back.commit, sent_back.tests = "c1-tests", ["tests/test_table.py"]
    sent_back.proofs = [proof(passed=False, tests=4, failed=1)]
    play.one(sent_back)
    [coder] = play.start()
    assert coder.handoff.inputs.commit == "c1-tests"
    assert coder.handoff.inputs.findings == [finding]
    assert coder.handoff.inputs.written_tests == ["tests/test_table.py"]
    # A test that shows a bug must not be deleted.
    assert [each.tests for each in coder.handoff.accepted] == [4]
    play.end(coder.job, ChildWork(commit="c2", report="Mended.", proofs=[proof(tests=4)]))
    [tester] = play.start()
    assert tester.handoff.inputs.findings == [finding]
    assert "See first" in tester.handoff.task


@pytest.mark.parametrize("status", ["failed", "cancelled", "late"])
def test_a_coder_that_does_not_finish_uses_up_an_attempt(status: str) -> None:
    play = listed("brew")
    play.one(status=status, phases=0, reason="because")
    [move] = play.start()
    assert (move.job, move.fork) == ("tea.brew-coder-2", None)
    play.end(move.job, status=status, phases=0)
    assert feature(play.project, "brew").status == "blocked"
    assert play.moves == [EndProject("completed")]


def test_a_tester_without_a_verdict_tests_once_more_and_the_coder_is_not_blamed() -> None:
    play = listed("brew")
    play.one(CODED)
    play.one(ChildWork(commit="c1", problems=["The check unit was not run."]))
    assert play.jobs == ["tea.brew-tester-2"]
    play.one(status="failed", reason="no model")
    brewed = feature(play.project, "brew")
    assert (brewed.status, brewed.attempts) == ("blocked", 1)
    assert brewed.reasons[0] == "It could not be tested."


def test_work_that_collides_is_not_tested_any_more() -> None:
    play = listed("brew")
    play.one(CODED)
    play.one(verdict(), conflicts=("menu.md",))
    brewed = feature(play.project, "brew")
    assert (brewed.tested, brewed.status, brewed.commit) == (False, "in_progress", "c-both")
    [move] = play.start()
    assert "menu.md" in move.handoff.inputs.findings[0]
    assert move.handoff.inputs.says_all


def test_the_end_is_when_none_is_pending() -> None:
    play = listed("brew")
    play.one(CODED)
    play.one(verdict())
    assert play.moves == [EndProject("completed")]


async def test_what_is_told_of_a_feature_reaches_its_jobs_alone_and_unblocks_it() -> None:
    play = listed("brew", "serve")
    for commit in ("c1", "c2"):
        play.one(ChildWork(commit=commit))
        play.one(verdict("It is cold."))
    signals = ProjectSignals(play.project, ProjectSteps(), Inbox(read_project_signal_payload))
    payload = {"text": "Boil it.", "unit": "brew"}
    await signals.handle(ReceivedSignal(signal="tell", payload=payload))
    [move] = play.start()
    assert move.job == "tea.brew-coder-3"
    assert move.handoff.inputs.results == ["From a person: Boil it."]
    play.end(move.job, CODED)
    [tester] = play.start()
    assert "From a person: Boil it." in tester.handoff.inputs.results
    play.end(tester.job, verdict())
    [other] = play.start()
    assert "From a person: Boil it." not in other.handoff.inputs.results
    unknown = ReceivedSignal(signal="tell", payload={"text": "Stir.", "unit": "stir"})
    await signals.handle(unknown)
    assert unknown.act
    assert "there are brew, serve" in (unknown.act.refused or "")


def test_what_a_coder_gives_up_goes_to_a_person_and_not_round_again() -> None:
    play = listed("live", "serve")
    said = "unit: it cannot be done without a network"
    play.one(ChildWork(commit="c1", given_up=True, problems=[said, "exit code 1"]))
    live = feature(play.project, "live")
    assert (live.status, live.attempts, live.reasons) == ("blocked", 1, [said, "exit code 1"])
    assert live.history[0].why == [said, "exit code 1"]
    assert live.history[0].outcome == "gave up"
    assert play.jobs == ["tea.serve-coder-1"]


def test_the_report_of_the_feature_before_is_told_in_full() -> None:
    play = listed("brew", "serve", "wash")
    said = "The kettle needs a second to start. " * 20
    for _ in range(2):
        play.one(ChildWork(commit="c1", report=said))
        play.one(verdict())
    [move] = play.start()
    older, last = move.handoff.inputs.results
    assert len(older) < 300
    assert last == f"serve (accepted): {said.strip()}"


def test_all_findings_are_kept_and_reach_who_comes_next() -> None:
    play = Play(started("features"))
    set_up = features("brew", "serve")
    set_up.report = "Set up.\nFound: " + "the kettle leaks; " * 60
    play.one(set_up)
    [coder] = play.start()
    assert coder.handoff.inputs.results == [f"set-up (accepted): {set_up.report.strip()}"]
    diff = "-    assert brew(2) == 4"
    made = ChildWork(commit="c1", report="Made.", test_changes=diff)
    play.end(coder.job, made, unresolved=["test_two: two cups are no longer sold"])
    [tester] = play.start()
    assert any(diff in each for each in tester.handoff.inputs.results)
    assert any("test_two: two cups" in each for each in tester.handoff.inputs.results)
    findings = [f"The pot {number} is small." for number in range(6)]
    passed = verdict()
    assert passed.verdict
    passed.verdict.findings = findings
    play.end(tester.job, passed)
    assert feature(play.project, "brew").history[-1].why == findings
    [other] = play.start()
    [_, line] = other.handoff.inputs.results
    assert line.startswith("brew (accepted): Made.\nIts tester passed it, and found:\n- The pot 0")
    assert all(each in line for each in findings)
