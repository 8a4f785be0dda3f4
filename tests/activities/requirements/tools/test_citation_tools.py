"""Citations of web pages."""

import json

from activities.stores.relational_store import RelationalStore
from activities.web.page_fetch import FetchedPage
from activities.web.page_sources import read_page_source
from tests.activities.requirements.drafts import QUOTE, requirement_arguments
from tests.activities.standing import JOB, Standing
from tests.activities.stores.filling import (
    list_job_requirements,
)


def test_a_web_page_is_cited_as_it_was_fetched(job: Standing) -> None:
    url, data = "https://law.example/act/1", f"<html><body><p>{QUOTE}</p></body></html>".encode()
    source = read_page_source(FetchedPage("https://law.example/a", url, "text/html", None, data))
    job.put(source.put_into)
    good = {"url": url, "quote": QUOTE, "accessed": "2023-11-14"}
    answer = job.call("cite_web", **good)
    assert answer == f"citation CIT-0002: {source.path}, part 1 ({url}): “{QUOTE}”"
    citation = json.loads(job.text("citations/CIT-0002.json"))
    assert (citation["url"], citation["accessed"]) == ("https://law.example/act/1", "2023-11-14")
    assert f"is not in {source.path}" in job.call(
        "cite_web", **(good | {"quote": "Nobody has ever said such a thing."})
    )
    for url in ("https://law.example/act", "https://law.example/act/12", "https://other.example"):
        assert "Fetch it first" in job.call("cite_web", **(good | {"url": url}))
    assert "accessed" in job.call("cite_web", **(good | {"accessed": "yesterday"}))
    for day in ("1994-12-31", "2023-11-16"):
        answer = job.call("cite_web", **(good | {"accessed": day}))
        assert answer.startswith(f"Error: accessed: {day} cannot be")
    answer = job.call("add_requirement", **(requirement_arguments() | {"citations": ["CIT-0002"]}))
    assert answer.startswith("REQ-001")
    [row] = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    assert row.citations[0].url == "https://law.example/act/1"
