"""Both ends of a handoff: what a job starts with, what keeps its work from being taken over."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.job.snapshot import Snapshot
from activities.projects.handoff import prepare_handoff_workspace, render_handoff
from activities.projects.handoff_checks import handoff_problems
from activities.projects.product_tree import handoff_product_tree
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.projects.tool_evidence import read_evidence, tool_proofs
from config.schema.agent import ConfigError
from protocol.handoffs import SAME_TASK, Handoff, ProjectLink
from protocol.proof import Check
from protocol.todo_list import DoneWhen, Match
from tests.activities.standing import AT, Standing

PROOF: dict[Check, list[str]] = {"unit": ["search_*"]}


@pytest.fixture
def standing(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path, kind="tactical")


def repository(standing: Standing) -> tuple[ProjectRepository, str]:
    project = ProjectRepository.create(project_repository_path(standing.root, "tea"))
    nothing = str(project.git.TreeBuilder().write())
    return project, project.commit(
        project.with_files(nothing, {"menu.md": b"tea\n"}), [], "begin", AT
    )


def state(project: ProjectRepository, brief: str = "# Tea room\n") -> str:
    """Return the project's own files."""
    tree = project.with_files(
        str(project.git.TreeBuilder().write()), {"project.md": brief.encode()}
    )
    return project.commit(tree, [], "state", AT)


def link(commit: str, **details: Any) -> ProjectLink:
    base: dict[str, Any] = {"id": "brew-coder-1", "from_agent": "initializer", "to_agent": "coder"}
    base |= {"task": "Brew.", "inputs": {"commit": commit, "results": ["It was cold."]}}
    handoff = Handoff.model_validate({**base, **details})
    return ProjectLink(id="tea", folder="repo", summary_tokens=1000, handoff=handoff)


def handed(standing: Standing, **details: Any) -> None:
    """Hand this to the job."""
    project, commit = repository(standing)
    snapshot = standing.open()
    inputs = {"commit": commit, "results": ["It was cold."], "state": state(project)}
    inputs |= details.pop("inputs", {})
    prepare_handoff_workspace(standing.root, snapshot, link(commit, inputs=inputs, **details))
    standing.commit = snapshot.save("handed", AT)


def instructed(standing: Standing) -> Snapshot:
    """Return the job with the handoff in its instructions."""
    snapshot = standing.open()
    assert snapshot.link
    text = render_handoff(standing.root, snapshot.link)
    snapshot.write_system_file("instructions.md", f"# Make it\n\n{text}".encode())
    return snapshot


def test_the_receiver_finds_the_files_and_what_came_before(standing: Standing) -> None:
    standing.write("output/verdict.json", "of the job before")
    handed(standing)
    assert standing.text("repo/menu.md") == "tea\n"
    assert "output/verdict.json" not in standing.paths()
    job_link = standing.open().link
    assert job_link
    text = render_handoff(standing.root, job_link)
    assert text.startswith("Brew.")
    assert "- It was cold." in text
    assert text.endswith("# Tea room\n")
    assert "# Tea room" not in render_handoff(standing.root, job_link, first=standing.open())


def test_findings_are_handed_on_word_for_word(standing: Standing) -> None:
    finding = "`|  |  |` became `| | |`:\n\n    a\ttable\n"
    handed(standing, inputs={"findings": [finding, "It is cold."]})
    job_link = standing.open().link
    assert job_link
    text = render_handoff(standing.root, job_link)
    assert f"### Finding 1\n\n{finding}\n\n### Finding 2\n\nIt is cold.\n" in text
    assert text.index("### Finding 1") < text.index("- It was cold.")
    # Findings are told each time.
    again = render_handoff(standing.root, job_link, first=standing.open())
    assert f"### Finding 1\n\n{finding}\n\n### Finding 2\n\nIt is cold." in again
    assert "documents/findings.md" not in standing.paths()


def test_work_that_goes_back_is_told_only_what_is_new(standing: Standing) -> None:
    handed(standing)
    first = instructed(standing)
    handed(standing, inputs={"findings": ["It is cold."]})
    link = standing.open().link
    assert link
    told = render_handoff(standing.root, link, first=first)
    found = "## What was found wrong with this very work\n\n### Finding 1\n\nIt is cold."
    assert told == f"{SAME_TASK}\n\n{found}"
    # An amendment may have said otherwise.
    first.write_system_file("instructions.md", b"Brew.\n\n## Amended\n\nBrew less.\n")
    again = render_handoff(standing.root, link, first=first)
    assert again.startswith(f"Brew.\n\n{found}\n\n## What came before")


def test_a_part_that_is_the_beginning_of_an_earlier_one_is_told(standing: Standing) -> None:
    handed(standing, success=["It is hot.", "It is sweet."])
    first = instructed(standing)
    handed(standing, success=["It is hot."])
    link = standing.open().link
    assert link
    told = render_handoff(standing.root, link, first=first)
    assert told == f"{SAME_TASK}\n\n## When it is done\n\n- It is hot."


