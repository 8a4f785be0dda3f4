"""`project`: errors in a file are reported before anything starts; the examples are valid."""

import json
from pathlib import Path

import pytest

from cli.jobs.outline_text import outline_sheet, status_outline
from cli.start.start_files import project_input
from protocol.status import ProjectStatus

EXAMPLES = Path(__file__).parents[3] / "examples" / "projects"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_an_example_can_be_started(name, workspaces):
    data = project_input(EXAMPLES / name)
    assert data["form"] == name.partition(".")[0]
    documents = data.get("documents", []) + data.get("stages", [{}])[0].get("documents", [])
    assert all(text.startswith("staged:") for text in documents)
    assert bool(documents) is (name != "features.yaml")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("form: [", "not valid YAML"),
        ("form: features\ninstructions: x\ninstructions: y", "'instructions' is given twice"),
        ("- form", "expected a JSON object"),
        ("form: circle\ninstructions: x", "form: input should be 'features'"),
        ("form: features\ninstructions: x\ncolour: red", "colour: unknown key"),
        ("form: features", "tea.yaml: instructions: field required"),
        ("form: features\ninstructions: x\nagents: {coder: nobody}", "'nobody' is not known"),
        ("form: features\ninstructions: x\nagents: {cook: coder}", "cook is no role"),
        ("form: features\ninstructions: x\ndocuments: [no.md]", "there is no such file"),
        ("form: features\ninstructions: x\nset: {limits.nothing: 1}", "limits.nothing"),
        ("form: features\ninstructions: x\nset: {tools: [nix]}", "'nix' is neither a tool"),
        (
            "form: pipeline\nstages: [{agent: coder, task: x, set: {approve: [nix]}}]",
            "approve: 'nix' is neither a tool",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(offline, tmp_path, text, why):
    file = tmp_path / "tea.yaml"
    file.write_text(text)
    assert why in offline("project", str(file)).error


def test_a_document_that_no_job_would_take_is_refused(offline, tmp_path, workspaces):
    with (tmp_path / "huge.md").open("wb") as huge:
        huge.truncate(50_000_001)
    file = tmp_path / "tea.yaml"
    file.write_text("form: features\ninstructions: x\ndocuments: [huge.md]")
    assert "50,000,001 bytes, larger than 50,000,000" in offline("project", str(file)).error
    file.write_text(file.read_text() + "\nset: {limits.file_bytes: 60000000}")
    assert project_input(file)["documents"][0].startswith("staged:")


def test_more_than_fits_into_a_start_is_refused(offline, tmp_path, workspaces):
    (tmp_path / "law.md").write_text("# Law")
    stage = {"agent": "creator", "task": "x", "documents": ["law.md"], "items": ["x" * 400] * 1000}
    file = tmp_path / "tea.yaml"
    file.write_text(json.dumps({"form": "pipeline", "stages": [stage] * 4}))
    told = offline("project", str(file)).error
    assert "bytes as JSON; at most 1,500,000 fit into a start; give the rest as documents" in told
    assert not (workspaces / ".longhaul" / "staged").exists()
    file.write_text(json.dumps({"form": "pipeline", "stages": [stage] * 3}))
    assert "no Temporal server" in offline("project", str(file)).error


def test_a_missing_file_is_said(offline, tmp_path):
    assert "no such file" in offline("project", str(tmp_path / "none.yaml")).error


def sheet(status):
    return outline_sheet(status_outline(ProjectStatus.model_validate(status)))


def test_a_project_shows_its_units_and_its_jobs():
    status = {
        "project": True,
        "job_id": "tea",
        "title": "Tea",
        "status": "running",
        "agent": "project (features)",
        "line": "1 of 2 features; coder on brew",
        "repository": "/r/tea.git",
        "origin": {"source": "ssh://h/tea.git", "ref": "v1", "commit": "1234567890abcdef"},
        "units": [
            {"id": "brew", "title": "Brews", "status": "in_progress", "reasons": ["It is hot."]},
            {"id": "serve", "title": "Serves", "status": "blocked", "reasons": ["It is cold."]},
        ],
        "jobs": [
            {
                "job": "tea.setup-initializer-1",
                "agent": "initializer",
                "unit": "setup",
                "status": "accepted",
                "summary": "Set up.\nGreen.",
            }
        ],
        "running": [{"job": "tea.brew-coder-1", "waiting": None, "phase": "phase 2"}],
        "usage": {"model_calls": 7, "tool_calls": 5, "prompt_tokens": 1000},
    }
    assert sheet(status) == [
        "tea · Tea",
        "running · project (features)",
        "needs you: serve is blocked: It is cold.",
        "1 of 2 features; coder on brew",
        "  ▶ brew: Brews",
        "  ☒ serve: Serves",
        "jobs:",
        "  tea.setup-initializer-1: accepted · Set up. Green.",
        "  tea.brew-coder-1: at work · phase 2",
        "2 jobs · 7 model calls · 5 tool calls · 1,000 tokens",
        "begun from ssh://h/tea.git at v1, commit 1234567890ab",
        "git clone /r/tea.git",
    ]


def test_a_project_tells_why_each_attempt_failed_and_what_proves_the_rest():
    status = {
        "project": True,
        "status": "completed",
        "units": [
            {
                "id": "brew",
                "title": "Brews",
                "status": "completed",
                "commit": "c" * 40,
                "history": [
                    {"job": "tea.brew-coder-1", "role": "coder", "outcome": "accepted",
                     "model_calls": 3, "tokens": 2000, "cost": 0.5},
                    {"job": "tea.brew-tester-1", "role": "tester", "outcome": "did not pass",
                     "why": ["It is\n  cold,  and\nstill.", "Late."]},
                ],
                "evidence": [
                    {"check": "unit", "ran": "pytest -q", "passed": True, "exit_code": 0,
                     "tests": 3, "skipped": 1, "commit": "d" * 40, "phase": 2, "step": 9,
                     "asked_by": "brew-tester-2", "end": "1\n2\n3\n4\n5\n3 passed"},
                ],
            },
            {"id": "serve", "title": "Serves", "status": "blocked", "unblock": "Mend it there."},
        ],
        "waits": [{"job": "tea.brew-coder-1", "reason": "clarification", "message": "Hot?",
                   "since": 0, "seconds": 7260}],
    }  # fmt: skip
    assert sheet(status)[1:] == [
        "needs you: serve is blocked",
        "  Mend it there.",
        "  ☑ brew: Brews",
        "      tea.brew-coder-1: accepted · 3 model calls · 2,000 tokens · cost 0.5000",
        "      tea.brew-tester-1: did not pass · 0 model calls · 0 tokens",
        *(f"        {line}" for line in ("- It is", "    cold,  and", "  still.", "- Late.")),
        "      proof: unit: pytest -q: exit code 0, 3 tests, 1 skipped "
        "(brew-tester-2, phase 2, step 9, on dddddddddddd)",
        *(f"        | {line}" for line in ("…", "2", "3", "4", "5", "3 passed")),
        "      commit cccccccccccc",
        "  ☒ serve: Serves",
        "waits:",
        "  waited 2:01:00 (clarification): tea.brew-coder-1 · Hot?",
    ]
