"""Calls in turns: the server may first ask a person something, or work on a task for days.

Each turn is an activity. Between two turns neither the worker nor the connection is held. The
workflow stores the position of the call; the job's ledger stores what the server passed along.

A server that works on files has one turn, in a private folder and a process of its own.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
)
from pydantic import TypeAdapter

from activities.commands.private_folder import private_folder
from activities.mcp.call_errors import (
    ServerCallFailed,
    ServerUnavailable,
    convert_call_errors,
    explain_server_error,
    make_result_paths_relative,
    shorten_call_error_paths,
)
from activities.mcp.elicitation import Elicited, Misread, elicited_question
from activities.mcp.raw_answers import salvage_raw_answer
from activities.mcp.results import put_result_images, result_text, take_result_images
from activities.mcp.server_connection import Called, Turn
from activities.mcp.servers import BEGUN, worker_mcp_servers
from activities.mcp.tasks import (
    CreatedTask,
    TaskState,
    is_task_overdue,
    task_status_text,
    until_next_poll,
)
from activities.redaction.credentials import hide_credentials
from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError, Unfinished
from config.schema.mcp_servers import DeclaredTool
from protocol.requests import Pending
from protocol.short_text import one_line

FORGOTTEN = (
    "{server} does not know its task {task} any more ({why}). What the call was to do may have "
    "happened, wholly or in part, or not. Check what is there before you call it again."
)
TOO_LONG = (
    "{server} worked on its task for more than {seconds:,} s (mcp.{server}.task_seconds) and was "
    "asked to stop. What it has done so far may stay: check before you call it again."
)
STOPPED = (
    "{server} has stopped the task{said}. What it did until then may stay: check before you call "
    "it again."
)
NOT_ANSWERED = "{server} wants {what} of its client, which it does not get. Do it another way."
MOST_ROUNDS = 10
PAUSE = 0.2
"""Seconds before a server that only wants to be called again is called again."""
REQUESTS: TypeAdapter[InputRequests] = TypeAdapter(InputRequests)


def call_in_turns(declared: DeclaredTool, context: ToolContext, arguments: dict[str, Any]) -> str:
    """Return the result of a new or continued call.

    Raises:
        ToolError: the server reported an error, or was lost during the call.
        DependencyUnavailable: the server is not there, and nothing was done.
        Unfinished: there is no result yet.
    """
    call = _CallTurn(declared, context)
    if context.pending is None:
        return call.begin(arguments)
    return call.poll() if context.pending.task else call.go_on()


class _CallTurn:
    """One call at one of its turns."""

    def __init__(self, declared: DeclaredTool, context: ToolContext) -> None:
        self._declared = declared
        self._context = context
        self._name = declared.server
        self._server = context.config.mcp[declared.server]

    def begin(self, arguments: dict[str, Any]) -> str:
        pending = Pending(key=self._context.key, turn=0, begun=time.time(), server=self._name)
        with convert_call_errors(self._declared):
            return self._settle(self._send(arguments, BEGUN), pending, arguments)

    def go_on(self) -> str:
        """Give the server the answers to the questions it asked before working."""
        pending, state = self._pending, self._context.held
        questions = self._questions(REQUESTS.validate_python(state["requests"]))
        answers, arguments = _answers_to_server_questions(pending, questions), state["arguments"]
        with convert_call_errors(self._declared):
            try:
                result = self._send(arguments, Turn({**answers}, state["state"]))
            except ServerCallFailed as failed:
                if failed.code != INVALID_PARAMS:
                    raise
                # A question may expire within minutes or with the server's key. Nothing was done
                # then, so the call is made again and gets the answer at once.
                result = self._send(arguments, BEGUN)
                if (
                    isinstance(result, InputRequiredResult)
                    and self._questions(result.input_requests) == questions
                ):
                    result = self._send(arguments, Turn({**answers}, result.request_state))
            return self._settle(result, pending, arguments)

    def poll(self) -> str:
        """Poll the task, and answer its questions."""
        pending = self._pending
        try:
            if self._context.gives_up:
                self._ask("tasks/cancel")
                raise Unfinished(pending, again=True)
            return self._state(self._ask("tasks/get"))
        except ServerUnavailable as error:
            raise DependencyUnavailable(str(error)) from error
        except ServerCallFailed as failed:
            why = one_line(redact(str(failed)), 200).rstrip(".")
            message = FORGOTTEN.format(server=self._name, task=pending.task, why=why)
            raise ToolError(message) from failed

    def _state(self, state: TaskState) -> str:
        """Return the result of a task that has ended. Raises Unfinished while it runs."""
        pending, now, remark = self._pending, time.time(), task_status_text(state)
        match state.status:
            case "completed":
                return self._result(state.result or {})
            case "failed":
                why = str((state.error or {}).get("message") or remark or "it does not say why")
                raise ToolError(
                    f"{self._name} failed at it: {redact(replace_surrogates(why))[:2000]}"
                )
            case "cancelled":
                remark = f" ({remark})" if remark else ""
                raise ToolError(STOPPED.format(server=self._name, said=remark))
            case "input_required":
                pending = self._answer(self._questions(state.input_requests))
        if is_task_overdue(self._server, pending, now):
            self._give_up()
        going = {"says": remark, "seconds": until_next_poll(state, pending, now)}
        raise Unfinished(pending.model_copy(update=going), again=True)

    @property
    def _pending(self) -> Pending:
        assert self._context.pending
        return self._context.pending

    def _send(self, arguments: dict[str, Any], turn: Turn) -> Called:
        """Send one message, or several while the server only wants to be called again."""
        for _ in range(MOST_ROUNDS):
            result = worker_mcp_servers().call_tool(
                self._name,
                self._server,
                self._declared.tool,
                arguments,
                key=self._context.key,
                repeatable=self._declared.effect != "once",
                turn=turn,
            )
            if not isinstance(result, InputRequiredResult) or result.input_requests:
                return result
            time.sleep(PAUSE)
            turn = Turn(None, result.request_state)
        raise ServerCallFailed(f"{self._name} put the call off {MOST_ROUNDS} times")

    def _ask(self, method: str, answers: dict[str, ElicitResult] | None = None) -> Any:
        return worker_mcp_servers().ask_about_task(
            self._name,
            self._server,
            method,
            self._pending.task,
            responses={**answers} if answers else None,
        )

    def _settle(self, result: Called, pending: Pending, arguments: dict[str, Any]) -> str:
        """Return the text of a result. Raises Unfinished if it is none yet."""
        if isinstance(result, CallToolResult):
            return self._text(result)
        pending = _close_server_question(pending).model_copy(update={"turn": pending.turn + 1})
        if isinstance(result, InputRequiredResult):
            requests = result.input_requests or {}
            [first, *_] = self._questions(requests)
            state = {
                "requests": REQUESTS.dump_python(
                    requests, mode="json", by_alias=True, exclude_none=True
                ),
                "state": result.request_state,
                "arguments": arguments,
            }
            raise Unfinished(_open_server_question(pending, first), state)
        assert isinstance(result, CreatedTask)
        going = {
            "task": result.task_id,
            "says": task_status_text(result),
            "seconds": until_next_poll(result, pending, pending.begun),
        }
        raise Unfinished(pending.model_copy(update=going))

    def _questions(self, requests: InputRequests | None) -> list[Elicited]:
        try:
            return elicited_question(requests)
        except ValueError as error:
            what = NOT_ANSWERED.format(server=self._name, what=error)
            raise ToolError(what) from None

    def _answer(self, questions: Sequence[Elicited]) -> Pending:
        """Give people's answers to the server; raises Unfinished if some are still missing.

        The answers are kept: until the server has taken them it repeats its questions.
        """
        answers = _answers_to_server_questions(self._pending, questions)
        # If it does not want them, it has gone on meanwhile, as the next poll shows.
        with suppress(ServerCallFailed):
            self._ask("tasks/update", answers)
        return _close_server_question(self._pending).model_copy(
            update={"answers": _dump_turn_answers(answers)}
        )

    def _result(self, sent: dict[str, Any]) -> str:
        """Return the task's result as text, including what is odd about it."""
        try:
            result = CallToolResult.model_validate(sent)
            if not result.is_error:
                worker_mcp_servers().check_result(
                    self._name, self._server, self._declared.tool, result
                )
        except ServerUnavailable:
            # The result is complete even if the server ends before it declares its schema.
            result = CallToolResult.model_validate(sent)
        except Exception as error:
            odd = salvage_raw_answer(sent, error)
            if odd is None:
                raise ToolError(f"{self._name} ended its task without a result.") from error
            result = odd
        return self._text(result)

    def _text(self, result: CallToolResult) -> str:
        """Return the result as text, its images as files. Raises ToolError for an error."""
        text, images = _read_result(self._declared, self._context, result)
        self._context.files = put_result_images(self._context.files, images)
        return text

    def _give_up(self) -> None:
        # A cancellation is only a request in any case.
        with suppress(ServerUnavailable, ServerCallFailed):
            self._ask("tasks/cancel")
        raise ToolError(TOO_LONG.format(server=self._name, seconds=self._server.task_seconds))