def test_a_part_that_a_person_took_out_is_told(standing: Standing) -> None:
    handed(standing)
    first = instructed(standing)
    edited = first.read_text("instructions.md").replace("It was cold.", "It was warm.")
    first.write_system_file("instructions.md", edited.encode())
    assert first.link
    told = render_handoff(standing.root, first.link, first=first)
    assert told == f"{SAME_TASK}\n\n## What came before\n\n- It was cold."


def test_findings_and_a_brief_that_are_long_are_in_files_and_named(standing: Standing) -> None:
    project, _ = repository(standing)
    long = state(project, "# Tea\n" + "green tea " * 3000)
    handed(standing, inputs={"findings": ["word " * 4000], "state": long})
    link = standing.open().link
    assert link
    text = render_handoff(standing.root, link)
    assert "word…\nAll of it is in documents/findings.md." in text
    assert standing.text("documents/findings.md").count("word") == 4000
    assert text.endswith("tea…\nAll of it is in documents/project.md.")
    assert standing.text("documents/project.md").count("green tea") == 3000


@pytest.mark.parametrize(
    ("feature", "why"),
    [
        ({}, "These checks have no test command: name one"),
        ({"tests": {"unit": "pytest || true"}}, "cannot be proved by `pytest || true`: leave out"),
        ({"tests": {"unit": "cd repo && python3 -m pytest -q"}}, ""),
        ({"checks": ["browser"]}, ""),
        # Decided by the project's file.
        ({"checks": ["api"]}, ""),
    ],
)
def test_a_feature_names_how_it_is_proved(
    standing: Standing, feature: dict[str, Any], why: str
) -> None:
    handed(
        standing,
        report="features",
        tests={"api": "python3 -m pytest api"},
        proof={"browser": ["browser_*"]},
    )
    one = {"id": "brew", "description": "Brews tea.", "checks": ["unit"], **feature}
    standing.write("output/features.json", json.dumps({"features": [one]}))
    problems = handoff_problems(standing.open())
    assert why in " ".join(problems) if why else problems == []


def test_a_job_knows_those_that_had_its_task_before() -> None:
    third = link("c", id="brew-coder-3")
    assert third.earlier_jobs == ["tea.brew-coder-1", "tea.brew-coder-2"]


def test_a_precondition_that_does_not_hold_keeps_the_job_from_beginning(standing: Standing) -> None:
    needs = [DoneWhen(matches=Match(path="repo/menu.md", pattern="coffee"))]
    with pytest.raises(ConfigError, match="brew-coder-1: the precondition does not hold"):
        handed(standing, precondition=needs)


def test_a_postcondition_and_marks_of_a_conflict_are_looked_for(standing: Standing) -> None:
    handed(standing, postcondition=[DoneWhen(file_exists="repo/brew.py")])
    standing.write("repo/menu.md", "<<<<<<< accepted\ntea\n=======\ncoffee\n>>>>>>> yours\n")
    missing, marked = handoff_problems(standing.open())
    assert "There is no repo/brew.py" in missing
    assert "marks of a merge conflict in repo/menu.md" in marked
    # A mark that stayed when the file was renamed.
    standing.write("repo/cards.md", "tea\r\n>>>>>>> yours\r\n")
    standing.write("repo/menu.md", "tea\n")
    assert "in repo/cards.md." in handoff_problems(standing.open())[1]
    # A text about git.
    standing.write("repo/cards.md", "<<<<<<< HEAD\ntea\n=======\ncoffee\n>>>>>>> other\n")
    standing.write("repo/brew.py", "1\n")
    assert handoff_problems(standing.open()) == []
    # A file whose name is not UTF-8.
    standing.put(lambda files: files.write("repo/caf\udce9", b">>>>>>> yours\n"))
    assert "in repo/caf?." in handoff_problems(standing.open())[0]


def test_all_that_is_wrong_with_a_report_is_told_at_once(standing: Standing) -> None:
    handed(standing, report="features")
    long = [{"id": f"f{n}", "description": "x" * 801, "checks": ["unit"]} for n in range(20)]
    standing.write("output/features.json", json.dumps({"features": [*long, {"id": "Brew"}]}))
    [why] = handoff_problems(standing.open())
    assert "features.0.description, features.1.description" in why
    assert "features.19.description: string should have at most 800 characters" in why
    assert "features.20.id: string should match" in why
    assert "features.20.description, features.20.checks: field required" in why


def test_a_job_without_a_project_is_asked_nothing(standing: Standing) -> None:
    assert handoff_problems(standing.open()) == []


def test_a_tester_that_ran_nothing_is_sent_back(standing: Standing) -> None:
    handed(standing, report="verdict", checks=["unit"], proof=PROOF)
    assert handoff_problems(standing.open()) == [
        "There is no file output/verdict.json, which the task asks for."
    ]
    verdict: dict[str, Any] = {"health": "ok", "checks": [{"check": "unit", "passed": True}]}
    standing.write("output/verdict.json", json.dumps({**verdict, "passed": True}))
    [why] = handoff_problems(standing.open())
    assert "The check unit was not run" in why
    # A failed call, or a call of another tool, is no evidence.
    standing.call("read_file", path="repo/menu.md")
    standing.call("search_files", query="", path="nowhere")
    assert len(handoff_problems(standing.open())) == 1
    standing.call("search_files", query="tea", path="repo")
    assert handoff_problems(standing.open()) == []
    [run] = tool_proofs(standing.open(), "c1")
    assert run.ran.startswith("search_files {")
    assert (run.check, run.commit, run.asked_by, run.phase) == ("unit", "c1", "brew-coder-1", 2)
    # Calls of an earlier phase count as well.
    snapshot = standing.open()
    snapshot.shelve_conversation(2)
    snapshot.begin_conversation({"role": "system", "content": "s"})
    assert handoff_problems(snapshot) == []


