"""Runs a helper: a separate conversation that reads for the agent and gives one answer.

One activity is one reply of the helper plus the results of its look-ups. The conversation is stored
as a tree; the workflow passes the tree's id from one activity to the next, and the checkpoint keeps
it with the answer. A helper can only read; what it fetches from the web stays in its own tree.
"""

import asyncio
from dataclasses import replace
from functools import partial

from temporalio import activity

from activities.checkpoints import Files, FilesError, PathRefused, Root
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry
from activities.guards.call_guards import CallGuards
from activities.job.activity_context import open_activity_snapshot
from activities.job.conversation import Conversation
from activities.job.conversation_calls import ERROR_PREFIX, tool_result_message, truncate_result
from activities.job.snapshot import Snapshot
from activities.model.client import ModelQuery
from activities.model.prices import priced_usage
from activities.model.prompt import conversation_prompt_body
from activities.model.providers import provider_cache_key
from activities.model.reply_message import reply_message, reply_provider_data
from activities.model.reply_stream import StreamedReply
from activities.runtime.activity_info import activity_effect_key, activity_job_id
from activities.steps.root_activity import ModelActivity, async_step
from activities.text.tokens import count_tokens, token_encoding_name
from activities.toolkit.agent_tools import agent_tools
from activities.toolkit.registry import Tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError
from activities.tools.delegate_tool import CONVERSATION, delegate_call_task, is_delegated_tool
from protocol.helpers import MAX_HELPER_CALLS, HelperReply, HelperRequest
from protocol.usage import Usage

FILES = "files"
SHARE = 0.75
"""Share of the agent's compaction limit that a helper's conversation may use."""
LAST = "This is your last reply: answer the task with what you know, in plain text."
CUT = (
    "Your answer was cut at the output limit, so that its end is missing. Give the whole of it in "
    "fewer words, or read on with a tool."
)
CUT_AT_LAST = "[cut here at the output limit: the end of this answer is missing]"
SILENT = "Answer the task in plain text, or read on with a tool."
NO_ROOM = "Not read: there is no room left in this conversation. Answer with what you know."
TOO_MANY = f"Not run: at most {MAX_HELPER_CALLS} calls of a reply are carried out."
NEEDS_PERSON = "It needs a person's approval, which only the agent can get: leave it, and say so."


