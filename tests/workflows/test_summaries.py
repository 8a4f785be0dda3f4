"""Summaries of steps stay within the server's limit, in whatever script a path is written."""

import json

from temporalio.client import Client

from activities.checkpoints import Root
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Short, close, job

PATH = "/".join(["output", *["茶の湯" * 20] * 3, "\N{TEACUP WITHOUT HANDLE}" * 50 + ".md"])


async def test_a_long_path_in_another_script_is_cut_in_the_summary(
    temporal: Client, root: Root
) -> None:
    model = Short(
        {
            "Work": [
                ("write_file", {"path": PATH, "content": "tea"}),
                # A regular activity; the one before is a local one.
                ("search_files", {"query": "tea", "path": PATH}),
                DONE,
            ],
            "Close": [close(PATH)],
        }
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle, 30)
        assert result["status"] == "completed"
        assert (jobs.folder(handle) / PATH).read_text() == "tea"
        history = await handle.fetch_history()
    summaries = [
        json.loads(event.user_metadata.summary.data)
        for event in history.events
        if event.user_metadata.summary.data
    ]
    of_write, of_search = dict.fromkeys(each for each in summaries if "茶" in each)
    assert of_write.startswith("phase 2 · todo 1 · write_file output/茶の湯")
    assert of_search.startswith("phase 2 · todo 1 · search_files")
