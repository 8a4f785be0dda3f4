"""Requirements of a workspace whose document has two sentences."""

from typing import Any

from activities.stores.relational_store import RelationalStore
from tests.activities.standing import JOB, Standing
from tests.activities.stores.filling import (
    list_job_requirements,
)

AWAY = "postgresql://127.0.0.1:1/db"
QUOTE = "Every invoice must be kept for ten years."
OTHER = "The user shall log in with a password of twelve signs."
LISTED = "candidates/candidates.json"


def requirement_arguments(text: str = QUOTE) -> dict[str, Any]:
    return {
        "text": text,
        "type": "legal",
        **(
            {"citations": ["CIT-0001"]}
            if text != OTHER
            else {"quotes": [{"path": "documents/a.md", "page": 1, "quote": text}]}
        ),
        "reasoning": "It says so.",
        "confidence": 0.9,
    }


def stored_texts(job: Standing) -> dict[str, str]:
    found = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    return {each.id: each.text for each in found}
