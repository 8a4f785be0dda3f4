"""`search_tools` finds a tool by what it does, whatever is asked, and calls need it first."""

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.toolkit.registry import REGISTRY, tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_offer import MAX_OFFERED
from activities.tools.tool_search import PAGE_CHARACTERS
from tests.activities.standing import Standing
from tests.activities.tools.plenty import GROUP, GROUPS, plenty
from tests.soak import patient


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with plenty():
        folder = tmp_path_factory.mktemp("job")
        yield Standing.begin(folder, kind="tactical", set={"tools": GROUPS})


@pytest.fixture
def job(begun: Standing) -> Iterator[Standing]:
    """Return a job at its beginning, made once because making it takes longer than most tests."""
    before = set(REGISTRY)
    yield dataclasses.replace(begun)
    for name in set(REGISTRY) - before:
        del REGISTRY[name]


def found(job: Standing, query: str, mode: str = "text") -> list[str]:
    """Return the tools that a search makes callable, best first."""
    line = job.call("search_tools", query=query, mode=mode).partition("\n")[0]
    start = "Callable from your next turn on: "
    return line.removeprefix(start).rstrip(".").split(", ") if line.startswith(start) else []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("finding a duplicated invoice", "merge_invoices"),
        ("Exporting tickets!", "export_tickets"),
        ("tracking numbers of goods", "merge_shipments"),
        ("hand a contract over to a colleague", "assign_contract"),
        ("invoices_as_table", "export_invoices"),
        ("list-suppliers", "list_suppliers"),
        ("update_employee", "update_employee"),
        ("shipm trackin", "merge_shipments"),
        ("ÉXPORT tickets", "export_tickets"),
    ],
)
def test_words_in_any_form_find_the_tool(job: Standing, query: str, first: str) -> None:
    assert found(job, query)[0] == first


def test_the_best_five_are_shown_with_documentation_and_the_others_named(job: Standing) -> None:
    answer = job.call("search_tools", query="export a table")
    best = job.open().state.found_tools
    assert len(best) == 5
    assert all(name.startswith("export_") for name in best)
    for name in best:
        assert REGISTRY[name].page.strip() in answer
    rest = {name for name in REGISTRY if name.startswith("export_")} - set(best)
    assert len(rest) == 3
    assert all(name in answer and f"# {name}" not in answer for name in rest)


def test_names_get_just_these(job: Standing) -> None:
    assert found(job, "export_invoices, list_meetings") == ["export_invoices", "list_meetings"]
    assert job.open().state.found_tools == ["export_invoices", "list_meetings"]


def test_patterns_match_names_first(job: Standing) -> None:
    assert found(job, "^EXPORT_(inv|tick)", "regex") == ["export_invoices", "export_tickets"]
    everything = found(job, "ticket|complaint", "regex")
    assert everything == [name for name in REGISTRY if "ticket" in name]


@pytest.mark.parametrize(
    "pattern", ["(", "(?=a)", "\\1", "a{1,100000}", "[z-a]", "((.?){0,50}){0,19}x"]
)
def test_patterns_that_are_none_are_answered(job: Standing, pattern: str) -> None:
    answer = job.call("search_tools", query=pattern, mode="regex")
    assert answer.startswith("Error: query is not a valid RE2 pattern")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)*§", ".*.*.*.*.*§", "(.{0,60}){0,4}§"])
def test_patterns_take_linear_time(job: Standing, pattern: str) -> None:
    start = time.process_time()
    assert found(job, pattern, "regex") == []
    assert time.process_time() - start < patient(2)


@pytest.mark.parametrize("query", ["zebra", "the of and", "*", '"', "x " * 250, "\x00", "☕", "(("])
def test_when_nothing_matches_it_says_what_to_try(job: Standing, query: str) -> None:
    answer = job.call("search_tools", query=query)
    assert answer.startswith("None of the 40 tools")
    assert "regex" in answer
    assert job.open().state.found_tools == []


@pytest.mark.parametrize(
    "query",
    [
        '"export" AND (NOT tickets',
        "name : export_tickets OR NEAR(tickets, 2)",
        "export* ^tickets - line:x",
        "'; DROP TABLE tools; -- export tickets",
        "export\x00tickets",
        "𞤀 export tickets e\u0301",
        "export tickets " + " ".join(f"w{n}" for n in range(100)),
    ],
)
def test_queries_have_no_language(job: Standing, query: str) -> None:
    assert "export_tickets" in found(job, query)


def test_a_long_page_is_cut_with_a_pointer(job: Standing) -> None:
    def brew_coffee(context: ToolContext) -> str:
        return "done"

    brew_coffee.__doc__ = "Brew coffee.\n\n" + "Grind the beans. " * 500
    tool(GROUP, effect="reads")(brew_coffee)
    answer = job.call("search_tools", query="coffee")
    assert len(answer) < PAGE_CHARACTERS + 300
    assert 'read_file("tools/brew_coffee.md")' in answer


def test_no_more_are_found_than_endpoints_take(job: Standing) -> None:
    for number in range(MAX_OFFERED):

        def spare(context: ToolContext) -> str:
            return "done"

        spare.__name__, spare.__doc__ = f"spare_{number:03d}", "Do nothing."
        tool(GROUP, effect="reads")(spare)
    while not (answer := job.call("search_tools", query=_next(job))).startswith("Error: "):
        pass
    assert f"at most {MAX_OFFERED}" in answer
    assert MAX_OFFERED - 20 < len(job.open().state.found_tools) < MAX_OFFERED


def _next(job: Standing) -> str:
    """Return names of tools that were not found yet."""
    names = [name for name in REGISTRY if name.startswith("spare_")]
    return " ".join(sorted(set(names) - set(job.open().state.found_tools))[:5])


def test_with_few_tools_there_is_nothing_to_search(tmp_path: Path) -> None:
    few = Standing.begin(tmp_path)
    assert "is offered already" in few.call("search_tools", query="read")


def test_a_deferred_tool_that_is_called_wrongly_is_found_first(job: Standing) -> None:
    answer = job.call("export_invoices", since="yesterday")
    assert answer.startswith("Error: export_invoices: ")
    assert answer.endswith("the query may list several names.")
    assert 'search_tools("export_invoices")' in answer
    assert "output/invoices.csv" not in job.paths()
    job.call("search_tools", query="export_invoices")
    assert job.call("export_invoices") == "Wrote output/invoices.csv."
    assert "output/invoices.csv" in job.paths()
