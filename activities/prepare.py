"""The start of a job: everything checked before anything is made."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from temporalio import activity
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.service import RPCError

from activities.checkpoints import Files, FilesError, PathRefused, Root, open_checkpoints
from activities.failures import typed
from activities.folder import settle
from activities.guards.routes import guarded_route
from activities.heartbeats import heartbeats
from activities.inputs import Document, read_documents, text_beside
from activities.model.endpoint import chosen_name
from activities.model.prices import check_prices, dearest
from activities.model.prompt import context_tokens
from activities.opening import attempt_key, job_id, scheduled_at
from activities.orientation import first_messages
from activities.phases import STRATEGIC_NAMES, predefined_todos
from activities.plan import listed_under
from activities.snapshot import Snapshot
from activities.tools import Tool
from activities.tools.offering import tools_of
from config.loader import load_agent, render
from config.schema import AgentConfig, Problem
from protocol.requests import JobLimits, Prepared, PrepareRequest
from protocol.search_attributes import NAMES
from protocol.state import JobState, Phase, PhaseKind, ScopeItem

TITLE_CHARACTERS = 80
KINDS: tuple[PhaseKind, ...] = ("strategic", "tactical")
NEEDED = ("todo_complete", "todo_write", "job_complete")


class Preparation:
    """The `prepare` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="prepare")
    async def prepare(self, request: PrepareRequest) -> Prepared:
        """Resolve and pin the agent's configuration, take the documents in, make phase 1."""
        with typed():
            async with heartbeats():
                registered = await _registered_attributes()
                return await asyncio.to_thread(self._prepare, request, registered)

    def _prepare(self, request: PrepareRequest, registered: list[str]) -> Prepared:
        config = load_agent(request.agent, request.set)
        for model in config.models:
            model.name = chosen_name(model)
        check_prices(config)
        tools = _tools(config)
        instructions = render(config.instructions_template, instructions=request.instructions)
        if not instructions.strip():
            raise Problem(
                f"agent {config.name} has no instructions of its own: give some in `instructions`"
            )
        documents = read_documents(self._root, request.documents, config.limits.file_bytes)
        if config.needs_documents and not documents:
            raise Problem(
                f"agent {config.name} works on documents: name at least one in `documents`"
            )

        checkpoints = open_checkpoints(self._root, job_id(), create=True)
        self._claim(checkpoints.path, request.chain)
        state = _first_state(config, instructions, request.items)
        snapshot = Snapshot.start(checkpoints, config, state)
        try:
            snapshot.files = _first_files(snapshot.files, config, instructions, documents, tools)
        except (FilesError, PathRefused) as error:
            raise Problem(f"agent {config.name}: the workspace cannot be made. {error}") from None
        snapshot.begin_conversation(*first_messages(snapshot, "", ""))
        at = scheduled_at()
        commit = snapshot.save(f"phase 1 begins: {state.phase.name}", at)
        settle(self._root, snapshot, "phase/0001", attempt_key())
        return Prepared(
            commit=commit,
            at=at,
            root=self._root.id,
            agent=config.name,
            model=config.model.name,
            title=_title(request.instructions or instructions),
            tree=checkpoints.tree_of(commit),
            state=state,
            context=context_tokens(snapshot),
            tools=[guarded_route(config, entry) for entry in tools],
            limits=JobLimits.model_validate(
                {
                    name: value
                    for name, value in config.limits.model_dump().items()
                    if name in JobLimits.model_fields
                }
                | {
                    "model_seconds": max(model.timeout_seconds for model in config.models),
                    "output_tokens": max(model.max_output_tokens for model in config.models),
                    "price": dearest(config),
                    "context_tokens": {
                        kind: min(map(config.context.limit, config.chain(kind))) for kind in KINDS
                    },
                }
            ),
            search_attributes=registered,
        )

    def _claim(self, repository: Path, chain: str) -> None:
        """A workspace belongs to one job; another of the same id would write into its history."""
        mark = repository / "job.json"
        # A draft and a link, so that a mark is there whole or not at all, and only one is made.
        draft = repository / f"job.json.{attempt_key()}"
        draft.write_text(json.dumps({"chain": chain}))
        try:
            mark.hardlink_to(draft)
        except FileExistsError:
            if json.loads(mark.read_text())["chain"] != chain:
                raise Problem(
                    f"a job with the id {job_id()} has already run on this workspaces root; "
                    "start this one under another id"
                ) from None
        finally:
            draft.unlink()


def _tools(config: AgentConfig) -> list[Tool]:
    try:
        tools = tools_of(config)
    except KeyError as unknown:
        raise Problem(
            f"agent {config.name}: tools: {unknown} is neither a tool nor a group of tools"
        ) from None
    names = {entry.name for entry in tools}
    if lacking := [name for name in NEEDED if name not in names]:
        raise Problem(
            f"agent {config.name}: tools: without {', '.join(lacking)} no job can end; add the "
            "groups todos and job"
        )
    return tools


def _first_state(config: AgentConfig, instructions: str, items: list[str]) -> JobState:
    scope = items or listed_under(instructions, "Scope")
    return JobState(
        phase=Phase(
            number=1,
            kind="strategic",
            purpose="bootstrap",
            name=STRATEGIC_NAMES["bootstrap"],
            todos=predefined_todos(config, "bootstrap", instructions),
        ),
        scope=[ScopeItem(id=f"S{n}", text=text[:500]) for n, text in enumerate(scope, 1)],
    )


def _first_files(
    files: Files,
    config: AgentConfig,
    instructions: str,
    documents: list[Document],
    tools: list[Tool],
) -> Files:
    for folder in config.folders:
        files = files.make_folder(folder)
    files = files.write("instructions.md", instructions.encode())
    for document in documents:
        files = files.write(f"documents/{document.name}", document.data)
        files = files.write(f"documents/{text_beside(document.name)}", document.text.encode())
    for entry in tools:
        files = files.write(f"tools/{entry.name}.md", entry.page.encode())
    return files


def _title(text: str) -> str:
    """The first line with words, bounded."""
    lines = [line.strip("# ").strip() for line in text.splitlines()]
    first = next((line for line in lines if line), "")
    return first if len(first) <= TITLE_CHARACTERS else f"{first[: TITLE_CHARACTERS - 1]}…"


async def _registered_attributes() -> list[str]:
    """Those of our search attributes that the server knows; setting another would be an error."""
    client = activity.client()
    try:
        answer = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError:
        return []
    return [name for name in NAMES if name in answer.custom_attributes]
