"""The checks of `doctor` that concern models: the endpoint's answer and, on request, two turns.

The turns have the tools of an agent's jobs and are sent as jobs send them, streamed and in one
piece.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, get_args

from temporalio.exceptions import ApplicationError

from activities.checkpoints import Checkpoints, Files, Root
from activities.job.conversation import Conversation
from activities.job.conversation_calls import tool_result_message
from activities.model import providers
from activities.model.client import call_endpoint
from activities.model.dialect import Dialect
from activities.model.endpoint import connect_endpoint
from activities.model.endpoint_errors import endpoint_refusal_text
from activities.model.endpoint_wordings import REASONING
from activities.model.json_text import is_json_object
from activities.model.prompt import conversation_prompt_body
from activities.model.reply_message import reply_message, reply_provider_data
from activities.redaction.credentials import hide_credentials
from activities.tool_catalogue import REGISTRY
from activities.toolkit.registry import Tool
from activities.toolkit.tool_offer import offer_tools
from cli.checks.check_result import CHECK_TIMEOUT, CheckResult
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from protocol.failure_details import read_helps_detail, read_mend_detail
from protocol.phase import PhaseKind
from protocol.short_text import one_line

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from activities.model.reply_stream import StreamedReply
    from config.schema.model_settings import ModelConfig

TOOL = "read_file"
PATHS = ("maple.md", "birch.md")
SYSTEM = "\n".join(
    [
        "You are checked for whether you can call tools. Do exactly what you are asked.",
        # Providers do not cache prompts shorter than a few thousand tokens.
        *(f"Rule {n}: a rule with this number says nothing but its number." for n in range(1, 61)),
    ]
)
FIRST_PROMPT = f"Call {TOOL} twice in one reply: once for {PATHS[0]} and once for {PATHS[1]}."
SECOND_PROMPT = "Say in one line which words the files hold. Call no tool."
PARSER = (
    "start the server with its tool-call parser: docs/model-endpoints.md, has the "
    "flags; or set model.name to a model that calls tools"
)
SMALL_AGENT = "small"
SHOWN = 120


@dataclass
class ModelCheckExchange:
    """A conversation with a model, and the request dialect the model accepts."""

    model: ModelConfig
    tools: list[Tool]
    conversation: Conversation
    dialect: Dialect = field(default_factory=Dialect)

    @classmethod
    def begin(cls, model: ModelConfig, tools: list[Tool], folder: Path) -> ModelCheckExchange:
        """Start the first turn, with a store in `folder`."""
        root = Root.open(folder / "root", create=True)
        empty = Files.empty(Checkpoints.create(root, "doctor").store)
        opening = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": FIRST_PROMPT}]
        return cls(model, tools, Conversation(empty).append(*opening))

    async def request_reply(self, *, in_other_form: bool = False) -> StreamedReply:
        """Return the next reply, adapting to refusals that allow it. Raises ApplicationError.

        Args:
            in_other_form: Whether to ask for a stream where jobs do not, and the other way round.
        """
        while True:
            model = self.dialect.adapt_settings(self.model)
            if in_other_form:
                model = model.model_copy(update={"stream": not model.stream})
            body = conversation_prompt_body(model, self.tools, self.conversation)
            try:
                streamed = await call_endpoint(
                    connect_endpoint, model, self.dialect.adapt_body(body)
                )
            except ApplicationError as error:
                refusal = "" if in_other_form else endpoint_refusal_text(error)
                tried = self.dialect.adjust_to_refusal(refusal, self.model)
                if tried is None:
                    raise
                self.dialect = tried
            else:
                streamed.maker = providers.provider_name(self.model)
                return streamed

    def add_results(self, reply: StreamedReply) -> None:
        """Append a reply and the results of its calls."""
        message, extra = reply_message(1, reply), reply_provider_data(1, reply)
        self.conversation = self.conversation.append_reply(message, extra)
        for place, (name, _) in enumerate(reply.calls):
            word = PATHS[place % len(PATHS)].removesuffix(".md")
            text = f"The word is {word}." if name == TOOL else f"Error: there is no tool {name}."
            self.conversation = self.conversation.append(tool_result_message(1, place, text))
        self.conversation = self.conversation.append({"role": "user", "content": SECOND_PROMPT})


def list_models_to_check(config: AgentConfig) -> list[ModelConfig]:
    """Return the distinct models that an agent's jobs use, with their effective names."""
    named = [
        model.model_copy(update={"name": providers.endpoint_model_name(model)})
        for model in (config.model, *config.phase_models.values(), *config.fallbacks)
    ]
    return list({model.model_dump_json(): model for model in named}.values())


def list_tools_to_send(config: AgentConfig) -> list[Tool]:
    """Return what the requests of an agent's phases offer, with the tool that the turns call."""
    offers = [offer_tools(config, kind).offered for kind in get_args(PhaseKind)]
    offered = {tool.name: tool for offer in offers for tool in offer}
    return list({TOOL: REGISTRY[TOOL], **offered}.values())


