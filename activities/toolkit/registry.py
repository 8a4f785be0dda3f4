"""The registry: the only list of tools.

A tool is one function. Its signature is the argument schema, the first line of its docstring the
description, the rest its documentation. `@tool` declares what the system must know to run it
safely.
"""

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from pydantic import ConfigDict, create_model

from activities.job.conversation_calls import CUT, MALFORMED, MIXED_UP
from activities.text.safe_text import replace_surrogates
from activities.toolkit.arguments import (
    Arguments,
    InvalidArguments,
    ModelArguments,
    open_json_texts,
)
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from config.schema.agent import ConfigError
from protocol.errors import Invalid
from protocol.phase import PhaseKind
from protocol.tools import ToolRoute

Effect = Literal["reads", "writes", "outside"]
_EFFECTS: dict[Effect, str] = {
    "reads": "only reads the workspace",
    "writes": "changes the workspace and nothing else",
    "outside": "reaches outside the workspace",
}
ToolFunction = Callable[..., str]
F = TypeVar("F", bound=ToolFunction)


@dataclass(frozen=True)
class Tool:
    name: str
    group: str
    summary: str
    documentation: str
    arguments: Arguments
    function: ToolFunction
    phases: tuple[PhaseKind, ...]
    effect: Effect
    local: bool
    seconds: int
    polling: bool
    at_most_once: bool
    owns: tuple[str, ...]
    needs: str = ""
    looks: bool = False

    @property
    def has_effect(self) -> bool:
        """Whether a call that succeeds is work, even if it changes no file."""
        return self.effect == "outside" and not self.looks

    @property
    def route(self) -> ToolRoute:
        return ToolRoute(
            name=self.name,
            phases=list(self.phases),
            local=self.local,
            seconds=self.seconds,
            polling=self.polling,
        )

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.summary,
                "parameters": self.arguments.schema,
            },
        }

    def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        answer = self.function(context, **self.check_arguments(arguments))
        if not isinstance(answer, str):
            raise TypeError(f"{self.name} returned {type(answer).__name__}; a tool returns text")
        return answer

    @property
    def advice_when_cut(self) -> str:
        """What to do after a call was cut at the limit of a reply."""
        if self.name in ("write_file", "append_file"):
            return (
                "Do it in smaller pieces, such as write_file for the first part and append_file "
                "for each further one."
            )
        return f"Say less in one call; its form is {self.signature}."

    def parse(self, raw_arguments: str) -> dict[str, Any]:
        return self.check_arguments(self.load_arguments(raw_arguments))

    def load_arguments(self, raw_arguments: str) -> dict[str, Any]:
        try:
            arguments = json.loads(raw_arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise ToolError(
                f"{self.name}: the arguments are not valid JSON ({error}). "
                f"Send one JSON object of the form {self.signature}."
            ) from None
        if isinstance(arguments, dict) and CUT in arguments:
            raise ToolError(
                f"{self.name}: the reply reached the output limit before the arguments were "
                f"complete. {self.advice_when_cut}"
            )
        if isinstance(arguments, dict) and MIXED_UP in arguments:
            raise ToolError(
                f"{self.name}: the endpoint sent the calls of this reply in pieces that cannot be "
                "told apart, so none of them was run. Make one call at a time."
            )
        if isinstance(arguments, dict) and MALFORMED in arguments:
            raise ToolError(
                f"{self.name}: the arguments are not valid JSON (one object, whole characters): "
                f"{str(arguments[MALFORMED])[:200]}. "
                f"Send one JSON object of the form {self.signature}."
            )
        if not isinstance(arguments, dict):
            raise ToolError(
                f"{self.name}: the arguments must be one JSON object of the form {self.signature}, "
                f"not {type(arguments).__name__}."
            )
        return open_json_texts(arguments, self.arguments.schema)

    def check_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check arguments against the schema; the ToolError names the wrong field."""
        if replace_surrogates(text := json.dumps(arguments, ensure_ascii=False)) != text:
            raise ToolError(
                f"{self.name}: the arguments hold half of a character (a lone surrogate such as "
                "\\ud83d). Send whole characters."
            )
        try:
            return self.arguments.check(arguments)
        except InvalidArguments as error:
            raise ToolError(f"{self.name}: {error}. Expected {self.signature}.") from None

    @property
    def page(self) -> str:
        where = f"In {' and '.join(self.phases)} phases. It {_EFFECTS[self.effect]}."
        argument_text = self.argument_lines
        parts = [f"# {self.signature}", self.summary, self.documentation, argument_text, where]
        return "\n\n".join(part for part in parts if part) + "\n"

    @property
    def argument_lines(self) -> str:
        lines = []
        for argument in self.arguments.listed:
            known = [*([] if argument.required else ["optional"]), *argument.facts]
            about = f" ({'; '.join(known)})" if known else ""
            description = f": {argument.description}" if argument.description else ""
            lines.append(f"- `{argument.name}`{about}{description}")
        return "\n".join(lines)

    @property
    def signature(self) -> str:
        """Call form for messages, such as `read_file(path, offset?, limit?)`."""
        listed = self.arguments.listed
        names = [argument.name + ("" if argument.required else "?") for argument in listed]
        return f"{self.name}({', '.join(names)})"


REGISTRY: dict[str, Tool] = {}
STEP_ACTIVITIES = frozenset({
    "ask_helper", "cancel_start", "check_approval", "close_job", "close_project", "compact",
    "deny_call", "digest", "find_checkpoint", "forget", "gate_facts", "judge_ending",
    "judge_phase", "learn", "merge_work", "model_call", "prepare", "prepare_project",
    "publish_branch", "publish_project", "reflect", "review_job", "send_notification",
    "set_model", "show_call", "show_folder", "store_traces", "take_folder", "take_work", "tell",
    "transition", "watch_retries", "watch_trial", "write_error", "write_project_state",
})  # fmt: skip
"""Names of the other activities: a tool is an activity of its name."""


def tool(
    group: str,
    *,
    effect: Effect,
    phases: tuple[PhaseKind, ...] = ("strategic", "tactical"),
    local: bool = True,
    seconds: int = 0,
    polling: bool = False,
    at_most_once: bool = False,
    owns: tuple[str, ...] = (),
    needs: str = "",
    looks: bool = False,
) -> Callable[[F], F]:
    """Register a function as a tool.

    Args:
        group: Name by which agents can select related tools together.
        effect: `reads`, `writes` (the workspace) or `outside` (anything else).
        local: Run as a local activity. Only for work on the checkpoint whose time is bounded by
            the size of one file; tools that parse, wait or reach outside run as regular ones.
        seconds: Time limit of an attempt; by default 10 for local tools and 60 for others.
        polling: It polls something that progresses by itself, so a repeated call is no repetition
            while its result changes.
        at_most_once: Its outside effects cannot be recognised by `ToolContext.key`: an interrupted
            call is not repeated but reported as "may have happened".
        owns: Paths that only this tool may write; a trailing `/` includes everything below.
        needs: The tool whose results it needs; an agent without that one gets it only by name.
        looks: It reaches outside only to read there.

    Raises ConfigError.
    """

    def register_function(function: F) -> F:
        REGISTRY[function.__name__] = _declared_tool(
            function,
            group=group,
            phases=phases,
            effect=effect,
            local=local,
            seconds=seconds or (10 if local else 60),
            polling=polling,
            at_most_once=at_most_once,
            owns=owns,
            needs=needs,
            looks=looks,
        )
        return function

    return register_function


def _declared_tool(function: ToolFunction, **declared: Any) -> Tool:
    summary, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
    reaches = declared["at_most_once"] or declared["effect"] == "outside"
    wrong = _tool_registration_problem(function, declared["effect"], declared["phases"])
    if not (wrong or summary):
        wrong = "has no docstring, whose first line the model reads"
    if not wrong and declared["local"] and reaches:
        wrong = "reaches outside: it needs local=False"
    if wrong:
        raise ConfigError(f"{_tool_definition_place(function)}: {wrong}")
    return Tool(
        name=function.__name__,
        summary=summary,
        documentation=rest.strip(),
        arguments=_registered_tool_arguments(function),
        function=function,
        **declared,
    )


def _tool_definition_place(function: ToolFunction) -> str:
    return f"{inspect.getfile(function)}: tool {function.__name__}"


def _tool_registration_problem(function: ToolFunction, effect: str, phases: Collection[str]) -> str:
    """Return a problem that would otherwise show only when a job uses the tool; empty if none."""
    if effect not in _EFFECTS:
        return f"effect: found {effect!r}, expected one of {', '.join(_EFFECTS)}"
    if not phases or isinstance(phases, str) or not set(phases) <= set(get_args(PhaseKind)):
        return f'phases: found {phases!r}, expected some of ("strategic", "tactical")'
    if inspect.iscoroutinefunction(function):
        return "is async, and nobody would await it; write it with def"
    if (other := REGISTRY.get(function.__name__)) and (
        inspect.getfile(other.function) != inspect.getfile(function)
    ):
        return f"the name is taken ({_tool_definition_place(other.function)}); choose another one"
    if function.__name__ in STEP_ACTIVITIES:
        return "the name is taken by an activity of the system; choose another one"
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name != "context":
        return "the first parameter is to be context: ToolContext"
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return f"{parameter}: the model gives arguments by name; declare each"
        if parameter.name.startswith("_"):
            return f"{parameter.name}: the name of an argument begins with a letter"
        if parameter.annotation is parameter.empty:
            return f"{parameter.name}: has no type; write it as {parameter.name}: str"
    return ""


def _registered_tool_arguments(function: ToolFunction) -> Arguments:
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    fields: dict[str, Any] = {
        p.name: (p.annotation, ... if p.default is p.empty else p.default) for p in parameters
    }
    return ModelArguments(
        create_model(
            f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields
        )
    )


class UnknownTool(Invalid):
    def __init__(self, name: str) -> None:
        # A job may continue on a worker with other code than the one it began on.
        super().__init__(f"this worker has no tool or group {name!r}: start one that has it")
        self.name = name


def select_registered_tools(names: list[str], among: Mapping[str, Tool] = REGISTRY) -> list[Tool]:
    """Return the tools of these names or groups, in the order of `among`. Raises UnknownTool."""
    groups = {entry.group for entry in among.values()}
    for name in names:
        if name not in groups and name not in among:
            raise UnknownTool(name)
    return [entry for entry in among.values() if entry.group in names or entry.name in names]
