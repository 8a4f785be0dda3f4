"""Build the request to the model, ordered for the provider's prompt cache.

System prompt, first message and conversation only grow within a phase. The todo list, which
changes, is the last message and is not stored.
"""

import json
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from pydantic_core import from_json

from activities.job.conversation import Conversation, token_cache
from activities.job.conversation_calls import ERROR_PREFIX
from activities.job.deliverables import MAX_NAMED
from activities.job.plan_and_todo_files import changed_todo_files
from activities.job.snapshot import Snapshot
from activities.model import responses
from activities.model.message_forms import message_form_of, message_form_weights
from activities.model.providers import drops_reasoning_when_forced, provider_name, takes_cache_key
from activities.redaction.credentials import encode_without_credentials
from activities.text.tokens import MESSAGE_TOKENS, count_tokens, token_encoding_name
from activities.toolkit.agent_tools import ends_job_in_list
from activities.toolkit.path_ownership import is_work_path
from activities.toolkit.registry import REGISTRY, Tool
from activities.toolkit.tool_offer import ENDING, offer_tools
from activities.toolkit.tool_schemas import allows_strict, with_choices, without_keywords
from config.schema.model_settings import ModelConfig
from protocol import scope_ledger
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.short_text import first_few, one_line, shorten_to_start
from protocol.todo_list import Todo

MAX_REMARKS = 5
"""Most remarks of people shown on every turn, the newest; instructions.md has all."""
MAX_REMARK = 1000
MAX_SCHEMA = 2000
"""Characters of a schema that a todo's file has to fit; a refusal names what does not fit."""
MAX_OPEN_ITEMS = 20


def job_prompt_body(
    snapshot: Snapshot,
    model: ModelConfig,
    correction: str | None,
    *,
    must_call: bool = False,
    only: Sequence[str] = (),
    cache_key: str = "",
) -> bytes:
    """Return the body of the model call, assembled from stored message bytes.

    Nothing of the conversation is parsed again, so a call's cost grows with it only by copying
    bytes. A demand on this one reply comes last, where it invalidates no cached prefix.
    """
    form = message_form_of(model)
    shown = render_prompt_todos(snapshot, correction)
    last = [form.render(encode_without_credentials({"role": "user", "content": shown}), b"")]
    # A small model that has to call may write before the call without end.
    is_forced = (
        must_call and not snapshot.config.plain and not _thinks_unless_forced(snapshot, model)
    )
    demand = b',"tool_choice":"required"' if is_forced else b""
    end = b"]%b%b}" % (demand, _prompt_cache_field(model, cache_key))
    pieces = [*snapshot.view.wire_bytes(form), *(last if shown else [])]
    pieces[-1] += end
    # Join once: a second copy of a long conversation takes as long as the rest of the request.
    name = _prompt_messages_key(model)
    pieces[0] = b'%b,"%b":[%b' % (_fixed_prompt_part(snapshot, model, only).text, name, pieces[0])
    return b",".join(pieces)


def _thinks_unless_forced(snapshot: Snapshot, model: ModelConfig) -> bool:
    """Whether forcing a call would cost this model's reasoning."""
    if model.api == "responses" or not drops_reasoning_when_forced(model):
        return False
    if model.reasoning_effort:
        return True
    conversation = snapshot.conversation
    last = conversation.provider_data(len(conversation) - 1) or {}
    return last.get("maker") == provider_name(model) and bool(last.get("fields"))


def count_prompt_tokens(snapshot: Snapshot) -> int:
    """Count the tokens of the next request from a checkpoint, by our own count, corrected by what
    the endpoint counted for the last reply.

    Use a checkpoint as opened or saved: a step caches counts for the next one.
    """
    known = token_cache.get(key := ("context", snapshot.commit))
    return token_cache.put(key, _count_prompt_tokens(snapshot)) if known is None else known


def _count_prompt_tokens(snapshot: Snapshot) -> int:
    model = snapshot.config.model_for(snapshot.state.phase.kind)
    encoding = token_encoding_name(model.name)
    todos = MESSAGE_TOKENS + _prompt_todo_tokens(render_prompt_todos(snapshot, None), encoding)
    counted = (
        fixed_prompt_tokens(snapshot)
        + snapshot.view.count_tokens(encoding, message_form_weights(model))
        + todos
    )
    return round(counted * snapshot.state.token_ratio)


@lru_cache(maxsize=256)
def _prompt_todo_tokens(rendered: str, encoding: str) -> int:
    """Cached, since a list stays the same for many steps."""
    return count_tokens(rendered, encoding)


def fixed_prompt_tokens(snapshot: Snapshot) -> int:
    return _fixed_prompt_part(snapshot, snapshot.config.model_for(snapshot.state.phase.kind)).tokens


