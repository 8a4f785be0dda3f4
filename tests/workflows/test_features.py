"""The feature loop end to end: initializer, coder, tester; findings sent back; blocked features."""

import json
from collections.abc import Sequence

from temporalio.client import Client

from activities.checkpoints import Root
from activities.job.conversation import Conversation
from activities.projects.project_repository import ProjectRepository, project_repository_path
from tests.workflows.serving import serving
from tests.workflows.short import Call
from tests.workflows.team import Team, answer, project, write

FEATURES = {
    "features": [
        {"id": "brew", "description": "Brews tea.", "checks": ["unit"]},
        {"id": "serve", "description": "Serves tea.", "checks": ["unit"]},
    ]
}
PROOF = {"unit": ["search_files"]}
"""Any tool the system records, for a test that needs no sandbox."""
FILES = {"tools": ["files", "todos", "job"]}


def verdict(*findings: str) -> Call:
    return answer(
        "output/verdict.json",
        {
            "health": "It is there.",
            "checks": [{"check": "unit", "passed": not findings}],
            "passed": not findings,
            "findings": list(findings),
        },
    )


RUN: Call = ("search_files", {"query": "tea", "path": "repo"})


async def test_a_feature_goes_back_to_a_fork_of_its_coder_and_a_claim_to_its_tester(
    temporal: Client, root: Root
) -> None:
    def brew(opening: str) -> Sequence[Call]:
        return [write("repo/brew.md", "hot tea\n" if "It is cold." in opening else "tea\n")]

    def test_brew(opening: str) -> Sequence[Call]:
        return [RUN, ("read_file", {"path": "repo/brew.md"}), verdict("It is cold.")]

    def test_serve(opening: str) -> Sequence[Call]:
        return [RUN, verdict()] if "was not run" in opening else [verdict()]

    team = Team(
        {
            "The check unit was not run": test_serve,
            "Set the project up": lambda told: [
                write("repo/readme.md", "Tea.\n"),
                answer("output/features.json", FEATURES),
            ],
            "Make the feature brew": brew,
            "Make the feature serve": lambda told: [
                write("repo/serve.md", "a cup of tea\n"),
                # The system maintains this file, whoever writes it.
                write("repo/feature-list.json", "{}"),
            ],
            "Test the feature brew": test_brew,
            "Test the feature serve": test_serve,
        }
    )
    async with serving(temporal, root, team) as jobs:
        instructions = "Make a tea room.\n\n## Scope\n\n- tea\n- cups\n"
        tearoom = project("features", proof=PROOF, set=FILES, instructions=instructions)
        handle = await jobs.start(tearoom, kind="Project", job_id="tearoom")
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
        brewed, served = result["units"]
        assert (brewed["status"], brewed["attempts"], brewed["tested"]) == ("blocked", 2, False)
        assert brewed["reasons"] == ["It is cold."]
        assert (served["status"], served["tested"]) == ("completed", True)
        assert "search_files" in served["evidence"][0]["ran"]
        assert served["evidence"][0]["asked_by"] == "serve-tester-1"
        # It was first claimed without running anything.
        tester = await temporal.get_workflow_handle("tearoom.serve-tester-1").query("status")
        assert (tester["refusals"], tester["rewinds"]) == (1, 1)
        # The features together are the scope of none of their jobs: each has its own plan.
        assert (tester["scope"]["original"], tester["scope"]["steps"]) == (0, 1)
        assert result["unresolved"] == ["brew (blocked): It is cold."]
        # The list of jobs calls what came of each as the history of its feature does.
        assert {
            each["status"]
            for each in (await handle.query("status"))["jobs"]
            if each["job"].startswith("tearoom.brew-tester")
        } == {"did not pass"}

        repository = ProjectRepository(project_repository_path(root, "tearoom"))
        # The runner's own files are not in the product, but on a separate branch.
        state = str(repository.git.references["refs/heads/state"].target)
        listed = json.loads(repository.read_file(state, "feature-list.json") or b"")
        assert [each["status"] for each in listed["features"]] == ["blocked", "completed"]
        assert [each["outcome"] for each in listed["features"][0]["history"]] == [
            "accepted", "did not pass", "accepted", "did not pass",
        ]  # fmt: skip
        assert (
            json.loads(repository.read_file(state, "project-result.json") or b"")["status"]
            == "completed"
        )
        assert repository.read_file(result["commit"], "feature-list.json") is None
        # One commit for each accepted piece of work, with a message that says what was done.
        story = list(repository.git.walk(result["commit"]))
        assert [each.message.partition("\n")[0] for each in story] == [
            "Serves tea", "Set the project up", "Begin: Make a tea room.",
        ]  # fmt: skip
        trailers = story[0].message
        assert "Job: tearoom.serve-coder-1\nFeature: serve\n" in trailers
        assert "Evidence: unit: search_files" in trailers
        assert repository.read_file(result["commit"], "readme.md") == b"Tea.\n"
        assert repository.read_file(result["commit"], "serve.md") == b"a cup of tea\n"
        # Rejected work is not on the main line, but on its job's branch.
        assert repository.read_file(result["commit"], "brew.md") is None
        branch = repository.git.references["refs/heads/jobs/tearoom.brew-coder-2"].target
        assert repository.read_file(str(branch), "brew.md") == b"hot tea\n"

        # The second attempt began with the tester's findings, which no reflection repeats.
        second = temporal.get_workflow_handle("tearoom.brew-coder-2")
        status = await second.query("status")
        snapshot = jobs.snapshot(second, status["checkpoint"])
        number = status["checkpoints"][0]["phase"]
        messages = Conversation(snapshot.history.subfolder(f"{number:04d}")).messages()
        assert "It is cold." in messages[1]["content"]
        assert messages[2]["role"] == "assistant"

    events = (await second.fetch_history()).events
    start = events[0].workflow_execution_started_event_attributes.input.payloads[0].data
    assert json.loads(start)["fork"]["job"] == "tearoom.brew-coder-1"
