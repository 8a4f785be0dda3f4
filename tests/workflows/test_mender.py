"""A bug mended in a repository, proved by its tests: refused cheats, parked starts, publishing."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.commands import sandbox
from protocol.job_outline import branch_section
from protocol.publishing import BranchResult
from rehearsal import Reply, Request
from rehearsal.script import Script
from tests.activities.source_repository.origins import WorkTree, bare_clone, git
from tests.workflows.serving import serving
from tests.workflows.short import Call

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BAD = "def brew(cups):\n    if cups < 0:\n        return 0\n    return cups * 2 + 1\n"
MENDED = BAD.replace(" + 1", "")
HEAD = "import unittest\n\nfrom tea import brew\n\n\nclass Tea(unittest.TestCase):\n"
OLD = HEAD + (
    "    def test_none(self):\n        self.assertEqual(brew(-1), 0)\n\n"
    "    def test_grows(self):\n        self.assertLess(brew(1), brew(2))\n"
)
NEW = "\n    def test_two_a_cup(self):\n        self.assertEqual(brew(3), 6)\n"
ISSUE = "brew(3) gives 7 and should give 6: two spoons a cup."
TESTS = "repo/tests/test_tea.py"
SUMMARY = "Give two spoons a cup\n\nOne spoon too many was added at the end."


def write(path: str, text: str) -> Call:
    return ("write_file", {"path": path, "content": text})


def run(command: str) -> Call:
    return ("run_command", {"command": command})


def finish(*deliverables: str, **more: Any) -> Call:
    claim = {"summary": SUMMARY, "deliverables": deliverables or ["repo/tea.py", TESTS]}
    return ("job_complete", {**claim, "confidence": 0.9, **more})


MEND = [write("repo/tea.py", MENDED), write(TESTS, OLD + NEW), run("cd repo; git diff --stat")]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    tree = WorkTree.create(tmp_path / "tea")
    broken = "import unittest\n\n\nclass Pot(unittest.TestCase):\n"
    broken += "    def test_pot(self):\n        self.assertTrue(open('pot'))\n"
    tests = {"__init__": "", "test_tea": OLD, "test_pot": broken}
    tree.commit("Test the tea", {"tea.py": BAD} | {f"tests/{n}.py": s for n, s in tests.items()})
    return bare_clone(tree, tmp_path / "remote.git")


def start(remote: Path, agent: str = "mender", **more: Any) -> dict[str, Any]:
    url = f"file://{remote}"
    published = {"branch": "mended"}
    given = {"agent": agent, "instructions": ISSUE, "repository": {"url": url}}
    return {**given, "publish": published, **more}


def told(request: Request) -> list[str]:
    return [str(each["content"]) for each in request["messages"] if each["role"] == "tool"]


def branches(remote: Path) -> list[str]:
    return git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


async def test_a_bug_is_mended_and_proved_and_an_afterthought_goes_onto_the_same_branch(
    temporal: Client, root: Root, remote: Path
) -> None:
    again = "Say how much\n\nNothing said what brew takes."
    model = Script(
        Reply(calls=[("read_file", {"path": "repo/tea.py"}), ("read_file", {"path": TESTS})]),
        Reply(calls=MEND),
        Reply(calls=[finish()]),
        Reply(calls=[write("repo/tea.py", "# Two spoons a cup.\n" + MENDED)]),
        Reply(calls=[finish("repo/tea.py", summary=again)]),
    )
    signed = {"commits.author": "Ada <ada@example.org>", "commits.sign_off": True}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(start(remote, set=signed))
        result = await jobs.result(handle)
        status = await handle.query("status")
        mended = git(remote, "log", "--format=%an %s%n%b", "trunk..mended").strip()
        fork = await jobs.start(
            {
                "fork": {"job": handle.id},
                "instructions": "Say in a comment how much.",
                "publish": {"branch": "mended"},
            }
        )
        thought_of = await jobs.result(fork)
    model.verify()
    opening = model.requests[0]["messages"][1]["content"]
    command = "python3 -m unittest discover -s tests -t ."
    assert f"{command}: 2 passed, 1 failed" in opening
    assert "- Test the tea\n- One" in opening
    assert "2 passed" in str(status["notices"])
    assert (result["status"], result["phases"]) == ("completed", 1)
    proof = "3 passed, 1 more, 1 failing without the change, 1 failed before as well"
    rows = branch_section(BranchResult.model_validate(result["branch"])).rows
    assert [row.text for row in rows] == [
        "changed +1 -1 tea.py",
        "changed +3 tests/test_tea.py",
        f"tests: {command}: {proof}",
    ]
    assert mended == (
        f"Ada {SUMMARY.replace(chr(10) * 2, chr(10))}\n\n"
        f"Tests: {command}: {proof}.\n\n"
        "Signed-off-by: Ada <ada@example.org>"
    )
    assert "3 passed, 1 more, 1 failing" in thought_of["branch"]["proof"]
    subjects = git(remote, "log", "--format=%s", "trunk..mended").splitlines()
    assert subjects == ["Say how much", "Give two spoons a cup"]


GUTTED = [write("repo/tea.py", "def brew(cups):\n    return 0\n")]
DELETED = [write("repo/tea.py", MENDED), run("rm repo/tests/test_tea.py")]
SKIPPED = [
    write("repo/tea.py", MENDED),
    write(
        TESTS,
        (OLD + NEW).replace("    def test_grows", "    @unittest.skip('')\n    def test_grows"),
    ),
]
UNTESTED = [write("repo/tea.py", MENDED)]
NOTHING_NEW = [write("repo/tea.py", MENDED), write(TESTS, OLD + NEW.replace("(3), 6", "(-3), 0"))]
JUNK = [*MEND[:2], write("repo/debug.log", "x"), write("repo/try_it.py", "print(1)\n")]


@pytest.mark.parametrize(
    ("weak", "said"),
    [
        ([GUTTED, DELETED], ["test_grows", "are gone, skipped or"]),
        ([SKIPPED, UNTESTED], ["test_grows", "no test was added or changed"]),
        ([NOTHING_NEW, JUNK], ["pass on the old code as well", "debug.log, try_it.py"]),
    ],
    ids=["gone", "hidden", "unshown"],
)
async def test_weak_work_is_not_published(
    temporal: Client, root: Root, remote: Path, weak: list[list[Call]], said: list[str]
) -> None:
    put_back = [run("cd repo; git show HEAD:tests/test_tea.py > tests/test_tea.py")]
    first, second = weak
    model = Script(
        Reply(calls=first),
        Reply(calls=[finish("repo/tea.py")]),
        Reply(calls=[*put_back, *second]),
        Reply(calls=[finish("repo/tea.py")]),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(start(remote))
        await jobs.until(handle, status="waiting")
        await handle.signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
    assert branches(remote) == ["trunk"]
    refusals = [text for text in told(model.requests[-1]) if "Refused by proof" in text]
    assert len(refusals) == 2
    assert all(word in text for word, text in zip(said, refusals, strict=True)), refusals


WEAKER = OLD.replace("assertLess(brew(1), brew(2))", "assertIsNotNone(brew(1))")


@pytest.mark.parametrize(
    ("work", "deliverables", "said"),
    [
        (
            [write("repo/tea.py", "def brew(cups):\n    return 6 if cups == 3 else 0\n"),
             write(TESTS, WEAKER + NEW)],
            ["repo/tea.py", TESTS],
            "pass only as this work changed them: tests.test_tea.Tea.test_grows.",
        ),
        (
            [write("repo/README.md", "Two spoons a cup.\n")],
            ["repo/README.md"],
            "No code was changed",
        ),
    ],
    ids=["weaker", "words"],
)  # fmt: skip
async def test_what_no_test_can_show_is_pushed_only_by_a_person(
    temporal: Client, root: Root, remote: Path, work: list[Call], deliverables: list[str], said: str
) -> None:
    named = finish(*deliverables)
    model = Script(Reply(calls=work), Reply(calls=[named]))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(start(remote))
        status = await jobs.until(handle, waiting_for="approval")
        await handle.signal("cancel", {})
    assert said in status["approval"]["question"]
    assert branches(remote) == ["trunk"]


PYTEST = {"tests.command": "python3 -m pytest -q", "tests.setup": False}


async def test_tests_that_cannot_run_park_the_job_before_any_call(
    temporal: Client, root: Root, remote: Path
) -> None:
    model = Script()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(start(remote, set=PYTEST))
        status = await jobs.until(handle, status="waiting")
        assert status["waiting"]["reason"] == "dependency"
        assert "python3 -m pytest -q: no test passed" in status["waiting"]["message"]
        assert "No module named" in status["waiting"]["message"]
        await handle.signal("cancel", {})
    assert model.requests == []


async def test_what_is_not_proved_is_pushed_only_by_a_person(
    temporal: Client, root: Root, remote: Path
) -> None:
    reason = "new test: the words of a constant cannot be tested"
    model = Script(Reply(calls=UNTESTED), Reply(calls=[finish("repo/tea.py", unresolved=[reason])]))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(start(remote, "coder"))
        status = await jobs.until(handle, status="waiting")
        assert branches(remote) == ["trunk"]
        asked = status["waiting"]["message"]
        assert "No test shows the change" in asked
        assert "2 passed" in asked
        assert asked.endswith("+1 -1 tea.py")
        await handle.signal("approve", {"id": status["approval"]["id"]})
        result = await jobs.result(handle)
    assert result["branch"]["doubts"] == [
        "No test shows the change; the job says why in what is unresolved."
    ]
    assert branches(remote) == ["mended", "trunk"]