def conversation_prompt_body(
    model: ModelConfig, tools: Sequence[Tool], conversation: Conversation, cache_key: str = ""
) -> bytes:
    form = message_form_of(model)
    marked = [0, *conversation.cache_points()] if form.marks != "none" else []
    messages = b",".join(conversation.wire_bytes(0, None, form, marked))
    schemas = [entry.schema for entry in tools]
    text = encode_without_credentials(
        {**_prompt_settings(model), **_tool_settings(schemas, model)}
    )[:-1]
    key = _prompt_cache_field(model, cache_key)
    return b'%b,"%b":[%b]%b}' % (text, _prompt_messages_key(model), messages, key)


def simple_prompt_body(model: ModelConfig, system: str, user_text: str) -> bytes:
    form = message_form_of(model)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user_text}]
    sent = b",".join(form.render(encode_without_credentials(message), b"") for message in messages)
    return b'%b,"%b":[%b]}' % (
        encode_without_credentials(_prompt_settings(model))[:-1],
        _prompt_messages_key(model),
        sent,
    )


def read_prompt_tools(body: bytes, model: ModelConfig) -> list[dict[str, Any]]:
    """Return the tools that a request offers, as they stand in it.

    They come before the conversation. Parsing that too would cost more with each turn.
    """
    before, _, _ = body.partition(b',"%b":[' % _prompt_messages_key(model))
    try:
        request = from_json(before + b"}")
    except ValueError:  # A schema has the same words, or there is no conversation.
        request = from_json(body)
    tools: list[dict[str, Any]] = request.get("tools") or []
    return tools


def render_prompt_todos(snapshot: Snapshot, correction: str | None) -> str:
    phase = snapshot.state.phase
    if snapshot.config.plain and phase.kind == "tactical":
        return _plain_prompt(snapshot, correction)
    place = f" · plan {phase.plan_position} of {phase.plan_total}" if phase.plan_total else ""
    lines = [
        f'# Todo list · {phase.kind} phase {phase.number} "{phase.name}"{place}',
        *prompt_todo_lines(phase),
        f"Progress: {sum(todo.done for todo in phase.todos)}/{len(phase.todos)}",
    ]
    if items := snapshot.state.scope:
        ledger_line = scope_ledger.scope_ledger_line(items)
        lines.append(f"Scope: {ledger_line}{_open_prompt_items(snapshot.state)}")
    if todo := phase.current:
        lines.append(_prompt_instruction(snapshot, todo))
        if todo.done_when:
            lines.append(f"It is done when {todo.done_when.line}.")
            if valid := todo.done_when.valid:
                # The list that it came with may be of an earlier phase, which is no longer shown.
                schema = json.dumps(valid.schema_, ensure_ascii=False)
                lines.append(f"The schema: {shorten_to_start(schema, MAX_SCHEMA)}")
    if remarks := snapshot.state.remarks[-MAX_REMARKS:]:
        lines += ["In force beside the instructions:"]
        lines += [f"- {one_line(remark.line, MAX_REMARK)}" for remark in remarks]
    if correction:
        lines += ["", correction]
    return "\n".join(lines)


def _plain_prompt(snapshot: Snapshot, correction: str | None) -> str:
    """Return what a plain agent reads last: its task again in place of a correction, and after
    a refusal, whose words it would else write into its files.
    """
    if correction or _is_last_call_refused(snapshot):
        correction = f"This is not done yet. {snapshot.read_text('instructions.md').strip()}"
    remarks = [one_line(each.line, MAX_REMARK) for each in snapshot.state.remarks[-MAX_REMARKS:]]
    return "\n".join(filter(None, [*remarks, correction]))


def _prompt_instruction(snapshot: Snapshot, todo: Todo) -> str:
    phase = snapshot.state.phase
    is_refused = _is_last_call_refused(snapshot)
    # The gate accepts nothing else for it; what it has just refused is not advised again.
    refused = _conversation_calls(snapshot)[-1]["name"] if is_refused else ""
    if phase.is_ending and refused != "job_complete":
        return f"Do todo {todo.id}, which `job_complete` completes."
    if phase.kind == "strategic" and phase.open_count == 1 and not todo.updates:
        ending = "`todo_write`" + (" or `job_complete`" if phase.purpose != "bootstrap" else "")
        return f"Do todo {todo.id}, which {ending} completes."
    updated = changed_todo_files(snapshot.changes, snapshot.state.phase)
    finished = list(takewhile(lambda each: each.updates in updated, phase.open_todos))
    if not finished or is_refused:
        # Small models call at once whatever is named, done or refused.
        if snapshot.state.seen.is_idle or is_refused:
            return f"Do todo {todo.id}."
        rest = ", or `job_complete` once all is done" if ends_job_in_list(snapshot.config) else ""
        return f"Do todo {todo.id}, then call `todo_complete`{rest}."
    ids = ", ".join(str(each.id) for each in finished)
    files = ", ".join(dict.fromkeys(each.updates for each in finished))
    if len(finished) == 1:
        claim, each, them = f"Todo {ids} is seen to be done", "", "it"
    else:
        claim, each, them = f"Todos {ids} are seen to be done", " for each", "them"
    return f"{claim}, by a change of {files}: call `todo_complete`{each}, or go on with {them}."


def _is_last_call_refused(snapshot: Snapshot) -> bool:
    last = snapshot.conversation.message(len(snapshot.conversation) - 1)
    return bool(last["role"] == "tool" and last["content"].startswith(ERROR_PREFIX))


