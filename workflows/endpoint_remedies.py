"""Remedies for a job that waits for its model endpoint, from the endpoint's words alone."""

from __future__ import annotations

from protocol.job_record import JobRecord
from protocol.waiting import WaitState

COMMAND = "`starter.py resume JOB --set {setting}`"
UNKNOWN = ("not supported", "unknown", "unrecognized", "extra", "not permitted")
Hint = tuple[tuple[str, ...], str, str]
"""Words of an endpoint's message, the setting that helps, and its effect."""
APIS: tuple[Hint, ...] = (
    (
        ("use /v1/responses", "only supported in v1/responses", "use the responses api"),
        "model.api=responses",
        "asks by the Responses API",
    ),
    (
        (
            *("use /v1/chat/completions", "only supported in v1/chat/completions"),
            *("use the chat completions", "not supported with the responses api"),
        ),
        "model.api=chat",
        "asks by Chat Completions",
    ),
)
SETTINGS: tuple[Hint, ...] = (
    (
        ("prompt_cache_breakpoint", "cache_control"),
        "model.cache_marks=none",
        "marks nothing for the cache",
    ),
    (("reasoning_content",), "model.send_reasoning=true", "hands back what the model thought"),
    (("reasoning", "thinking"), "model.reasoning_effort=null", "sends no effort"),
    (("temperature",), "model.temperature=null", "sends no temperature"),
    (
        ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
        "model.max_output_tokens=4000",
        "asks for shorter replies",
    ),
    (("said nothing for",), "model.stall_seconds=600", "waits longer within a reply"),
    (("did not answer in time",), "model.timeout_seconds=3600", "waits longer for a reply"),
    (
        ("[done]", "broke off", "stream"),
        "model.stream=false",
        "asks for replies in one piece",
    ),
    (
        ("cannot be reached", "web page", "no reply"),
        "model.base_url=http://HOST/v1",
        "takes another address",
    ),
)
"""The more specific ones come first."""
SERVER = ("tool-call-parser", "tool call parser", "enable-auto-tool-choice", "--jinja")
"""Wording of servers that were started without parsing tool calls."""
PARSER = "Start the server with its tool-call parser: docs/model-endpoints.md, has the flags"
ANOTHER = "`--set model.name=…` takes another model"
NO_CALL = (
    "No reply since the start has called a tool: the server may not turn what the model writes "
    f"into calls. {PARSER}; {ANOTHER}; then resume the job."
)
LEAST_REPLIES = 3
"""Number of replies after which it is no coincidence that none called a tool."""


def endpoint_remedy(message: str) -> str:
    """Return the remedy for an endpoint's words, as the end of a sentence; empty if unknown."""
    text = message.lower()
    if _contains_any(text, SERVER):
        return f"{PARSER}; or {ANOTHER}"
    if helps := _matching_endpoint_remedy(text, APIS):
        return helps
    if "tool" in text and "support" in text:
        return f"{ANOTHER}, one that calls tools"
    if "reasoning_content" in text and _contains_any(text, UNKNOWN):
        setting = "model.send_reasoning=false"
        return f"{COMMAND.format(setting=setting)} leaves out what the model thought"
    return _matching_endpoint_remedy(text, SETTINGS)


def _matching_endpoint_remedy(text: str, hints: tuple[Hint, ...]) -> str:
    for words, setting, effect in hints:
        if _contains_any(text, words):
            return f"{COMMAND.format(setting=setting)} {effect}"
    return ""


def _contains_any(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def model_refusal_wait(words: str, count: int) -> WaitState:
    """Return how a job waits whose model refuses again and again."""
    return WaitState(
        reason="endpoint",
        message=f"The model refused {count} times in a row: {words}",
        remedy="`starter.py tell JOB TEXT` says what is meant, then resume; rewind with an issue "
        "of your own; or give it another model, `starter.py resume JOB --set model.name=…`.",
    )


def is_endpoint_without_calls(job: JobRecord) -> bool:
    """Whether every reply since the start was text."""
    return not job.usage.tool_calls and not job.calls and job.usage.model_calls >= LEAST_REPLIES


def wait_with_remedy(waiting: WaitState, job: JobRecord) -> WaitState:
    """Return how a job waits for its endpoint, with the remedy."""
    if waiting.reason != "endpoint":
        return waiting
    remedy, helps = waiting.remedy, endpoint_remedy(waiting.message)
    if not helps and "model.name=" not in remedy:
        helps = f"{ANOTHER}, model.base_url its address"
    if helps:
        remedy = f"{remedy} What may help: {helps}."
    if is_endpoint_without_calls(job):
        remedy = f"{remedy} {NO_CALL}"
    return waiting.model_copy(update={"remedy": remedy})


def endpoint_without_calls_wait(issue: str) -> WaitState:
    """Return how a job waits whose model never calls tools, which no rewind changes."""
    return WaitState(
        reason="endpoint", message=f"{issue} None has since the start.", remedy=NO_CALL
    )