def test_a_result_that_counts_errors_is_no_failed_call(standing: Standing) -> None:
    handed(standing, report="verdict", checks=["unit"], proof={"unit": ["read_file"]})
    standing.write("notes.md", "Errors: 0\n")
    shown = standing.call("read_file", path="notes.md")
    snapshot = standing.open()
    message = snapshot.conversation.messages()[-1]
    result_message = {**message, "content": "Errors: 0, warnings: 2"}
    assert shown != result_message["content"]
    snapshot.begin_conversation({"role": "system", "content": "s"})
    for each in (*standing.open().conversation.messages()[1:-1], result_message):
        snapshot.conversation = snapshot.conversation.append(each)
    [run] = read_evidence(snapshot).runs["unit"]
    assert run.head == "Errors: 0, warnings: 2"


@pytest.mark.parametrize("kind", ["verdict", "groups", "features"])
def test_a_report_that_is_nested_too_deep_is_sent_back(standing: Standing, kind: Any) -> None:
    handed(standing, report=kind, checks=["unit"], proof=PROOF)
    standing.write(f"output/{kind}.json", "[" * 100_000)
    assert f"output/{kind}.json is not valid JSON" in handoff_problems(standing.open())[0]


def test_names_that_git_does_not_take_are_named(standing: Standing) -> None:
    handed(standing)
    for name in ("git~1", "caf\udce9/a.md", ".git/config", "GIT~1/b", "git~10"):
        standing.put(lambda files, name=name: files.write(f"repo/{name}", b"x"))  # type: ignore[misc]
    standing.put(lambda files: files.write("git~1", b"of no product"))
    [problem] = handoff_problems(standing.open())
    assert problem == (
        "Git takes no file or folder of these names; rename or delete them: "
        "'repo/GIT~1', 'repo/caf\\udce9', 'repo/git~1'."
    )
    assert problem.isascii()


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        ({"checks": [{"check": "api", "passed": True}], "passed": True}, "nothing of these checks"),
        ({"checks": [{"check": "unit", "passed": False}], "passed": True}, "cannot be true"),
        ({"checks": [{"check": "unit", "passed": True}], "passed": False}, "say in `findings`"),
        ({"checks": [{"check": "unit", "passed": True}], "passed": True}, "measured `coverage`"),
        (
            {"checks": [{"check": "unit", "passed": True}], "passed": True, "coverage": 20},
            "80 % are asked for",
        ),
        ({"checks": [], "passed": True}, "checks: list should have at least 1 item"),
        ({"checks": [{"check": "unit", "passed": True}], "tested": 1}, "tested: unknown key"),
    ],
)
def test_a_verdict_that_does_not_hold_together_is_sent_back(
    standing: Standing, verdict: dict[str, Any], why: str
) -> None:
    details = {"checks": ["unit"], "proof": PROOF, "coverage": 80}
    handed(standing, report="verdict", **details)
    standing.call("search_files", query="tea", path="repo")
    standing.write("output/verdict.json", json.dumps({"health": "ok", **verdict}))
    assert why in " ".join(handoff_problems(standing.open()))


def test_a_division_is_held_against_the_scope_at_the_managers_own_gate(standing: Standing) -> None:
    handed(standing, report="groups", routing={"required": ["S1", "S2"]})
    standing.write("output/groups.json", "{not json")
    assert "not valid JSON" in handoff_problems(standing.open())[0]
    one = {"groups": [{"id": "a", "title": "A", "items": ["S1"]}]}
    standing.write("output/groups.json", json.dumps(one))
    assert "in no group: S2" in handoff_problems(standing.open())[0]


def test_what_the_system_keeps_and_caches_are_not_taken_over(standing: Standing) -> None:
    handed(standing)
    standing.write("repo/feature-list.json", '{"tested": true}')
    standing.write("repo/brew.py", "1\n")
    standing.write("repo/completion.json", "of the product")
    standing.write("repo/tests/__pycache__/brew.pyc", "of a run")
    standing.write("output/completion.json", "of the job")
    snapshot = standing.open()
    assert snapshot.link
    project, commit = repository(standing)
    tree = handoff_product_tree(project, snapshot, "repo", snapshot.link.handoff)
    new_commit = project.commit(tree, [commit], "made", AT)
    assert project.read_file(new_commit, "feature-list.json") is None
    assert project.changed_paths(commit, new_commit) == ["brew.py", "completion.json"]
    tree = handoff_product_tree(project, snapshot, "output", snapshot.link.handoff)
    assert project.read_file(project.commit(tree, [commit], "made", AT), "completion.json") is None