def _answers_to_server_questions(
    pending: Pending, questions: Sequence[Elicited]
) -> dict[str, ElicitResult]:
    """Return the answers to all questions. Raises Unfinished for the first that has none."""
    answers = {key: ElicitResult.model_validate(answer) for key, answer in pending.answers.items()}
    current = next((each for each in questions if each.key == pending.asks), None)
    if current and pending.answer is not None:
        try:
            answer = current.read_answer(pending.answer) if pending.answer else current.lapsed()
        except Misread as error:
            question = f"{current.question} ({pending.answer[:100]!r} does not fit: {error}.)"
            again = {"answer": None, "question": question}
            raise Unfinished(pending.model_copy(update=again), again=True) from None
        answers[current.key] = answer
    unanswered = [each for each in questions if each.key not in answers]
    if unanswered:
        asking = _open_server_question(_close_server_question(pending), unanswered[0])
        raise Unfinished(
            asking.model_copy(update={"answers": _dump_turn_answers(answers)}), again=True
        )
    return {each.key: answers[each.key] for each in questions}


def _dump_turn_answers(answers: dict[str, ElicitResult]) -> dict[str, dict[str, Any]]:
    return {
        key: answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, answer in answers.items()
    }


def _open_server_question(pending: Pending, question: Elicited) -> Pending:
    return pending.model_copy(
        update={
            "asks": question.key,
            "question": hide_credentials(question.question),
            "default": hide_credentials(question.default),
            "seconds": 0.0,
        }
    )


