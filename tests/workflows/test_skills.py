"""Jobs that use Agent Skills, on a real server."""

from pathlib import Path

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import sandbox
from rehearsal.request_view import RequestView
from tests.activities.source_repository.origins import WorkTree
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, close, job
from tests.workflows.team import Team, project, write

SKILL = """\
---
name: brewing
description: Brews tea. Use when tea is to be made.
allowed-tools: run_command list_files
---
Run scripts/brew.sh; references/leaf.md says which leaf.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "brewing"
    for path, text in {
        "SKILL.md": SKILL,
        "references/leaf.md": "Green leaf.",
        "scripts/brew.sh": "#!/bin/sh\ncat skills/brewing/references/leaf.md > output/tea.md\n",
    }.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    (place / "scripts/brew.sh").chmod(0o755)
    return place


class Brewing:
    """Does the todo as the skill says, and records the answers."""

    def __init__(self, *calls: Call) -> None:
        self.calls = calls
        self.system: list[str] = []
        self.answers: list[str] = []

    def __call__(self, view: RequestView) -> list[Call]:
        self.answers += [done_call.result for done_call in view.calls[-1:]]
        return [self.calls[view.replies]]


async def test_a_job_works_by_a_skill_as_it_was_when_it_began(
    temporal: Client, root: Root, folder: Path
) -> None:
    use: Call = ("use_skill", {"name": "brewing"})
    read: Call = ("read_file", {"path": "skills/brewing/references/leaf.md"})
    write: Call = ("write_file", {"path": "skills/brewing/SKILL.md", "content": "none"})
    run: Call = ("run_command", {"command": "skills/brewing/scripts/brew.sh"})
    tea: Call = ("write_file", {"path": "output/tea.md", "content": "Green leaf."})
    has_sandbox = sandbox.sandbox_problem(sandbox.find_bwrap()) is None
    brewing = Brewing(use, read, write, run if has_sandbox else tea, DONE)
    prompts: list[str] = []

    def work(view: RequestView) -> list[Call]:
        # By now the skill has changed, which this job does not see.
        (folder / "SKILL.md").write_text("Changed.")
        (folder / "references/leaf.md").write_text("Black leaf.")
        return brewing(view)

    model = Short({"Work": work, "Close": [close("output/tea.md")]})

    def recording(request):
        prompts.append(request["messages"][0]["content"])
        return model(request)

    tools = ["files", "todos", "job", *(["shell"] if has_sandbox else [])]
    async with serving(temporal, root, recording) as jobs:
        handle = await jobs.start(job(set={"skills": [str(folder)], "tools": tools}))
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert (jobs.folder(handle) / "output/tea.md").read_text() == "Green leaf."
        assert (jobs.folder(handle) / "skills/brewing/SKILL.md").read_text() == SKILL
    assert "- `brewing`: Brews tea. Use when tea is to be made.\n" in prompts[0]
    shown = "\n".join(brewing.answers)
    assert (
        "Paths in it begin at skills/brewing/. Beside SKILL.md it has references/leaf.md" in shown
    )
    assert "Run scripts/brew.sh" in shown
    assert "allowed-tools" not in shown
    assert "Green leaf." in shown
    assert "skills/brewing/SKILL.md is kept by the system" in shown


async def test_a_skill_gives_no_rights(temporal: Client, root: Root, folder: Path) -> None:
    calls: list[Call] = [
        ("use_skill", {"name": "brewing"}),
        ("run_command", {"command": "true"}),
        ("use_skill", {"name": "boiling"}),
        ("list_files", {}),
        ("write_file", {"path": "output/tea.md", "content": "tea"}),
        DONE,
    ]
    brewing = Brewing(*calls)
    model = Short({"Work": brewing, "Close": [close("output/tea.md")]})
    async with serving(temporal, root, model) as jobs:
        settings = {"skills": [str(folder)], "approve": ["list_files"]}
        handle = await jobs.start(job(set=settings))
        await jobs.until(handle, waiting_for="approval")
        await handle.signal("approve", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert "There is no tool 'run_command'" in brewing.answers[1]
    assert "There is no skill 'boiling'. The skills are: brewing." in brewing.answers[2]


async def test_a_job_without_skills_hears_nothing_of_them(temporal: Client, root: Root) -> None:
    heard: list[str] = []
    model = Short()

    def recording(request):
        heard.append(str(request))
        return model(request)

    async with serving(temporal, root, recording) as jobs:
        await jobs.result(await jobs.start(job()))
    assert heard
    assert "skill" not in "".join(heard).lower()


async def test_a_start_with_skills_that_are_not_there_fails_with_the_folder(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(job(set={"skills": [str(tmp_path / "none")]}))
        with pytest.raises(Exception) as failed:
            await jobs.result(handle)
    assert f"skills: {tmp_path / 'none'} has no SKILL.md on this worker" in str(
        failed.value.__cause__
    )


@pytest.mark.parametrize("trusted", [False, True])
async def test_skills_of_a_repository_wait_for_trust(
    temporal: Client, root: Root, trusted: bool
) -> None:
    prompts: list[str] = []
    team = Team(
        {
            "Write it": lambda _: [write("repo/.agents/skills/brewing/SKILL.md", SKILL)],
            "Use it": lambda _: [("use_skill", {"name": "brewing"}), write("repo/a.md", "tea")],
        }
    )

    def recording(request):
        prompts.append(str(request["messages"][0]["content"]))
        return team(request)

    stages = [{"agent": "generalist", "task": task} for task in ("Write it.", "Use it.")]
    async with serving(temporal, root, recording) as jobs:
        start = project("pipeline", stages=stages, set={"trust_skills": trusted})
        handle = await jobs.start(start, kind="Project")
        assert (await jobs.result(handle))["status"] == "completed"
    listed = ["- `brewing`: Brews tea." in prompt for prompt in prompts]
    assert any(listed) is trusted
    # The first job began before the skill existed.
    assert not listed[0]


@pytest.mark.parametrize("trusted", [False, True])
async def test_skills_of_a_fetched_repository_wait_for_trust(
    temporal: Client, root: Root, tmp_path: Path, trusted: bool
) -> None:
    tree = WorkTree.create(tmp_path / "tea")
    tree.commit("Know-how", {".agents/skills/brewing/SKILL.md": SKILL})
    prompts: list[str] = []
    short = Short({"Work": lambda view: [("use_skill", {"name": "brewing"}), DONE]})

    def recording(request):
        prompts.append(str(request["messages"][0]["content"]))
        return short(request)

    async with serving(temporal, root, recording) as jobs:
        start = job(repository={"url": tree.url}, set={"trust_skills": trusted})
        handle = await jobs.start(start)
        await jobs.until(handle, phase=lambda phase: phase["number"] > 1)
        notices = (await query_status(handle))["notices"]
        await handle.signal("cancel", {})
        await jobs.until(handle, status="cancelled")
    assert any("- `brewing`: Brews tea." in prompt for prompt in prompts) is trusted
    untrusted = "the repository's skills are not used: brewing"
    assert any(untrusted in notice for notice in notices) is not trusted
