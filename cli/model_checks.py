"""What the doctor asks a model: two turns with one tool, as jobs ask them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from temporalio.exceptions import ApplicationError

from activities.job.conversation import on_wire, tool_result
from activities.model.asking import answer, refusal
from activities.model.call import assistant_message
from activities.model.dialect import Dialect
from activities.model.endpoint import REHEARSAL, chosen_name, connect
from activities.model.json_text import is_object
from activities.model.prompt import conversation_body
from activities.toolkit.registry import REGISTRY
from cli.check import Check
from config.schema import AgentConfig
from protocol.text import one_line

if TYPE_CHECKING:
    from activities.model.stream import Streamed
    from config.sections import ModelConfig

TOOL = "read_file"
PATHS = ("maple.md", "birch.md")
SYSTEM = "\n".join(
    [
        "You are checked for whether you can call tools. Do exactly what you are asked.",
        # Providers cache nothing below some thousand tokens.
        *(f"Rule {n}: a rule with this number says nothing but its number." for n in range(1, 151)),
    ]
)
ASKED = f"Call {TOOL} twice in one reply: once for {PATHS[0]} and once for {PATHS[1]}."
THEN = "Say in one line which words the files hold. Call no tool."
PARSER = (
    "start the server with its tool-call parser: docs/operations.md, Model endpoints, has the "
    "flags; or set model.name to a model that calls tools"
)
SHOWN = 120


@dataclass
class Conversation:
    """A model, what was said to it, and the form in which it takes requests."""

    model: ModelConfig
    dialect: Dialect = field(default_factory=Dialect)
    messages: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": ASKED},
        ]
    )

    async def ask(self) -> Streamed:
        """The next reply, after as many refusals as teach something. Raises ApplicationError."""
        while True:
            model = self.dialect.settings(self.model)
            messages = [on_wire(message) for message in self.messages]
            body = self.dialect.worded(conversation_body(model, [REGISTRY[TOOL]], messages))
            try:
                return await answer(connect, model, body)
            except ApplicationError as error:
                tried = self.dialect.after(refusal(error), model)
                if tried is None:
                    raise
                self.dialect = tried

    def take(self, reply: Streamed, *, reasoning: bool) -> None:
        """Go on after a reply, with results of its calls."""
        self.messages = [*self.messages[:2], assistant_message(1, reply, reasoning=reasoning)]
        for place, (name, _) in enumerate(reply.calls):
            word = PATHS[place % len(PATHS)].removesuffix(".md")
            held = f"The word is {word}." if name == TOOL else f"Error: there is no tool {name}."
            self.messages.append(tool_result(1, place, held))
        self.messages.append({"role": "user", "content": THEN})


def models_of(config: AgentConfig) -> list[ModelConfig]:
    """The models that jobs of this agent ask, each once, under the names that they go by."""
    named = [
        model.model_copy(update={"name": chosen_name(model)})
        for model in (config.model, *config.phase_models.values(), *config.fallbacks)
    ]
    return list({model.model_dump_json(): model for model in named}.values())


async def examine(model: ModelConfig) -> AsyncIterator[Check]:
    """What works of what jobs need, one line each."""
    if model.name == REHEARSAL:
        yield Check(
            "model", False, "no endpoint is configured, so jobs run on the rehearsal model",
            "set OPENAI_BASE_URL or OPENAI_API_KEY",
        )  # fmt: skip
        return
    conversation = Conversation(model)
    try:
        first = await conversation.ask()
    except ApplicationError as error:
        yield Check("first turn", False, error.message, "see docs/operations.md, Model endpoints")
        return
    yield _request(conversation)
    for check in _calls(first):
        yield check
    conversation.take(first, reasoning=model.send_reasoning)
    try:
        second = await conversation.ask()
    except ApplicationError as error:
        yield await _reasoning_refused(conversation, first, error)
        return
    yield _reasoning(first, model)
    yield _cache(second)
    yield _usage(first, second)
    yield _finish(first, second)


def _request(conversation: Conversation) -> Check:
    model, dialect = conversation.model, conversation.dialect
    effort = f", effort {model.reasoning_effort}" if model.reasoning_effort else ""
    asked = f"model {model.name}{effort}"
    if dialect == Dialect():
        return Check("request", True, f"{asked}: taken as it is")
    without = sorted(dialect.without | dialect.keywords)
    changes = [f"without, or otherwise: {', '.join(without)}"] if without else []
    changes += [f"with at most {dialect.most} tokens a reply"] if dialect.most else []
    return Check("request", True, f"{asked}: taken {'; '.join(changes)}")


def _calls(reply: Streamed) -> Iterator[Check]:
    good = [name for name, raw in reply.calls if name == TOOL and is_object(raw)]
    if not reply.calls:
        text = one_line(reply.text, SHOWN) or "nothing"
        yield Check("tools", False, f"the reply called none; it said: {text}", PARSER)
        return
    if not good:
        name, raw = reply.calls[0]
        shown = one_line(f"{name} {raw}", SHOWN)
        yield Check("tools", False, f"no call could be read; the first was: {shown}", PARSER)
        return
    yield Check("tools", True, f"{TOOL} was called with its arguments")
    count = len(reply.calls)
    several = f"{count} in one reply" if count > 1 else "one call a reply, which works as well"
    yield Check("parallel calls", True, several)


def _reasoning(reply: Streamed, model: ModelConfig) -> Check:
    if not reply.reasoning:
        return Check("reasoning", True, "none came, so there is none to hand back")
    size = f"{len(reply.reasoning):,} characters came"
    if model.send_reasoning:
        return Check("reasoning", True, f"{size}, and were taken when they were handed back")
    return Check("reasoning", True, f"{size}; the second turn was taken without them")


async def _reasoning_refused(
    conversation: Conversation, first: Streamed, error: ApplicationError
) -> Check:
    """Whether the second turn is refused for the reasoning that it has or lacks."""
    handed_back = conversation.model.send_reasoning
    conversation.take(first, reasoning=not handed_back)
    try:
        if first.reasoning:
            await conversation.ask()
            setting = f"model.send_reasoning={'false' if handed_back else 'true'}"
            how = "with" if handed_back else "without"
            return Check(
                "reasoning", False,
                f"the second turn is refused {how} the reasoning of the first: {error.message}",
                f"set {setting}; of a job under way: starter.py resume JOB --set {setting}",
            )  # fmt: skip
    except ApplicationError:
        pass
    return Check(
        "second turn", False, f"results of tools are refused: {error.message}",
        "see docs/operations.md, Model endpoints",
    )  # fmt: skip


def _cache(second: Streamed) -> Check:
    cached, prompt = second.usage.cached_tokens, second.usage.prompt_tokens
    if cached:
        return Check("cache", True, f"{cached:,} of {prompt:,} tokens read at the second turn")
    return Check("cache", True, f"nothing of {prompt:,} tokens was read at the second turn")


def _usage(*replies: Streamed) -> Check:
    if any("usage" in reply.lacks for reply in replies):
        return Check("usage", True, "not counted by the endpoint; jobs estimate it from sizes")
    counts = [
        f"{reply.usage.prompt_tokens:,} + {reply.usage.completion_tokens:,}" for reply in replies
    ]
    return Check("usage", True, f"counted: {', '.join(counts)} tokens")


def _finish(*replies: Streamed) -> Check:
    if any("finish_reason" in reply.lacks for reply in replies):
        return Check("finish reasons", True, "none; [DONE] ends the replies")
    if cut := [reply for reply in replies if reply.finish == "length"]:
        return Check(
            "finish reasons", False, f"length: {len(cut)} of 2 replies were cut at the limit",
            "raise model.max_output_tokens",
        )  # fmt: skip
    return Check("finish reasons", True, ", ".join(reply.finish for reply in replies))
