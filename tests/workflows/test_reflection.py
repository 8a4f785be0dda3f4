"""A failed attempt: the question to the model, what is kept, what the next attempt sees."""

from dataclasses import dataclass, field

from temporalio.client import Client

from activities.checkpoints import Root
from activities.stores.relational_store import RelationalStore
from activities.stores.stored_traces import job_traces
from rehearsal import Reply, Request
from rehearsal.wire import Answer, Failure
from tests.workflows.serving import serving
from tests.workflows.short import Short, job

GENERIC = "One should plan better and be more careful."
ASSUMPTION = "It was assumed that notes/step_01.md names the source; write_file showed it does not."
PREVENTION = "Read documents/ before todo 1 and note the source in workspace.md."


@dataclass
class Failing:
    """Gives up its first list of work, and answers the questions about that."""

    reflections: list[Answer]
    asked: list[Request] = field(default_factory=list)
    issue: str = "No source is named."
    rewound: bool = False
    after: list[Request] = field(default_factory=list)
    short: Short = field(default_factory=Short)

    def __call__(self, request: Request) -> Answer:
        system = str(request["messages"][0]["content"])
        if "assumption" in system[:400] and not request.get("tools"):
            self.asked.append(request)
            return self.reflections[min(len(self.asked), len(self.reflections)) - 1]
        if "# Tactical phase" in system and not self.rewound:
            self.rewound = True
            return Reply(calls=[("todo_rewind", {"issue": self.issue})])
        if self.rewound:
            self.after.append(request)
        return self.short(request)


def said(*texts: str) -> list[Answer]:
    return [Reply(content=text) for text in texts]


async def test_two_questions_and_the_next_attempt_knows(temporal: Client, root: Root) -> None:
    model = Failing(said(ASSUMPTION, PREVENTION))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        first, second = (str(request["messages"][-1]["content"]) for request in model.asked)
        assert "No source is named." in first
        assert ASSUMPTION not in first
        # The first question is for the analysis alone; the second includes its answer.
        assert ASSUMPTION in second
        experiences = jobs.snapshot(handle, result["checkpoint"]).read_text("experiences.md")
        for phrase in ("No source is named.", ASSUMPTION, PREVENTION):
            assert phrase in experiences
            assert phrase in str(next(r for r in model.after if r.get("tools"))["messages"][1])
        rows = RelationalStore(root).run(lambda connection: job_traces(connection, handle.id))
        assert [row.what_happened for row in rows if row.guard == "reflection"] == [ASSUMPTION]


async def test_what_failed_is_kept_word_for_word(temporal: Client, root: Root) -> None:
    """Spaces and line breaks are part of a finding; what is too long is cut between words."""
    finding = "It prints `|  |  |`:\n\n    expected: |    |\n"
    model = Failing(
        said(ASSUMPTION, f"{PREVENTION} {'tea ' * 900}"), issue=finding + "tea leaves " * 300
    )
    async with serving(temporal, root, model) as jobs:
        result = await jobs.result(handle := await jobs.start(job()))
        experiences = jobs.snapshot(handle, result["checkpoint"]).read_text("experiences.md")
    prompt = str(model.asked[0]["messages"][-1]["content"])
    assert finding in prompt
    assert "- Failed: It prints `|  |  |`:\n  \n      expected: |    |\n  tea leaves" in experiences
    assert experiences.count("tea leaves") == 300
    assert experiences.partition("\n- Worked then")[0].endswith("tea tea…")


async def test_what_names_nothing_is_asked_for_once_more(temporal: Client, root: Root) -> None:
    model = Failing(said(GENERIC, ASSUMPTION, GENERIC, GENERIC))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        assert len(model.asked) == 4
        again = str(model.asked[1]["messages"][-1]["content"])
        assert GENERIC in again
        # No assumption is known yet, so no section claims to state one.
        assert "# The assumption that failed" not in again
        assert ASSUMPTION in jobs.snapshot(handle, result["checkpoint"]).read_text("experiences.md")
        rows = RelationalStore(root).run(lambda connection: job_traces(connection, handle.id))
        assert [row.why for row in rows if row.guard == "generic reflection"]


async def test_an_empty_answer_replaces_none_and_leaves_no_line(
    temporal: Client, root: Root
) -> None:
    model = Failing(said(GENERIC, "", "", ""))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        experiences = jobs.snapshot(handle, result["checkpoint"]).read_text("experiences.md")
        assert experiences.endswith(
            f"- Failed: No source is named.\n- Assumption: {GENERIC}\n"
            "- Worked then, in phase 4 (Tea): Work\n"
        )


async def test_without_an_answer_the_job_goes_back_all_the_same(
    temporal: Client, root: Root
) -> None:
    model = Failing([Failure(400, "no")])
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        status = await jobs.until(handle, rewinds=1)
        assert any("no reflection" in notice for notice in status["notices"])
        assert (await jobs.result(handle))["status"] == "completed"


async def test_half_a_reflection_is_paid_for_all_the_same(temporal: Client, root: Root) -> None:
    async def calls(*reflections: Answer) -> int:
        async with serving(temporal, root, Failing(list(reflections))) as jobs:
            result = await jobs.result(await jobs.start(job()))
            return int(result["usage"]["model_calls"])

    no = Failure(400, "no")
    assert await calls(*said(ASSUMPTION, GENERIC), no) == await calls(no) + 2


async def test_the_configuration_can_leave_it_out(temporal: Client, root: Root) -> None:
    model = Failing(said(ASSUMPTION))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={"reflection": False}))
        assert (await jobs.result(handle))["rewinds"] == 1
        assert model.asked == []