def _close_server_question(pending: Pending) -> Pending:
    update: dict[str, Any] = {
        "asks": "",
        "question": "",
        "default": "",
        "answer": None,
        "answers": {},
    }
    return pending.model_copy(update=update)


def call_mcp_tool(declared: DeclaredTool, context: ToolContext, arguments: dict[str, Any]) -> str:
    """Return the result as text; store changed files of a server that works on files in `context`.

    Raises:
        ToolError: the server reported an error, or was lost during the call.
        DependencyUnavailable: the server is not there, and nothing was done.
        Unfinished: it asks something, or works on a task.
    """
    if context.config.mcp[declared.server].cwd is None:
        return call_in_turns(declared, context, arguments)
    with private_folder(context.files, context.root, context.job) as private:
        text, images = _send_call(declared, context, arguments, private.path)
        # The server has ended, so nothing writes there any more.
        after = private.read_back(hide_credentials=True)
        context.files = put_result_images(after, images)
    return "\n".join([text, *private.notes])


def _send_call(
    declared: DeclaredTool, context: ToolContext, arguments: dict[str, Any], folder: Path
) -> tuple[str, dict[str, bytes]]:
    """Return the result as text, and its images."""
    with convert_call_errors(declared, folder):
        result = worker_mcp_servers().call_tool(
            declared.server,
            context.config.mcp[declared.server],
            declared.tool,
            arguments,
            key=context.key,
            repeatable=declared.effect != "once",
            folder=folder,
        )
    if not isinstance(result, CallToolResult):
        raise ToolError(f"{declared.server} asks something, and works on files: it cannot wait.")
    return _read_result(declared, context, result, folder)


def _read_result(
    declared: DeclaredTool, context: ToolContext, result: CallToolResult, folder: Path | None = None
) -> tuple[str, dict[str, bytes]]:
    """Return the text for the model, and its images. Raises ToolError for an error."""
    result, images = take_result_images(result, context.files.limit)
    text = result_text(result)
    if result.is_error:
        raise ToolError(explain_server_error(declared, shorten_call_error_paths(text, folder)))
    return make_result_paths_relative(text, folder), images
