"""The page: all content of a report shows as text; nothing of it runs or loads."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from typing import Any

import pytest

from cli.report.html_page import render_html_page
from cli.report.report_content import (
    BARS,
    MOST_LISTED,
    MOST_PHASES,
    Item,
    Output,
    ProjectReport,
    Report,
    Scope,
    UnitLine,
)
from cli.report.step_bars import fold_step_bars
from protocol.contract import ContractRow
from tests.cli.report.samples import bar, phase, report

HOSTILE = (
    "</title></style></svg></script><script>alert(1)</script><img src=https://e.example/x onerror="
    'alert(1)>" onload=\'alert(2)\' style="background:url(https://e.example)" {{ 7*7 }} &lt;b&gt; '
    "javascript:alert(3) <!-- ]]>"
)
TAGS = (
    "html head meta title style body header main article section nav footer h1 h2 h3 h4 p span div "
    "code a strong small ul li dl dt dd table thead tbody tr th td br figure figcaption svg g rect "
    "line path text"
)


class Seen(HTMLParser):
    """Records every tag, attribute and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def attributes(self, name: str) -> list[str | None]:
        return [tag_attributes[name] for _, tag_attributes in self.tags if name in tag_attributes]


def poisoned(value: Any) -> Any:
    """Make every text in plain data hostile, except texts of a fixed form."""
    if isinstance(value, dict):
        fixed = ("kind", "started", "ended", "read", "link", "trend")
        return {k: v if k in fixed else poisoned(v) for k, v in value.items()}
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    return HOSTILE if isinstance(value, str) else value


def unit(text: str) -> UnitLine:
    runs = [Output(line=text, end=text, cut=True)]
    return UnitLine(id=text, title=text, status=text, attempts=2, story=[text], runs=runs)


def test_a_project_tells_what_came_of_each_feature_and_how_it_was_proved() -> None:
    brewed = unit("brew")
    brewed.story = ["tea.brew-tester-1: did not pass · It is cold."]
    brewed.runs = [
        Output(line="unit: pytest: exit code 0, 3 tests (brew-tester-2)", end="3 passed"),
    ]
    whole = ProjectReport(
        id="all", status="completed", units=[brewed], waits=["waited 2:00:00"], jobs=[report()]
    )
    text = " ".join(Seen(render_html_page(whole)).texts)
    for part in (*brewed.story, brewed.runs[0].line, "3 passed", "Its output", "waited 2:00:00"):
        assert part in text


def test_hostile_texts_stay_texts_wherever_they_are() -> None:
    poisoned_report = Report.model_validate(poisoned(report().model_dump(mode="json")))
    # This includes the drawing of rewinds and both kinds of headings.
    poisoned_report.phases[0].purpose = "rewind"
    whole = ProjectReport(
        id=HOSTILE,
        title=HOSTILE,
        status=HOSTILE,
        units=[unit(HOSTILE)],
        waits=[HOSTILE],
        jobs=[poisoned_report, poisoned_report],
        remarks=[HOSTILE],
    )
    for each_report, jobs in ((poisoned_report, 1), (whole, 2)):
        page = Seen(render_html_page(each_report))
        assert {tag for tag, _ in page.tags} <= set(TAGS.split())
        names = {name for _, tag_attributes in page.tags for name in tag_attributes}
        assert not {name for name in names if name.startswith("on")}
        assert not names & {"src", "srcset", "style", "xlink:href", "data", "action"}
        links = {link for link in page.attributes("href") if link and not link.startswith("#")}
        assert links == {"https://temporal.example/tea-1"}
        assert sum(text.count(HOSTILE) for text in page.texts) >= 20 * jobs


def test_the_page_forbids_itself_to_run_or_load_anything() -> None:
    page = Seen(render_html_page(report()))
    [policy] = [
        tag_attributes["content"]
        for _, tag_attributes in page.tags
        if "http-equiv" in tag_attributes
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "url(" not in render_html_page(report())
    assert "@import" not in render_html_page(report())


def test_landmarks_language_and_title() -> None:
    page = Seen(render_html_page(report()))
    tags = [tag for tag, _ in page.tags]
    assert page.attributes("lang") == ["en"]
    assert tags.count("h1") == 1
    assert {"header", "main", "footer"} <= set(tags)
    labelled = set(page.attributes("aria-labelledby"))
    assert labelled <= set(page.attributes("id"))
    assert all(
        tag_attributes.get("aria-label") for tag, tag_attributes in page.tags if tag == "svg"
    )
    assert "A guide on tea · tea-1" in page.texts


def test_several_jobs_are_listed_and_keep_their_ids_apart() -> None:
    whole = ProjectReport(id="all", title="Tea", status="running", jobs=[report(), report()])
    page = Seen(render_html_page(whole))
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert {"#job-1", "#job-2"} <= set(page.attributes("href"))
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert "Tea · all" in page.texts
    place = page.texts.index("Together")
    assert [text for text in page.texts[place + 1 :] if text.strip()][:5] == [
        *("4", "6", "4,206", "1.00", "2")
    ]


def test_a_job_that_has_done_nothing_yet_has_a_page() -> None:
    bare: dict[str, Any] = {
        "phases": [],
        "waits": [],
        "steps": [],
        "refusals": [],
        "deliverables": [],
    }
    page = Seen(
        render_html_page(report(**bare, scope=Scope(), traces=[], unresolved=[], notices=[]))
    )
    assert "None known." in page.texts
    assert Seen(render_html_page(ProjectReport(id="p", status="running", jobs=[]))).texts


def test_what_is_not_known_shows_as_a_dash() -> None:
    page = Seen(render_html_page(report()))
    place = page.texts.index("Nudges")
    assert page.texts[place + 1] == "–"  # noqa: RUF001


@pytest.mark.parametrize("steps", [1, 10_000])
def test_a_page_is_small_and_quick_at_any_length(steps: int) -> None:
    texts = "word " * 60
    item = Item(id="S1", text=texts, status="open", source="given")
    long = report(
        steps=fold_step_bars([bar(number, cost=0.01) for number in range(1, steps + 1)], BARS),
        phases=[phase(number, name=texts[:120]) for number in range(1, MOST_PHASES + 1)],
        scope=Scope(original=2000, items=[item] * MOST_LISTED),
        notices=[texts] * MOST_LISTED,
        unresolved=[texts] * MOST_LISTED,
    )
    began = time.process_time()
    page = render_html_page(long)
    assert time.process_time() - began < 2
    assert len(page.encode()) < 1_000_000
    assert len(long.steps) <= BARS


def test_the_contract_is_shown_with_what_was_found() -> None:
    row = ContractRow(
        id="B2", item="B2", statement="Cover <water>", status="completed", finding="nothing on it"
    )
    row.verdict = "unmet"
    scope = Scope(original=1, completed=1, met="0 of 1 statement met", contract=[row])
    page = Seen(render_html_page(report(scope=scope)))
    for words in ("0 of 1 statement met.", "Cover <water>", "unmet", "nothing on it"):
        assert words in page.texts
