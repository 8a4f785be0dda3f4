"""What a reviewer is shown, how its verdicts are kept, and what it may do."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from activities.acceptance.contract_rows import job_contract
from activities.job.conversation import Conversation
from activities.job.snapshot import Snapshot
from activities.preparation.agent_resolution import resolve_reviewer_tools
from activities.steps import review_job
from activities.steps.review_job import DECIDE, ReviewJobActivity, judge_job, review_task
from activities.text.tokens import count_tokens, token_encoding_name
from activities.toolkit.job_extensions import JobExtension
from activities.tools.verdict import ReadVerdicts
from config.agent_files import load_agent
from config.schema.agent import ConfigError
from protocol.contract import contract_line, not_accepted_line
from protocol.endings import ReviewRequest
from protocol.evidence import Evidence
from protocol.scope_ledger import ScopeItem, Statement, Verdict, scope_from_texts
from rehearsal import Script, rehearse
from rehearsal import call as call_of
from tests.activities.standing import AT, Standing, environment
from tests.workflows.serving import client_for
from workflows.rules.reservations import REVIEW_TOKENS

HOT = "It must say how hot the water is."


def reviewed(path: Path, *texts: str, unresolved: list[str] | None = None) -> Standing:
    """Return a job with these items, one file, and the call that would end it."""
    job = Standing.begin(path)
    start = job.commit
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(texts or ("green tea", "water"))
    for item in snapshot.state.scope:
        item.status = "completed"
        item.evidence = Evidence(kind="work", phase=2, todo=1, calls=1, files=["output/tea.md"])
    job.commit = snapshot.save("scope", 1)
    job.write("output/tea.md", "# Tea\n\nGreen tea needs water of 80 degrees.\n")
    job.write("notes/mine.md", "I am proud of this.")
    end_with(job, unresolved=unresolved or [])
    job.set["start"] = start
    return job


def end_with(job: Standing, **claim: Any) -> None:
    base = {"summary": "My own praise.", "notes": "My notes.", "confidence": 0.75}
    base |= {"deliverables": ["output/tea.md"]}
    job.reply(("job_complete", json.dumps({**base, **claim})))


def request(job: Standing, **details: Any) -> ReviewRequest:
    base = {"root": job.root.id, "commit": job.commit, "at": AT, "step": job.step, "call": 0}
    base |= {"number": 0, "last": True, "since": job.set.get("start", "")}
    return ReviewRequest(**{**base, **details})


def judged(
    job: Standing, *verdicts: tuple[str, Verdict, str], open_items: tuple[str, ...] = ()
) -> tuple[str, Snapshot]:
    """Return what the verdicts refuse, and the job with them."""
    snapshot = job.open()
    for item in snapshot.state.scope:
        if item.id in open_items:
            item.status, item.evidence = "open", None
    read = ReadVerdicts(
        {
            id_: Statement(text="", verdict=word, quote=quote, finding="It lacks this.")
            for id_, word, quote in verdicts
        },
        "",
    )
    return judge_job(snapshot, request(job), read), snapshot


def test_the_reviewer_sees_the_work_and_never_what_the_agent_says(tmp_path: Path) -> None:
    job = reviewed(
        tmp_path, HOT, "Cover green tea.", "Cover milk.", unresolved=["S3: no milk here"]
    )
    snapshot = job.open()
    snapshot.state.scope[1].evidence = Evidence(
        kind="look", phase=2, todo=2, claim="I looked hard."
    )
    job.commit = snapshot.save("look", 1)
    end_with(job, unresolved=["S3: no milk here"])
    task = review_task(job.open(), request(job))
    for words in (
        f"S1 {HOT}",
        "seen for S1: phase 2, todo 1: 1 call; output/tea.md",
        "- S3: no milk here",
        "Write about tea.",
        "## output/tea.md\n\n```\n# Tea\n\nGreen tea needs water of 80 degrees.\n```",
    ):
        assert words in task
    for words in ("praise", "My notes", "0.75", "looked hard", "proud"):
        assert words not in task
    assert task.endswith(DECIDE)


def test_what_the_system_counted_is_shown_and_can_be_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counts(JobExtension):
        def completion_notes(self, snapshot: Snapshot) -> list[str]:
            return ["rules.pdf: 78 of 78 sentences are cited."]

    monkeypatch.setattr(review_job, "EXTENSIONS", [Counts()])
    job = reviewed(tmp_path, "Find every requirement.", "Cover milk.")
    assert "rules.pdf: 78 of 78 sentences are cited." in review_task(job.open(), request(job))
    _, after = judged(job, ("S1", "met", "78 of 78 sentences"), ("S2", "met", "79 of 79 sentences"))
    assert [s.verdict for item in after.state.scope for s in item.statements] == [
        "met",
        "cannot tell",
    ]


def test_dropped_items_are_judged_and_send_nothing_back(tmp_path: Path) -> None:
    job = reviewed(tmp_path)
    snapshot = job.open()
    snapshot.state.scope[1].status = "open"
    snapshot.state.drop_items(["S2"], "It comes from the tap.")
    job.commit = snapshot.save("dropped", 1)
    end_with(job)
    task = review_task(job.open(), request(job))
    assert "\nS2 water\n  left out by the agent: It comes from the tap." in task
    findings, after = judged(job, ("S1", "met", "Green tea needs water"), ("S2", "unmet", "water"))
    assert not findings
    rows = job_contract(after, []).rows
    assert [(row.id, row.word) for row in rows] == [("S1", "met"), ("S2", "dropped, unmet")]


@pytest.mark.parametrize(
    ("verdicts", "words", "refuses"),
    [
        (
            (("S1", "met", "Green tea needs"), ("S2", "met", "water of 80 degrees")),
            "met met",
            False,
        ),
        ((("S1", "met", "made up"), ("S2", "met", "water of 80")), "cannot tell met", False),
        ((("S1", "met", "Green tea needs"),), "met cannot tell", False),
        ((("S1", "met", "Green tea needs"), ("S2", "unmet", "80 degrees")), "met unmet", True),
        (
            (("S1", "unmet", "made up"), ("S2", "unmet", "made up")),
            "cannot tell cannot tell",
            False,
        ),
        ((("S7", "unmet", "tea"), ("S1.1", "unmet", "tea")), "cannot tell cannot tell", False),
        ((), "cannot tell cannot tell", False),
    ],
)
def test_only_unmet_with_a_quote_refuses(
    tmp_path: Path, verdicts: Any, words: str, *, refuses: bool
) -> None:
    job = reviewed(tmp_path)
    findings, after = judged(job, *verdicts)
    assert bool(findings) is refuses
    contract = job_contract(after, [])
    assert " ".join(row.verdict for row in contract.rows) == words
    assert contract.statements == 2
    assert contract.met == words.split().count("met")
    if refuses:
        assert findings == "- S2 'water': It lacks this."
        assert contract_line(2, contract.met, contract.rows) == "1 of 2 statements met"
        assert not_accepted_line(contract.rows) == "not accepted: S2 (unmet)"


def test_the_brief_is_no_work(tmp_path: Path) -> None:
    job = reviewed(tmp_path)
    findings, after = judged(job, ("S1", "met", "Write about tea."))
    assert not findings
    assert after.state.scope[0].statements[0].verdict == "cannot tell"


def test_a_job_that_changed_nothing_is_judged_by_its_answer(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    since = job.commit
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["How hot is the water?", "Heat the water."])
    for item in snapshot.state.scope:
        item.status = "completed"
    job.commit = snapshot.save("looked", 1)
    end_with(job, summary="Water for tea has 80 degrees.")
    asked = request(job, since=since)
    assert "Its answer, which shows only" in review_task(job.open(), asked)
    read = {
        id_: Statement(text="", verdict="met", quote="Water for tea has 80 degrees")
        for id_ in ("S1", "S2")
    }
    after = job.open()
    judge_job(after, asked, ReadVerdicts(read, ""))
    assert [row.verdict for row in job_contract(after, []).rows] == ["met", "cannot tell"]


def test_what_is_openly_not_done_sends_nothing_back(tmp_path: Path) -> None:
    entry = "S2: the tap is closed for the whole week"
    job = reviewed(tmp_path, unresolved=[entry])
    given: Any = (("S1", "met", "Green tea needs"), ("S2", "unmet", "80 degrees"))
    findings, after = judged(job, *given, open_items=("S2",))
    assert not findings
    [_, row] = job_contract(after, [entry]).rows
    assert (row.status, row.reason, row.verdict) == ("unresolved", entry, "unmet")


def test_statements_of_a_group_are_judged_one_by_one(tmp_path: Path) -> None:
    job = reviewed(tmp_path)
    snapshot = job.open()
    stated = [
        Statement(text="Cover green tea.", place="instructions.md:3"),
        Statement(
            text="Write output/milk.md.", place="instructions.md:4", paths=["output/milk.md"]
        ),
    ]
    item = ScopeItem(id="B1", text="Tea", source="brief", status="completed", statements=stated)
    snapshot.state.scope = [item]
    job.commit = snapshot.save("grouped", 1)
    end_with(job)
    task = review_task(job.open(), request(job))
    assert "B1: Tea\nB1.1 [instructions.md:3] Cover green tea.\nB1.2 [instructions.md:4] W" in task
    quoted = "Green tea needs water"
    _, after = judged(job, ("B1.1", "met", quoted), ("B1.2", "met", quoted), ("B1", "met", quoted))
    first, second = job_contract(after, []).rows
    assert (first.id, first.place, first.verdict) == ("B1.1", "instructions.md:3", "met")
    # Code knows better than a reviewer who says that a file is there.
    assert (second.verdict, second.finding) == (
        "unmet",
        "code finds: output/milk.md does not exist; It lacks this.",
    )


@pytest.mark.parametrize(
    ("asked", "source", "added"),
    [
        ("Every page links home.", "brief", True),
        ("every  page links “home”", "brief", False),
        ("No page has pictures.", "brief", False),
        ("how hot the water is", "brief", False),
        ("Every page links home.", "given", False),
    ],
)
def test_what_the_brief_asks_for_and_no_statement_has_is_added(
    tmp_path: Path, asked: str, source: Literal["given", "brief"], added: bool
) -> None:
    job = reviewed(tmp_path, "Cover green tea.", HOT, "Cover milk.")
    snapshot = job.open()
    for item in snapshot.state.scope:
        item.source = source
    job.commit = snapshot.save("scope", 1)
    job.write("instructions.md", f"Cover green tea. {HOT}\nEvery page links home. Cover milk.\n")
    end_with(job)
    after = job.open()
    said = Statement(text=asked, verdict="unmet", quote="Every page", finding="No link.")
    met = Statement(text="", verdict="met", quote="Green tea needs water")
    refused = judge_job(
        after, request(job), ReadVerdicts(dict.fromkeys(("S1", "S2", "S3"), met), "", [said])
    )
    stated = [[each.text for each in item.statements] for item in after.state.scope]
    assert stated == [["Cover green tea."], [HOT, *([asked] * added)], ["Cover milk."]]
    assert refused == (f"- S2.2 '{asked}': No link." if added else "")
    # The words that were judged are those of the statements that were there.
    assert [item.statements[0].verdict for item in after.state.scope] == ["met"] * 3


def test_an_entry_of_before_is_no_answer_to_what_a_review_adds(tmp_path: Path) -> None:
    entry = "S1: the kettle shows no degrees"
    job = reviewed(tmp_path, HOT, unresolved=[entry])
    snapshot = job.open()
    snapshot.state.scope[0].source = "brief"
    job.commit = snapshot.save("scope", 1)
    job.write("instructions.md", f"{HOT} Every page links home.\n")
    end_with(job, unresolved=[entry])
    unmet = Statement(text="", verdict="unmet", quote="how hot the water is", finding="Missing.")
    added = unmet.model_copy(update={"text": "Every page links home.", "quote": "Every page"})
    # A reviewer may write an id of its own beside the words.
    read = ReadVerdicts({"S1": unmet, "NEW": added}, "")
    refused = judge_job(job.open(), request(job), read)
    assert refused == "- S1.2 'Every page links home.': Missing."


def test_verdicts_hold_for_the_work_that_was_judged(tmp_path: Path) -> None:
    job = reviewed(tmp_path)
    _, after = judged(job, ("S1", "met", "Green tea needs"), ("S2", "unmet", "80 degrees"))
    job.commit = after.save("judged", 1)
    job.write("plan.md", "# Plan\n")
    assert job_contract(job.open(), []).met == 1
    end_with(job)
    assert "you found before: unmet. It lacks this." in review_task(job.open(), request(job))
    job.write("output/tea.md", "Something else.")
    contract = job_contract(job.open(), [])
    assert [row.verdict for row in contract.rows] == ["not reviewed"] * 2
    assert contract_line(2, contract.met, contract.rows) == "2 statements, not reviewed"


@pytest.mark.parametrize("character", ["x", "\N{TEACUP WITHOUT HANDLE}", "\x01"])
def test_the_rows_of_a_result_are_bounded_and_name_first_what_is_not_accepted(
    tmp_path: Path, character: str
) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts([character * 500] * 1000)
    for item in snapshot.state.scope[:-1]:
        item.status = "completed"
        item.evidence = Evidence(kind="work", phase=2, files=[character * 120] * 12)
    contract = job_contract(snapshot, [])
    assert contract.statements == 1000
    assert 30 < len(contract.rows) <= 200
    assert len(contract.model_dump_json().encode()) < 310_000
    assert [contract.rows[0].id, contract.rows[1].id] == ["S1000", "S1"]


async def test_the_rehearsal_model_quotes_what_is_there(tmp_path: Path) -> None:
    job = reviewed(
        tmp_path, "Write output/tea.md.", "Name the degrees of the water.", "Sing a song."
    )
    reviewing = ReviewJobActivity(job.root, lambda _: client_for(rehearse))
    reply = await environment(local=False).run(reviewing.review_job, request(job))
    assert (reply.verdict, reply.findings) == ("accepted", "")
    scope = job.open(reply.commit).state.scope
    assert [(each.verdict, each.quote) for item in scope for each in item.statements] == [
        ("met", "Green tea needs water of 80 degrees."),
        ("met", "Green tea needs water of 80 degrees."),
        ("cannot tell", ""),
    ]


def test_what_it_begins_with_is_what_the_limits_reserve(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    lines = ["緑茶について書く。" * 20] * 200
    snapshot.state.scope = scope_from_texts(lines)
    job.commit = snapshot.save("scope", 1)
    start = job.commit
    job.write("instructions.md", "緑茶について書く。" * 2000)
    for number in range(30):
        job.write(f"output/{number}.md", "緑茶について書く。" * 1000)
    claim = {"summary": "茶" * 20_000, "notes": "茶" * 20_000, "confidence": 0.5}
    claim |= {"deliverables": ["output"], "unresolved": lines}
    job.reply(("job_complete", json.dumps(claim)))
    sent = [entry.schema for entry in resolve_reviewer_tools(load_agent("reviewer", reviews=True))]
    task = review_task(job.open(), request(job, since=start)) + json.dumps(sent)
    assert 20_000 < count_tokens(task) < REVIEW_TOKENS


async def test_its_conversation_is_counted_as_its_own_model_counts(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "model.name": "gpt-4",
        "phase_models": {"strategic": {"name": "gpt-4o"}},
    }
    job = Standing.begin(tmp_path)
    config = job.open().config
    config.reviewer = load_agent("reviewer", settings, reviews=True)
    job.pin(config)
    job.write("instructions.md", "Über grünen Tee schreiben, 緑茶について書く。\n" * 50)
    end_with(job, deliverables=[])
    with Script(call_of("judge_statements", verdicts=[])) as script:
        env = environment(local=False)
        reply = await env.run(
            ReviewJobActivity(job.root, lambda _: client_for(script)).review_job, request(job)
        )
    review = Conversation(job.open(reply.commit).review)
    newer, older = (review.count_tokens(token_encoding_name(name)) for name in ("gpt-4o", "gpt-4"))
    assert reply.context == newer != older


def test_a_reviewer_only_reads_and_can_decide() -> None:
    names = [entry.name for entry in resolve_reviewer_tools(load_agent("reviewer", reviews=True))]
    assert {"read_file", "judge_statements"} <= set(names)
    writing = load_agent("reviewer", {"tools": ["files", "verdict"]})
    with pytest.raises(ConfigError, match="only reads; take out write_file"):
        resolve_reviewer_tools(writing)
    with pytest.raises(ConfigError, match="decides with the group verdict"):
        resolve_reviewer_tools(load_agent("reviewer", {"tools": ["read_file"]}))
    with pytest.raises(ConfigError, match="neither a tool nor a group"):
        resolve_reviewer_tools(load_agent("reviewer", {"tools": ["magic"]}))


def test_the_reviewer_is_pinned_with_the_job_and_uses_its_model() -> None:
    config = load_agent("generalist", {"model.name": "own", "model.base_url": "http://here/v1"})
    assert config.reviewer
    assert "judge_statements" in config.reviewer.instructions_template
    assert config.reviewer.model == config.model
    assert config.reviewer.review is None
    strategic: dict[str, object] = {"phase_models": {"strategic": {"name": "wise"}}}
    with_phases = load_agent("generalist", strategic)
    assert with_phases.reviewer
    assert [each.name for each in with_phases.reviewer.models] == ["wise"]
    for off in ("none", None):
        assert load_agent("generalist", {"review": off}).reviewer is None


def test_a_reviewer_has_no_reviewer() -> None:
    with pytest.raises(ConfigError, match="has no reviewer itself"):
        load_agent("reviewer", {"review": {"agent": "generalist"}}, reviews=True)