class AskHelperActivity(ModelActivity):
    @activity.defn(name="ask_helper")
    async def ask_helper(self, request: HelperRequest) -> HelperReply:
        async with async_step():
            if not await asyncio.to_thread(self._has_helper_task, request):
                return HelperReply(usage=Usage(), done=True)
            return await self._model_client.request_reply(
                partial(self._helper_question, request), partial(self._after, request)
            )

    def _has_helper_task(self, request: HelperRequest) -> bool:
        """Return whether the call's arguments are valid; else the tool itself says why not."""
        snapshot = open_activity_snapshot(self._root, request)
        try:
            delegate_call_task(
                snapshot.files, snapshot.tool_call(request.call)["function"]["arguments"]
            )
        except ToolError:
            return False
        return True

    def _helper_question(self, request: HelperRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        conversation, _ = _open_helper_conversation(snapshot, request)
        tools, key = (
            helper_tools(snapshot),
            provider_cache_key(activity_job_id(), f"helper {request.call}"),
        )
        return ModelQuery(
            snapshot.config.model_chain(snapshot.state.phase.kind),
            lambda model: conversation_prompt_body(model, tools, conversation, key),
        )

    def _after(self, request: HelperRequest, streamed: StreamedReply) -> HelperReply:
        snapshot = open_activity_snapshot(self._root, request)
        conversation, files = _open_helper_conversation(snapshot, request)
        number, is_cut = request.number + 1, streamed.finish == "length"
        if is_cut and request.last and streamed.text.strip():
            streamed.text = f"{streamed.text}\n\n{CUT_AT_LAST}"
        conversation = conversation.append_reply(
            reply_message(number, streamed), reply_provider_data(number, streamed)
        )
        reply = HelperReply(usage=priced_usage(streamed, snapshot.config))
        reply.usage.sent_calls = len(streamed.calls)
        is_answer = bool(streamed.text.strip()) and not streamed.calls and not is_cut
        reply.done = request.last or is_answer
        if not reply.done:
            look_up = _HelperLookUp(self._root, snapshot, conversation, files)
            results = [look_up.run(*call) for call in streamed.calls[:MAX_HELPER_CALLS]]
            reply.usage.tool_calls = len(results)
            reply.usage.failed_calls = sum(text.startswith(ERROR_PREFIX) for text in results)
            beyond = len(streamed.calls) - len(results)
            reply.usage.refused_calls = beyond
            results += [f"{ERROR_PREFIX}{TOO_MANY}"] * beyond
            conversation = conversation.append(
                *(tool_result_message(number, place, text) for place, text in enumerate(results)),
                *([] if results else [{"role": "user", "content": CUT if is_cut else SILENT}]),
            )
            files, reply.full = look_up.files, look_up.is_full
        reply.context = _count_helper_tokens(snapshot, conversation)
        reply.tree = _store_helper_tree(conversation, files)
        return reply


class _HelperLookUp:
    def __init__(
        self, root: Root, snapshot: Snapshot, conversation: Conversation, files: Files
    ) -> None:
        self._tools = {entry.name: entry for entry in helper_tools(snapshot)}
        self._guards = CallGuards(root, snapshot)
        self._snapshot = snapshot
        kind, config = snapshot.state.phase.kind, snapshot.config
        limit = config.context.compaction_limit(config.model_for(kind))
        self._room = int(SHARE * limit) - _count_helper_tokens(snapshot, conversation)
        self._encoding = token_encoding_name(config.model_for(kind).name)
        self._context = replace(
            ToolContext.of(snapshot, root, activity_effect_key()),
            files=files,
            reads=Files.empty(files.store),
            conversation=conversation,
        )

    @property
    def files(self) -> Files:
        return self._context.files

    @property
    def is_full(self) -> bool:
        return self._room <= 0

    def run(self, name: str, raw: str) -> str:
        if self.is_full:
            return f"{ERROR_PREFIX}{NO_ROOM}"
        try:
            text = self._run_allowed_call(name, raw)
        except (ToolError, FilesError, PathRefused, DependencyUnavailable) as problem:
            text = f"{ERROR_PREFIX}{problem}"
        text = truncate_result(text, self._snapshot.config.limits.result_characters)
        tokens = count_tokens(text, self._encoding)
        self._room -= tokens
        return f"{ERROR_PREFIX}{NO_ROOM}" if self.is_full else text

    def _run_allowed_call(self, name: str, raw: str) -> str:
        if (entry := self._tools.get(name)) is None:
            raise ToolError(f"There is no tool {name!r}. The tools are: {', '.join(self._tools)}.")
        arguments = entry.load_arguments(raw)
        entry.check_arguments(arguments)
        allowed = self._guards.judge_call(name, arguments)
        if allowed.asks:
            raise ToolError(NEEDS_PERSON)
        if allowed.guard:
            raise ToolError(f"Refused by {allowed.guard}: {allowed.denied}")
        return entry.run(self._context, allowed.arguments)


def helper_tools(snapshot: Snapshot) -> list[Tool]:
    """Return the agent's tools for this phase that only read, including those of the web."""
    state = snapshot.state
    return [
        entry
        for entry in agent_tools(snapshot.config)
        if is_delegated_tool(entry)
        and state.phase.kind in entry.phases
        and entry.name not in state.unused_tools
    ]


def _open_helper_conversation(
    snapshot: Snapshot, request: HelperRequest
) -> tuple[Conversation, Files]:
    if request.tree:
        tree = snapshot.checkpoints.files(request.tree)
        conversation = Conversation(tree.subfolder(CONVERSATION))
        files = Files(tree.store, tree.subfolder(FILES).id, limit=snapshot.files.limit)
    else:
        task = delegate_call_task(
            snapshot.files, snapshot.tool_call(request.call)["function"]["arguments"]
        )
        conversation = Conversation(Files.empty(snapshot.checkpoints.store)).append(
            {"role": "system", "content": snapshot.config.templates["helper"]},
            {"role": "user", "content": task},
        )
        files = snapshot.files
    if request.last:
        conversation = conversation.append({"role": "user", "content": LAST})
    return conversation, files


def _store_helper_tree(conversation: Conversation, files: Files) -> str:
    """Store both in one tree and return its hex id, before the workflow refers to it."""
    tree = Files.empty(files.store)
    for name, part in ((CONVERSATION, conversation.files), (FILES, files)):
        tree = tree.with_tree_entry((name,), TreeEntry(FOLDER, bytes.fromhex(part.id)))
    tree.store.flush()
    return tree.id


def _count_helper_tokens(snapshot: Snapshot, conversation: Conversation) -> int:
    encoding = token_encoding_name(snapshot.config.model_for(snapshot.state.phase.kind).name)
    tools = sum(count_tokens(str(entry.schema), encoding) for entry in helper_tools(snapshot))
    return tools + conversation.count_tokens(encoding)