def _conversation_calls(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the calls of the conversation, oldest first."""
    messages = map(snapshot.conversation.message, range(len(snapshot.conversation)))
    return [call["function"] for each in messages for call in each.get("tool_calls") or ()]


def _useless_look(snapshot: Snapshot) -> list[str]:
    """Return the tool that has just failed to find something or found it twice: a small model
    would call it again.
    """
    calls = _conversation_calls(snapshot)
    if not calls or not (_is_last_call_refused(snapshot) or calls[-1] in calls[-3:-1]):
        return []
    tool = REGISTRY.get(calls[-1]["name"])
    return [tool.name] if tool and tool.effect == "reads" else []


def _open_prompt_items(state: JobState) -> str:
    open_items = state.open_scope
    if state.phase.kind == "tactical" or not open_items:
        return ""
    return f"; open: {first_few([item.id for item in open_items], MAX_OPEN_ITEMS)}"


def prompt_todo_lines(phase: Phase) -> list[str]:
    current = phase.current
    return [
        f"{'☑' if todo.done else '▶' if todo is current else '☐'} {todo.id}. {todo.content}"
        for todo in phase.todos
    ]


class _FixedPart(NamedTuple):
    text: bytes
    tokens: int


_fixed_parts: dict[tuple[Hashable, ...], _FixedPart] = {}


def _fixed_prompt_part(
    snapshot: Snapshot, model: ModelConfig, only: Sequence[str] = ()
) -> _FixedPart:
    """Return settings and tools up to the messages: the same bytes for every call of a phase.

    Tools that were found are appended to the list. In the one turn before a rewind the list has
    only the tools that are accepted. A phase whose only todo is to end the job has no
    `todo_complete`, and its deliverables are chosen among the files that the job made.
    """
    config, state = snapshot.config, snapshot.state
    kind, found_tools, unused = state.phase.kind, tuple(state.found_tools), [*state.unused_tools]
    choices: list[str] = []
    if config.plain and kind == "tactical" and not only:
        unused += [*ENDING, *_useless_look(snapshot)]
    if state.phase.purpose == "final" and len(state.phase.todos) == 1:
        unused.append("todo_complete")
        choices = deliverable_choices(snapshot)
    key = (
        snapshot.config_id,
        *(kind, found_tools, tuple(unused), tuple(only), tuple(choices), model.model_dump_json()),
    )
    if key not in _fixed_parts:
        if len(_fixed_parts) > 256:
            _fixed_parts.clear()
        offered = offer_tools(config, kind, found_tools, unused).offered
        tools = [
            with_choices(entry.schema, "deliverables", choices)
            if choices and entry.name == "job_complete"
            else entry.schema
            for entry in offered
            if not only or entry.name in only
        ]
        text = encode_without_credentials(
            {**_prompt_settings(model), **_tool_settings(tools, model)}
        )[:-1]
        tokens = count_tokens(
            json.dumps(tools, ensure_ascii=False), token_encoding_name(model.name)
        )
        _fixed_parts[key] = _FixedPart(text, tokens)
    return _fixed_parts[key]


def deliverable_choices(snapshot: Snapshot) -> list[str]:
    """Return the job's files as deliverables, if few and if nobody takes over what it made."""
    if snapshot.link or snapshot.repository:
        return []
    paths = [path for path in snapshot.changed_since(0) if is_work_path(path)]
    return sorted(paths) if len(paths) <= MAX_NAMED else []


def _tool_settings(schemas: Sequence[dict[str, Any]], model: ModelConfig) -> dict[str, Any]:
    parallel = model.parallel_calls
    settings = {} if parallel is None else {"parallel_tool_calls": parallel}
    return {**settings, "tools": _declare_prompt_tools(schemas, model)}


def _declare_prompt_tools(
    schemas: Sequence[dict[str, Any]], model: ModelConfig
) -> list[dict[str, Any]]:
    if model.api != "responses":
        return list(schemas)
    functions = [
        # Strict schemas may not have it.
        {**function, "parameters": without_keywords(function["parameters"], {"maxLength"})}
        for function in (schema["function"] for schema in schemas)
    ]
    return [
        {"type": "function", **function, "strict": allows_strict(function["parameters"])}
        for function in functions
    ]


def _prompt_messages_key(model: ModelConfig) -> bytes:
    return b"input" if model.api == "responses" else b"messages"


def _prompt_cache_field(model: ModelConfig, key: str) -> bytes:
    return b',"prompt_cache_key":"%b"' % key.encode() if key and takes_cache_key(model) else b""


def _prompt_settings(model: ModelConfig) -> dict[str, Any]:
    if model.api == "responses":
        return responses.response_settings(model)
    body: dict[str, Any] = {"model": model.name, "max_completion_tokens": model.max_output_tokens}
    if model.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if model.temperature is not None:
        body["temperature"] = model.temperature
    if model.reasoning_effort:
        body["reasoning_effort"] = model.reasoning_effort
    return body
