"""Looking at images: what is sent over both APIs, and what is left after a compaction."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from activities.model.prompt import count_prompt_tokens, job_prompt_body
from activities.toolkit.tool_offer import offer_tools
from config.agent_files import load_agent
from config.schema.model_settings import ModelConfig
from protocol.phase import PhaseKind
from rehearsal import Reply, Script
from tests.activities.documents.test_picture import encoded
from tests.activities.standing import AT, Standing
from tests.activities.steps.test_compact import compact

SHOT = encoded("PNG", (800, 600), color="red")
URL = f"data:image/png;base64,{base64.b64encode(SHOT).decode()}"


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    standing = Standing.begin(tmp_path, set={"model.vision": True})
    standing.write("received/a.png", SHOT)
    return standing


def sent(job: Standing, **settings: Any) -> list[dict[str, Any]]:
    """Return the messages sent to a model with these settings, without the todo list."""
    snapshot = job.open()
    model = snapshot.config.model.model_copy(update=settings)
    body = json.loads(job_prompt_body(snapshot, ModelConfig.model_validate(dict(model)), None))
    messages: list[dict[str, Any]] = body["input" if model.api == "responses" else "messages"]
    return messages[:-1]


def look(job: Standing, *paths: str) -> list[str]:
    """Make one reply that views these images and then lists the folder."""
    calls = [("view_image", json.dumps({"path": path})) for path in paths]
    job.reply(*calls, ("list_files", '{"path": "received"}'))
    for number, _ in enumerate(calls):
        job.commit = job.run("view_image", job.request(call=number), local=False).commit
    job.commit = job.run("list_files", job.request(call=len(calls))).commit
    results = [m["content"] for m in job.open().conversation.messages() if m["role"] == "tool"]
    return results[-len(calls) - 1 :]


def test_an_image_follows_the_results_of_its_reply(job: Standing) -> None:
    result, listed = look(job, "received/a.png")
    pointer = f"received/a.png (PNG, 800 x 600, {len(SHOT):,} bytes, sha256 "
    assert result.startswith(pointer)
    assert result.endswith("): shown after the results of this reply.")
    assert "received/a.png" in listed
    roles = [message["role"] for message in sent(job)]
    assert roles == ["system", "assistant", "tool", "tool", "user"]
    image, text = sent(job)[-1]["content"]
    assert image == {"type": "image_url", "image_url": {"url": URL}}
    assert text["text"].startswith(f"Shown are:\n- {pointer}")

    shown = sent(job, api="responses")[-1]
    assert (shown["type"], shown["role"]) == ("message", "user")
    image, text = shown["content"]
    assert image == {"type": "input_image", "image_url": URL, "detail": "auto"}
    assert text["type"] == "input_text"


def test_no_checkpoint_holds_an_image_twice_or_as_text(job: Standing) -> None:
    look(job, "received/a.png", "received/a.png")
    snapshot = job.open()
    [image] = snapshot.images.walk()
    assert image.id == snapshot.files.entry("received/a.png").id  # type: ignore[union-attr]
    assert all(b"base64" not in message for message in snapshot.conversation.stored_messages())
    assert not snapshot.state.images
    assert sum(part["type"] == "image_url" for part in sent(job)[-1]["content"]) == 2


def test_a_model_that_cannot_see_is_told_what_there_was(job: Standing) -> None:
    look(job, "received/a.png")
    assert sent(job, vision=False)[-1]["content"].startswith("Shown are:\n- received/a.png (PNG")
    assert "base64" not in str(sent(job, vision=False, api="responses"))


@pytest.mark.parametrize("marks", ["breakpoint", "cache_control"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_text_beside_an_image_takes_the_mark_for_the_cache(
    job: Standing, marks: str, api: str
) -> None:
    look(job, "received/a.png")
    image, text = sent(job, cache_marks=marks, api=api)[-1]["content"]
    assert URL in str(image)
    assert len(text) == 3
    assert len(image) == (2 if api == "chat" else 3)


def test_an_image_counts_as_what_it_costs(job: Standing) -> None:
    before = count_prompt_tokens(job.open())
    look(job, "received/a.png")
    with_image = count_prompt_tokens(job.open())
    assert 641 < with_image - before < 1000


@pytest.mark.parametrize("kind", ["strategic", "tactical"])
def test_only_models_that_see_have_the_tool(kind: PhaseKind) -> None:
    def has_tool(**settings: Any) -> bool:
        config = load_agent("generalist", settings)
        return any(entry.name == "view_image" for entry in offer_tools(config, kind).offered)

    assert not has_tool()
    assert has_tool(**{"model.vision": True})
    assert has_tool(phase_models={"tactical": {"vision": True}}) is (kind == "tactical")


def test_what_is_no_image_is_refused(job: Standing) -> None:
    assert job.call("view_image", path="instructions.md").startswith(
        "Error: instructions.md: no PNG, JPEG, WebP, GIF or PDF"
    )
    assert "There is no file" in job.call("view_image", path="none.png")
    results = look(job, *["received/a.png"] * 5)
    assert results[4].startswith("Error: At most 4 images are shown in one reply.")
    assert "list" not in str(sent(job)[-1]["content"][-1])


async def test_a_compaction_leaves_a_pointer(job: Standing) -> None:
    snapshot = job.open()
    snapshot.conversation = snapshot.conversation.append({"role": "user", "content": "Begin."})
    job.commit = snapshot.save("opening", AT)
    for number in range(8):
        job.write(f"received/{number}.png", encoded("PNG", (1200, 900), color=(number, 0, 0)))
        look(job, f"received/{number}.png")
    # In memory at most twice the request, and only pointers once the images are old.
    before = count_prompt_tokens(job.open())
    with Script() as script:
        job.commit = (await compact(job, script, limit=before - 1)).commit
    messages = sent(job)
    shown = [type(m["content"]) for m in messages if str(m["content"]).find("Shown are") >= 0]
    assert len(shown) == 8
    assert 0 < shown.count(str) < 8
    assert shown == sorted(shown, key=lambda kind: kind is list)
    assert "received/0.png (PNG, 1,200 x 900" in str(messages)
    assert count_prompt_tokens(job.open()) < before - 1440 * shown.count(str) + 100

    with Script(lambda _: Reply("todo 1 todo 2 todo 3")) as script:
        job.commit = (await compact(job, script, limit=6_000, id_="8")).commit
    assert count_prompt_tokens(job.open()) < 6_000
    assert str(sent(job)).count("image_url") < 4
