"""A process that searches: `python -m tests.activities.search.searcher ROOT COMMIT URL QUERY…`.

Prints, for each query, the paths found, as one line of JSON.
"""

import json
import sys
from pathlib import Path

from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from activities.search.hybrid_search import search_passages
from config.schema.model_settings import Embeddings

JOB = "job"


def main(root: str, commit: str, url: str, *queries: str) -> None:
    workspace = Root.open(Path(root), create=False)
    files = Snapshot.load(open_checkpoints(workspace, JOB), commit).files
    for query in queries:
        results = search_passages(
            workspace.repository(JOB) / "search",
            files,
            query,
            limit=100,
            embeddings=Embeddings(model="fake", base_url=url),
        )
        print(json.dumps([results.note, *(hit.path for hit in results.hits)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
