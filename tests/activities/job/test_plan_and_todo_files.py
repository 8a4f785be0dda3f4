"""What a weak model writes is read for what it means, and nothing it writes raises."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.job.plan_and_todo_files import (
    list_under_heading,
    parse_agent_todo_file,
    parse_plan,
    plan_boxes,
    plan_section,
    plan_step_texts,
    settle_plan_boxes,
    unread_plan_headings,
)
from protocol.scope_ledger import sync_plan_steps
from tests.soak import patient, soak

PLAN = """\
# Plan
- [ ] not of a phase
## Phase 1: Collect
Objective.
- [x] one
  - [X] below
## Phase 2: Write
* [ ] two
### Notes of phase 2
1. [ ] three
```
## Phase 9: an example
```
## Open questions
- [ ] not of a phase either
"""


def test_a_plan_as_asked_for() -> None:
    phases = parse_plan(PLAN)
    assert [(phase.number, phase.name, phase.is_open) for phase in phases] == [
        (1, "Collect", False),
        (2, "Write", True),
    ]
    assert phases[1].boxes == [(False, "two"), (False, "three")]


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("## Phase 1: Collect", "Collect"),
        ("##  phase 1 - Collect", "Collect"),
        ("## PHASE 1. Collect ##", "Collect"),
        ("## Phase 1 — Collect: all of it", "Collect: all of it"),
        ("## **Phase 1: Collect**", "Collect"),
        ("## **Phase 1**: Collect", "Collect"),
        ("## Phase 1 (done): Collect", "Collect"),
        ("## Phase 1", "Phase 1"),
        ("## Phase 1:", "Phase 1"),
        ("## Phase 1 Collect", "Collect"),
        ("## Phase 1/2: Collect", "Collect"),
        ("## Phase 1 [in progress]: Collect", "Collect"),
        ("## ⏳ Phase 1: Collect", "Collect"),
        ("## ✓ Phase 1 (done) [2 of 2] - Collect", "Collect"),
    ],
)
def test_headings_that_mean_a_phase(heading: str, name: str) -> None:
    assert [phase.name for phase in parse_plan(f"{heading}\n- [ ] a")] == [name]


@pytest.mark.parametrize(
    "heading", ["# Phase 1: x", "Phase 1: x", "## Phases", "## Phase one: x", "##Phase 1: x"]
)
def test_headings_that_do_not(heading: str) -> None:
    assert parse_plan(f"{heading}\n- [ ] a") == []


@pytest.mark.parametrize(
    ("line", "open_"),
    [
        ("- [ ] a", True),
        ("- [] a", True),
        ("2) [ ] a", True),
        ("- [x] a", False),
        ("- [✓] a", False),
        ("- [~] a", True),
        ("- [-] a", True),
        ("- [>] a", True),
        ("- [x] a\n- [1] a source, no box", False),
    ],
)
def test_boxes(line: str, open_: bool) -> None:
    assert parse_plan(f"## Phase 1: x\n{line}")[0].is_open is open_


@pytest.mark.parametrize(
    "heading", ["# Phase 2: x", "## Phases", "## Phase II: x", "## Next phase"]
)
def test_what_is_open_under_a_heading_that_seems_to_be_of_a_phase_is_told(heading: str) -> None:
    plan = f"## Phase 1: x\n- [x] a\n{heading}\n- [{{}}] b\n- [ ] c\n## Risks\n- [ ] d\n"
    assert unread_plan_headings(plan.format(" ")) == [heading]
    assert unread_plan_headings(plan.replace("- [ ] c\n", "").format("x")) == []


def test_code_hides_no_phase_that_follows_it() -> None:
    inline = "## Phase 1: x\n- [x] a\n```make test``` has to pass\n## Phase 2: y\n- [ ] b\n"
    unclosed = "## Phase 1: x\n- [x] a\n```sh\nmake\n## Phase 2: y\n- [ ] b\n"
    closed = unclosed.replace("make\n", "make\n## Phase 9: z\n```\n")
    for plan in (inline, unclosed, closed):
        assert [(phase.name, phase.is_open) for phase in parse_plan(plan)] == [
            ("x", False),
            ("y", True),
        ]


def test_what_an_editor_puts_before_a_text_hides_no_phase() -> None:
    plan = "\ufeff## Phase 1: x\n- [ ] a\n## Phase 2: y\n- [x] b\n"
    assert [(phase.name, phase.is_open) for phase in parse_plan(plan)] == [
        ("x", True),
        ("y", False),
    ]


def test_lists_under_a_heading() -> None:
    text = "# Job\n## Scope:\n- a\n* [ ] b\n3. c\nwords\n## Else\n- d\n"
    assert list_under_heading(text, "scope") == ["a", "b", "c"]
    assert list_under_heading(text, "Nothing") == []
    assert list_under_heading("\ufeff## **Scope**\n- a\n## __Else__:\n- d\n", "Scope") == ["a"]


def test_a_list_as_asked_for() -> None:
    parsed = parse_agent_todo_file(
        b"phase: A\ndescription: |\n  b\n  c\ntodos:\n- {id: 1, content: do}\n"
    )
    assert (parsed.status, parsed.phase, parsed.description, parsed.count) == (
        "read",
        "A",
        "b c",
        1,
    )
    assert parsed.todos[0].content == "do"


NONSENSE = {
    "bad bool": b"todos: [!!bool x]",
    "bad int": b"todos: [!!int x]",
    "bad timestamp": b"todos: [!!timestamp x]",
    "object": b"todos: [!!python/object:os.system x]",
    "unhashable": b"{[1]: 2}",
    "deep": b"[" * 5_000,
    "two documents": b"a: 1\n---\nb: 2",
    "huge number": b"todos: [" + b"9" * 5000 + b"]",
    "too long": b"#" * 100_001,
    "binary": bytes(range(256)),
    "bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in b"bcdefghi")
    + b"todos: [{id: 1, content: a, items: *i}]",
    "merge bomb": b"a: &a {x: 1}\nb: &b {<<: [*a, *a]}\ntodos: []",
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_told(data: bytes) -> None:
    parsed = parse_agent_todo_file(data)
    assert parsed.status == "invalid"
    assert 0 < len(parsed.error) < 400


@pytest.mark.parametrize(
    "data",
    [
        b'todos: [{id: 1, content: "\\ud800", items: ["\\udfff", [1], null]}]\nphase: "\\ud800"',
        b"todos: [null, 1, [], {id: {}, content: [], items: {a: 1}}]",
        b"todos: [{id: 1, content: '%s', items: [%s]}]" % (b"x" * 9000, b"y" * 9000),
    ],
)
def test_what_was_found_can_be_sent_and_is_bounded(data: bytes) -> None:
    parsed = parse_agent_todo_file(data)
    assert parsed.status == "read"
    for todo in parsed.todos:
        assert len(todo.model_dump_json()) < 8000


def test_a_todo_is_one_line_and_a_cut_shows() -> None:
    parsed = parse_agent_todo_file(
        b'todos: [{id: 1, content: "a\\n\\u2611 2. b"}, {id: 2, content: %s}]' % (b"x" * 600)
    )
    assert parsed.todos[0].content == "a ☑ 2. b"
    assert str(parsed.todos[1].content).endswith("x…")
    assert len(str(parsed.todos[1].content)) == 500


@pytest.mark.parametrize(
    "line",
    [
        "## Phase 1" + " " * 20_000 + "x",
        "## Phase 1: " + " *#" * 7_000 + "x",
        "- " + " " * 20_000,
        "- [ ] " + " " * 20_000,
    ],
)
def test_no_line_of_a_plan_takes_long_to_read(line: str) -> None:
    text = f"## Phase 1: Brew **\n- [x] a \n{line}\n"
    begun = time.process_time()
    assert parse_plan(text)[0].name == "Brew"
    assert list_under_heading(f"# Notes\n- a \n{line}\n", "notes")[0] == "a"
    assert time.process_time() - begun < patient(0.5)


yamlish = st.text(alphabet="-:[]{}&*!|>'\"#%@`,?<= \n\tabtodsi019.x~é\ud800", max_size=200)


@settings(max_examples=soak(40, 150), deadline=None)
@given(st.binary(max_size=200) | yamlish.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_raise(data: bytes) -> None:
    for content in (data, b"todos:\n- id: 1\n  content: " + data):
        parsed = parse_agent_todo_file(content)
        assert parsed.status in ("invalid", "read")
        for todo in parsed.todos:
            todo.model_dump_json()


@settings(max_examples=soak(30, 100), deadline=None)
@given(st.text(alphabet="# Phase1:-[x]\n`", max_size=300))
def test_no_plan_raises(text: str) -> None:
    for phase in parse_plan(text):
        assert phase.name


TWICE = """# Plan