async def check_model(
    model: ModelConfig, tools: list[Tool] | None = None
) -> AsyncIterator[CheckResult]:
    """Yield checks of what jobs need from a model.

    Args:
        model: Its settings.
        tools: The tools of the requests; None: those of `generalist`.
    """
    if model.name == providers.REHEARSAL:
        yield CheckResult(
            "model", False, "no endpoint is configured, so jobs run on the rehearsal model",
            "set OPENAI_BASE_URL or OPENAI_API_KEY",
        )  # fmt: skip
        return
    tools = tools or list_tools_to_send(load_agent("generalist"))
    with TemporaryDirectory() as folder:
        exchange = ModelCheckExchange.begin(model, tools, Path(folder))
        try:
            first = await exchange.request_reply()
        except ApplicationError as error:
            yield _check_failed_turn("first turn", error)
            return
        yield _check_model_request(exchange)
        yield _check_tool_schemas(exchange)
        for check in _check_model_calls(first):
            yield check
        yield await _check_other_form(exchange)
        exchange.add_results(first)
        try:
            second = await exchange.request_reply()
        except ApplicationError as error:
            yield _check_failed_turn("second turn", error)
            return
    yield _check_reasoning(first, exchange)
    yield _check_model_cache(second)
    yield _check_model_usage(first, second)
    yield _check_finish_reasons(first, second)


def _check_failed_turn(name: str, error: ApplicationError) -> CheckResult:
    if error.type == "ContextTooLong":
        return CheckResult(
            name, False, error.message,
            f"give the server a larger window, or use the agent `{SMALL_AGENT}`: "
            "docs/local-models.md",
        )  # fmt: skip
    if name == "second turn":
        return CheckResult(
            name, False, f"results of tools are refused: {error.message}",
            "see docs/model-endpoints.md",
        )  # fmt: skip
    return CheckResult(
        name, False, error.message,
        _endpoint_failure_remedy(error) or "see docs/model-endpoints.md",
    )  # fmt: skip


def _check_model_request(exchange: ModelCheckExchange) -> CheckResult:
    model, dialect = exchange.dialect.adapt_settings(exchange.model), exchange.dialect
    effort = f", effort {model.reasoning_effort}" if model.reasoning_effort else ""
    api = "Responses API" if model.api == "responses" else "Chat Completions"
    request = f"model {model.name}{effort}, {api}"
    if dialect.api:
        request += ", to which it was referred"
    changes = replace(dialect, api=None).describe_changes(Dialect())
    return CheckResult("request", True, f"{request}: taken {'; '.join(changes) or 'as it is'}")


def _check_tool_schemas(exchange: ModelCheckExchange) -> CheckResult:
    """Report how the schemas of an agent's tools were taken."""
    size = len(json.dumps([tool.schema for tool in exchange.tools], ensure_ascii=False))
    sent = f"{len(exchange.tools)} tools, {size:,} characters"
    if lacking := sorted(exchange.dialect.keywords):
        text = f"{sent}: the endpoint takes no {', '.join(lacking)}, which are left out"
    else:
        text = f"{sent}: taken as they are"
    return CheckResult("tool schemas", True, text)


async def _check_other_form(exchange: ModelCheckExchange) -> CheckResult:
    """Report whether the first turn is answered in the form for which jobs do not ask."""
    is_streamed = exchange.dialect.adapt_settings(exchange.model).stream
    name, setting = ("in one piece", "false") if is_streamed else ("streamed", "true")
    try:
        reply = await exchange.request_reply(in_other_form=True)
    except ApplicationError as error:
        return CheckResult(name, True, f"not answered, so keep model.stream: {error.message}")
    count = f"{len(reply.calls)} calls" if reply.calls else "no call"
    return CheckResult(name, True, f"{count}; model.stream={setting} asks for this form")


def _check_model_calls(reply: StreamedReply) -> Iterator[CheckResult]:
    good = [name for name, raw in reply.calls if name == TOOL and is_json_object(raw)]
    if not reply.calls:
        text = one_line(reply.text, SHOWN) or "nothing"
        yield CheckResult("tools", False, f"the reply called none; it said: {text}", PARSER)
        return
    if not good:
        name, raw = reply.calls[0]
        shown = one_line(f"{name} {raw}", SHOWN)
        yield CheckResult("tools", False, f"no call could be read; the first was: {shown}", PARSER)
        return
    yield CheckResult("tools", True, f"{TOOL} was called with its arguments")
    count = len(reply.calls)
    several = f"{count} in one reply" if count > 1 else "one call a reply, which works as well"
    yield CheckResult("parallel calls", True, several)


def _check_reasoning(reply: StreamedReply, exchange: ModelCheckExchange) -> CheckResult:
    """Report how the second turn handled the reasoning; jobs handle it the same way."""
    if not (reply.reasoning or reply.fields or reply.items):
        return CheckResult("reasoning", True, "none came, so there is none to hand back")
    size = f"{len(reply.reasoning):,} characters" if reply.reasoning else "encrypted"
    if exchange.dialect.needs_reasoning:
        return CheckResult("reasoning", True, f"{size}; the endpoint wants it back and gets it")
    if REASONING in exchange.dialect.unsupported:
        return CheckResult("reasoning", True, f"{size}; the endpoint takes none back and gets none")
    if exchange.model.send_reasoning or reply.items:
        return CheckResult("reasoning", True, f"{size}, and was taken when it was handed back")
    return CheckResult("reasoning", True, f"{size}; the second turn was taken without it")


