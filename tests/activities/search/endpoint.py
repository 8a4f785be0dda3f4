"""An embeddings endpoint on a port of its own: texts of one meaning get one vector, by a table."""

import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import Handler, served

DIMENSIONS = 64
MEANINGS = {
    **dict.fromkeys(["invoice", "invoices", "bill", "bills"], 0),
    **dict.fromkeys(["kept", "retained", "stored", "storing"], 1),
    **dict.fromkeys(["salary", "wage", "wages", "pay"], 2),
    **dict.fromkeys(["kettle", "boiler"], 3),
}


def vector(text: str) -> list[float]:
    """Return a vector: known words by their meaning, all others weakly by their letters."""
    row = [0.0] * DIMENSIONS
    for word in text.lower().replace(".", " ").replace("?", " ").split():
        if word in MEANINGS:
            row[MEANINGS[word]] += 5
        else:
            row[4 + zlib.crc32(word.encode()) % (DIMENSIONS - 4)] += 0.1
    return row


@dataclass
class Endpoint:
    """Records the server's requests and decides its answers."""

    url: str
    asked: list[list[str]] = field(default_factory=list)
    fails_after: int | None = None
    """Number of requests that are answered before all others fail."""
    changes_after: int | None = None
    """Number of requests after which another model answers, with vectors half as long."""
    answer: dict[str, Any] | None = None
    """Sent instead of vectors."""
    gate: threading.Semaphore | None = None
    """Acquired before each answer."""

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.asked for text in batch]


@contextmanager
def serving() -> Iterator[Endpoint]:
    class Embeddings(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.body())
            texts: list[str] = body["input"]
            endpoint.asked.append(texts)
            if endpoint.gate is not None:
                endpoint.gate.acquire(timeout=30)
            status: int = 200
            changes = endpoint.changes_after
            changed = changes is not None and len(endpoint.asked) > changes
            length = DIMENSIONS // 2 if changed else DIMENSIONS
            answer = endpoint.answer or {
                "object": "list",
                "model": body["model"],
                "data": [
                    {"object": "embedding", "index": index, "embedding": vector(text)[:length]}
                    for index, text in enumerate(texts)
                ],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
            if endpoint.fails_after is not None and len(endpoint.asked) > endpoint.fails_after:
                status, answer = 400, {"error": {"message": "out of service"}}
            self.give_json(answer, status)

    with served(Embeddings) as address:
        endpoint = Endpoint(f"{address}/v1")
        yield endpoint
