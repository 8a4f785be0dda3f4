"""The page: all content of a report shows as text; nothing of it runs or loads."""

import time
from html.parser import HTMLParser
from typing import Any

import pytest

from cli.report.html_page import render_html_page
from cli.report.report_content import (
    BARS,
    MOST_LISTED,
    MOST_PHASES,
    ProjectReport,
    Report,
)
from cli.report.tally import fold_step_bars
from protocol.contract import ContractRow
from protocol.endings import JobResult
from protocol.notices import Notice
from protocol.project_units import Attempt
from protocol.proof import Proof
from protocol.status import ItemStatus, JobStatus, ProjectStatus, ProjectUnit
from tests.cli.report.samples import NOON, bar, phase, report
from tests.soak import patient

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


def unit(text: str) -> ProjectUnit:
    run = Proof(check="unit", ran=text, passed=True, end=text, asked_by=text)
    attempt = Attempt(job=text, role="tester", outcome=text, why=[text])
    return ProjectUnit(id=text, title=text, status="completed", history=[attempt], evidence=[run])


def project(**fields: Any) -> ProjectStatus:
    return ProjectStatus.model_validate({"job_id": "all", "title": "Tea"} | fields)


def test_a_project_tells_what_came_of_each_feature_and_how_it_was_proved() -> None:
    status = project(status="completed", units=[unit("brew")], line="1 of 1 features")
    whole = ProjectReport(status=status, read=NOON, jobs=[report()])
    text = " ".join(Seen(render_html_page(whole)).texts)
    for part in ("brew: completed", "0 model calls", "proof: unit: brew", "| brew", "1 of 1 feat"):
        assert part.replace("completed", "brew") in text


def test_hostile_texts_stay_texts_wherever_they_are() -> None:
    data = poisoned(report().model_dump(mode="json"))
    data["status"]["waiting"]["reason"] = "budget"
    data["status"]["result"]["status"] = "completed"
    poisoned_report = Report.model_validate(data)
    # This includes the drawing of rewinds and both kinds of headings.
    poisoned_report.phases[0].purpose = "rewind"
    whole = ProjectReport(
        status=project(job_id=HOSTILE, title=HOSTILE, status=HOSTILE, units=[unit(HOSTILE)]),
        read=NOON,
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
    whole = ProjectReport(status=project(), read=NOON, jobs=[report(), report()])
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
    page = Seen(render_html_page(report(**bare, status=JobStatus(), traces=[])))
    assert "None known." in page.texts
    assert Seen(render_html_page(ProjectReport(status=project(), read=NOON, jobs=[]))).texts


def test_what_is_not_known_shows_as_a_dash() -> None:
    page = Seen(render_html_page(report()))
    place = page.texts.index("Nudges")
    assert page.texts[place + 1] == "–"  # noqa: RUF001


@pytest.mark.parametrize("steps", [1, 10_000])
def test_a_page_is_small_and_quick_at_any_length(steps: int) -> None:
    texts = "word " * 60
    item = ItemStatus(id="S1", text=texts, status="open", source="given")
    status = JobStatus(items=[item] * MOST_LISTED, notices=[Notice(text=texts)] * MOST_LISTED)
    long = report(
        steps=fold_step_bars([bar(number, cost=0.01) for number in range(1, steps + 1)], BARS),
        phases=[phase(number, name=texts[:120]) for number in range(1, MOST_PHASES + 1)],
        status=status,
    )
    began = time.process_time()
    page = render_html_page(long)
    assert time.process_time() - began < patient(2)
    assert len(page.encode()) < 1_000_000
    assert len(long.steps) <= BARS


def test_the_contract_is_shown_with_what_was_found() -> None:
    row = ContractRow(
        id="B2", item="B2", statement="Cover <water>", status="completed", finding="nothing on it"
    )
    row.verdict = "unmet"
    result = JobResult(status="completed", statements=1, met=0, contract=[row])
    page = Seen(render_html_page(report(status=JobStatus(status="completed", result=result))))
    for words in ("completed, 0 of 1 statement met", "Cover <water>", "unmet", "nothing on it"):
        assert words in page.texts


def test_what_needs_a_person_result_and_scope_come_before_figures() -> None:
    page = " ".join(Seen(render_html_page(report())).texts)
    order = ["waiting (budget)", "Written.", "output/tea.md", "Unresolved", "Cover"]
    places = [page.index(words) for words in [*order, "Figures", "Phases", "Notices"]]
    assert places == sorted(places)