def _check_model_cache(second: StreamedReply) -> CheckResult:
    cached, prompt = second.usage.cached_tokens, second.usage.prompt_tokens
    if cached:
        return CheckResult(
            "cache", True, f"{cached:,} of {prompt:,} tokens read at the second turn"
        )
    return CheckResult("cache", True, f"nothing of {prompt:,} tokens was read at the second turn")


def _check_model_usage(*replies: StreamedReply) -> CheckResult:
    if any("usage" in reply.missing_parts for reply in replies):
        return CheckResult(
            "usage", True, "not counted by the endpoint; jobs estimate it from sizes"
        )
    counts = [
        f"{reply.usage.prompt_tokens:,} + {reply.usage.completion_tokens:,}" for reply in replies
    ]
    return CheckResult("usage", True, f"counted: {', '.join(counts)} tokens")


def _check_finish_reasons(*replies: StreamedReply) -> CheckResult:
    if any("finish_reason" in reply.missing_parts for reply in replies):
        return CheckResult("finish reasons", True, "none; [DONE] ends the replies")
    if cut := [reply for reply in replies if reply.finish == "length"]:
        return CheckResult(
            "finish reasons", False, f"length: {len(cut)} of 2 replies were cut at the limit",
            "raise model.max_output_tokens",
        )  # fmt: skip
    return CheckResult("finish reasons", True, ", ".join(reply.finish for reply in replies))


async def check_models(agent: str) -> AsyncIterator[CheckResult]:
    """Yield checks of what the jobs of an agent need from their models."""
    try:
        config = load_agent(agent)
        models, tools = list_models_to_check(config), list_tools_to_send(config)
    except ConfigError as error:
        yield CheckResult("configuration", False, str(error), "correct it")
        return
    for model in models:
        async for check in check_model(model, tools):
            several = len(models) > 1
            yield replace(check, name=f"{model.name}: {check.name}") if several else check


def _endpoint_failure_remedy(error: ApplicationError) -> str:
    mend = read_mend_detail(error.details) or read_helps_detail(error.details)
    return f"{mend[:1].lower()}{mend[1:]}"


async def list_endpoint_models(client: AsyncOpenAI) -> list[str]:
    """Return the models that an endpoint lists; empty if it has no such list."""
    import openai  # noqa: PLC0415 - takes a moment to load

    try:
        return [str(entry.id) async for entry in client.models.list()]
    except openai.APIStatusError as error:
        if error.status_code not in (404, 405, 501):
            raise
        problem: Exception = error
    except AttributeError:  # raised by the client if the response is not JSON
        problem = ValueError("what answers there lists no models")
    try:
        # An empty request costs nothing, and an endpoint that validates it is a working one.
        await client.post("/chat/completions", cast_to=object, body={})
    except (openai.BadRequestError, openai.UnprocessableEntityError):
        return []
    raise problem


def _is_same_model(listed: str, name: str) -> bool:
    """Return whether a listed model is the named one: Gemini lists it as `models/name`, Ollama as
    `name:latest`, and routers accept `name:variant` of a listed one."""
    return name in (listed, listed.removeprefix("models/"), listed.removesuffix(":latest")) or (
        name.rpartition(":")[0] == listed
    )


async def check_model_endpoint(agent: str | AgentConfig = "generalist") -> CheckResult:
    """Check that the endpoint answers and offers the model of an agent."""
    try:
        model = (load_agent(agent) if isinstance(agent, str) else agent).model
        where = providers.describe_provider(model)
        model = model.model_copy(update={"name": providers.endpoint_model_name(model)})
        client = connect_endpoint(model).with_options(timeout=CHECK_TIMEOUT.total_seconds())
        offered = await list_endpoint_models(client)
    except ApplicationError as error:
        return CheckResult("model endpoint", False, error.message, _endpoint_failure_remedy(error))
    except ConfigError as error:
        return CheckResult("model endpoint", False, str(error))
    # The client's errors and those of its transport have no common base.
    except Exception as error:
        # For a failed connection only the cause has the reason; a timeout's cause is empty.
        # A refusal may repeat the key. It is hidden before the text is cut, which could cut it too.
        reason = one_line(hide_credentials(str(error.__cause__ or "") or str(error)), 200)
        return CheckResult(
            "model endpoint", False, f"{where}: {reason}",
            f"check {'model.base_url' if model.base_url else 'OPENAI_BASE_URL'} and "
            f"{model.api_key_variable}",
        )  # fmt: skip
    if offered and not any(_is_same_model(entry, model.name) for entry in offered):
        return CheckResult(
            "model endpoint", False, f"{where}: it does not list this model",
            "set LONGHAUL_MODEL or model.name to one it offers",
        )  # fmt: skip
    return CheckResult("model endpoint", True, where)
