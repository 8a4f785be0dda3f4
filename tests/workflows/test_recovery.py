"""What parks a job, what makes it continue, and what a lost checkpoint does."""

import random
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root, open_checkpoints, sharded_tree
from activities.checkpoints.journal import get_journal
from activities.checkpoints.journal_records import BLOB, JournalRecord
from activities.job import conversation
from activities.tool_catalogue import REGISTRY
from activities.toolkit.tool_context import ToolContext
from config.learned_guards import LearnedGuards, LearnedRevision
from rehearsal import Failure, Reply
from rehearsal.request_view import parse_request_view, request_message_text
from rehearsal.wire import Answer, Request
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Call, Short, hand_over, job, plan


class Sometimes:
    """Does a short job, but answers the listed calls differently, each once."""

    def __init__(self, **others: Answer) -> None:
        self.short = Short()
        self.others = {int(number[1:]): answer for number, answer in others.items()}
        self.calls = 0
        self.lasts: list[str] = []
        """The last message of each request."""

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        self.lasts.append(str(request["messages"][-1]["content"]))
        return self.others.get(self.calls) or self.short(request)


async def test_what_only_a_person_can_mend_parks_the_job(temporal: Client, root: Root) -> None:
    failures = {
        "n1": (Failure(401, "bad key"), "credentials"),
        "n3": (Failure(404, "no such model"), "credentials"),
        "n5": (Failure(400, "will not do"), "endpoint"),
    }
    model = Sometimes(**{reply_key: failure for reply_key, (failure, _) in failures.items()})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        for number, (failure, reason) in enumerate(failures.values(), 1):
            status = await jobs.until(
                handle,
                waiting_for=reason,
                waiting=lambda waits, said=failure.message: said in waits["message"],
            )
            assert "resume" in status["waiting"]["remedy"]
            assert len(list((jobs.folder(handle) / "errors").iterdir())) == number
            await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_what_passes_is_retried_without_a_word(
    temporal: Client, root: Root, undisturbed: str
) -> None:
    model = Sometimes(
        n2=Failure(429, "slow down", headers={"retry-after": "0"}), n5=Failure(503, "overloaded")
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(await jobs.start(job()))
        assert result["tree"] == undisturbed


async def test_replies_that_cannot_be_carried_out_are_answered_and_disturb_nothing(
    temporal: Client, root: Root
) -> None:
    model = Sometimes(
        n1=Reply(
            None,
            [
                ("crystal_ball", {"question": "?"}),
                ("add_requirement", {"text": "x"}),
                ("read_file", '{"path": "instru'),
                ("read_file", {"path": "/etc/passwd"}),
                ("write_file", {"path": "archive/x.md", "content": "x"}),
            ],
        ),
        n2=Reply(
            None,
            [
                plan("[ ] Boil", "[ ] Brew"),
                hand_over({}),
                ("delete_file", {"path": "instructions.md"}),
            ],
        ),
        n3=Reply("Shall I go on?"),
        # At this failure the job stops within the same phase, and can be inspected.
        n4=Failure(401, "the key was revoked"),
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="credentials")
        transcript = str(jobs.snapshot(handle, status["checkpoint"]).conversation.messages())
        for part in (
            "There is no tool 'crystal_ball'",
            "not valid JSON",
            "/etc/passwd",
            "kept by the system",
            "instructions.md is an input of the job",
        ):
            assert part in transcript
        # A correction is not kept.
        assert ["need no permission" in last for last in model.lasts].index(True) == 3
        assert "need no permission" not in transcript
        assert status["refusals"] >= 2
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_a_lost_repository_parks_and_a_lost_checkpoint_goes_back(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    model = Sometimes(n4=Failure(401, "bad key"))
    # At this failure the job stops within a phase, part of which can be lost.
    model.short = Short({"Mark": [plan("[x] Boil", "[x] Brew"), DONE]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="credentials")
        assert status["checkpoint"] != status["checkpoints"][-1]["id"]
        repository = jobs.root.repository(handle.id)
        early = status["checkpoints"][-1]["id"]

        backup = tmp_path / "kept.git"
        shutil.move(repository, backup)
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for="storage")
        assert "backup" in status["waiting"]["message"]

        shutil.move(backup, repository)
        for unpacked in repository.glob("journal/*"):
            unpacked.unlink()
        await handle.signal("resume", {})
        await jobs.until(handle, notices=lambda told: any(early[:12] in line for line in told))
        assert (await jobs.result(handle))["status"] == "completed"


def damage(repository: Path, oid: str) -> None:
    """Damage a packed object, as a failing disk would, and clear the caches in memory."""
    for index in (repository / "objects" / "pack").glob("*.idx"):
        listing = subprocess.run(
            ["git", "verify-pack", "-v", str(index)], capture_output=True, text=True, check=True
        )
        entries = [line.split() for line in listing.stdout.splitlines() if line.startswith(oid)]
        for _, _, _, size, offset, *_ in entries:
            pack = index.with_suffix(".pack")
            pack.chmod(0o644)
            with pack.open("r+b") as file:
                file.seek(int(offset) + int(size) // 2)
                file.write(b"\xff" * (int(size) // 2))
    get_journal(repository).reload()
    sharded_tree.clear_sharded_tree_cache()


async def test_a_job_whose_file_is_damaged_goes_back_before_it(
    temporal: Client, root: Root
) -> None:
    numbers = random.Random(1)
    text = "\n".join(numbers.randbytes(40).hex() for _ in range(200))
    read: list[str] = []

    def work(view: Any) -> Any:
        if not view.calls:
            if not read:
                damage(
                    root.repository("damaged"), JournalRecord.create(BLOB, text.encode()).id.hex()
                )
            read.append(text)
            return [("read_file", {"path": "big.md"})]
        return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]

    big: Call = ("write_file", {"path": "big.md", "content": text})
    written = [big, plan("[ ] Boil", "[ ] Brew"), hand_over({}), DONE]
    async with serving(temporal, root, Short({"Plan": written, "Work": work})) as jobs:
        handle = await jobs.start(job(), job_id="damaged")
        result = await jobs.result(handle, 60)
        notices = (await query_status(handle))["notices"]
    assert result["status"] == "completed"
    assert len(read) == 2
    [back] = [line for line in notices if "is lost" in line]
    assert "(phase 1, step " in back


async def test_a_start_of_a_phase_that_is_lost_is_refused_or_waited_for(
    temporal: Client, root: Root
) -> None:
    """The checkpoint that the job is at exists; the job does not return to it forever."""

    done: list[Any] = []
    lost: list[str] = []

    def hand(view: Any) -> Any:
        if not done:
            checkpoints = open_checkpoints(root, "started")
            state = checkpoints.files(checkpoints.tree_id(checkpoints.tags()["phase/0001"])).entry(
                "state.json"
            )
            assert state
            lost.append(state.id)
            damage(checkpoints.path, state.id)
        done.append(view)
        return [hand_over({})] if len(done) == 1 else [DONE]

    async with serving(
        temporal, root, Short({"Plan": lambda view: [plan("[ ] Boil"), DONE], "Hand": hand})
    ) as jobs:
        judged = {
            "judge": {"attempts": 2, "phases": ["strategic"]},
            "todos.bootstrap": ["Plan", "Hand over"],
        }
        handle = await jobs.start(job(set=judged), job_id="started")
        status = await jobs.until(handle, waiting_for="storage")
        assert lost[0] in status["waiting"]["message"]
        assert "backup" in status["waiting"]["remedy"]
        await handle.signal("rewind", {"issue": "Again.", "phase": 1})
        status = await jobs.until(handle, refusals=1)
        assert status["waiting_for"] == "storage"
        assert [line for line in status["notices"] if lost[0] not in line] == []
        await handle.signal("cancel", {})


HOT = {
    "name": "hot", "stage": "active", "at": 1, "since": 1, "why": "taken", "agent": "generalist",
    "guard": {
        "name": "hot", "point": "reply", "match": {"content": ["cold"]}, "decision": "deny",
        "message": "Tea is hot.",
    },
}  # fmt: skip


@pytest.mark.parametrize("newest", ["taken", "not taken"])
async def test_a_job_in_the_middle_of_a_reply_again_knows_whether_it_was_taken(
    temporal: Client, root: Root, newest: str
) -> None:
    """It knows this whatever became of the newer reply, which is lost."""
    LearnedGuards(root.path).put_revision(LearnedRevision.model_validate(HOT))
    texts = ["It is cold.", "It is hot."][:: 1 if newest == "taken" else -1]
    writes: list[Call] = [("write_file", {"path": f"{n}.md", "content": n}) for n in "ab"]
    replies: list[Answer] = [
        Reply(texts[0], writes),
        Reply(texts[1], [("list_files", {})]),
        Failure(401, "the key was revoked"),
    ]
    short, requests = Short(), list[Request]()

    def model(request: Request) -> Answer:
        if replies and parse_request_view(request).kind == "tactical":
            return replies.pop(0)
        requests.append(request)
        return short(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, waiting_for="credentials")
        snapshot = jobs.snapshot(handle, status["checkpoint"])
        answers = [
            raw for raw in snapshot.conversation.stored_messages() if b'"role":"tool"' in raw
        ]
        snapshot.checkpoints.pack()
        damage(snapshot.checkpoints.path, JournalRecord.create(BLOB, answers[1]).id.hex())
        conversation.wire_cache.clear()
        requests.clear()
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
        notices = (await query_status(handle))["notices"]
        written = [path.name for path in sorted(jobs.folder(handle).glob("[ab].md"))]
    assert [line for line in notices if "is lost" in line]
    shown = [
        request_message_text(message)
        for message in requests[0]["messages"]
        if message["role"] == "tool"
    ]
    assert ["was not accepted" in text for text in shown] == [newest == "taken"] * 2
    assert written == ([] if newest == "taken" else ["a.md", "b.md"])


async def test_a_tool_past_its_time_limit_is_called_as_often_as_one_that_fails(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[float] = []

    def search_slowly(context: ToolContext, query: str) -> str:
        begun.append(time.monotonic())
        time.sleep(1.6)
        return "late"

    entry = replace(REGISTRY["web_search"], function=search_slowly, seconds=1)
    monkeypatch.setitem(REGISTRY, "web_search", entry)
    model = Short({"Work": [("web_search", {"query": "tea"}), DONE]})
    settings = {"tools": ["files", "todos", "job", "web_search"], "limits.tool_attempts": 2}
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=settings))
        await jobs.until(handle, waiting_for="tool")
        assert len(begun) == 2
        await handle.signal("cancel", {})