```
## Phase 1: An example
- [ ] Boil
```

## Phase 1: Tea
- [ ] Boil
* [x] Pour
1. [ ] Boil

## Phase 2: Cake
- [ ] Bake
"""


def test_the_boxes_are_as_the_ledger_has_them_whoever_ticked_them() -> None:
    items = sync_plan_steps([], plan_step_texts(parse_plan(TWICE)))
    # The box that is ticked in the text is not the ledger's: it is open, like any other.
    bare = TWICE.replace("[x]", "[ ]")
    assert settle_plan_boxes(TWICE, items) == (bare, ["Pour"])
    items[2].status = "completed"
    once, unticked = settle_plan_boxes(TWICE, items)
    # Of two boxes with the same text, one for each item; boxes in a code fence do not count.
    assert (once, unticked) == (bare.replace("Tea\n- [ ] Boil", "Tea\n- [x] Boil"), ["Pour"])
    for item in items:
        item.status = "dropped" if item.text == "Bake" else "completed"
    ticked, _ = settle_plan_boxes(once, items)
    assert not [text for done, text in plan_boxes(parse_plan(ticked)) if not done]
    assert "- [✗] Bake" in ticked
    assert settle_plan_boxes(ticked, items) == (ticked, [])


def test_a_phase_is_shown_as_it_is_written() -> None:
    assert plan_section(TWICE, 1) == "## Phase 1: Tea\n- [ ] Boil\n* [x] Pour\n1. [ ] Boil"
    assert plan_section(TWICE, 2) == "## Phase 2: Cake\n- [ ] Bake"
    assert plan_section(TWICE, 3) == plan_section(TWICE, 0) == ""
