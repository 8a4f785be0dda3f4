"""A job's checkpoint without a job: activities are run on it as a worker would run them."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.checkpoints import Files, Root, open_checkpoints
from activities.job.conversation_calls import tool_call_id
from activities.job.snapshot import Snapshot
from activities.steps.gate_facts import gate_facts
from activities.steps.tool_call import tool_activities
from activities.toolkit.registry import REGISTRY, Tool
from config.agent_files import ENVIRONMENT, load_agent
from config.schema.agent import AgentConfig
from protocol.endings import FactsRequest, GateFacts, GateFactsReply
from protocol.job_state import JobState
from protocol.phase import Phase, PhaseKind
from protocol.requests import ToolReply, ToolRequest
from protocol.todo_list import Todo

JOB = "job"
AT = 1_700_000_000


def environment(
    *, local: bool = True, attempt: int = 1, activity_id: str = "7", at: float = AT
) -> Any:
    """Return the environment of the job's activities, scheduled `at` (epoch seconds)."""
    env = ActivityEnvironment()
    env.info = dataclasses.replace(
        env.info,
        workflow_id=JOB,
        activity_id=activity_id,
        attempt=attempt,
        is_local=local,
        scheduled_time=datetime.fromtimestamp(at, UTC),
    )
    return env


@lru_cache(maxsize=100)
def _loaded(agent: str, settings: str, _environment: tuple[str | None, ...]) -> AgentConfig:
    """Load once, as hundreds of tests begin with the same few agents."""
    return load_agent(agent, json.loads(settings))


@dataclass
class Standing:
    """A job at a checkpoint; each call goes on from there."""

    root: Root
    kind: PhaseKind = "strategic"
    agent: str = "generalist"
    set: dict[str, object] = field(default_factory=dict)
    commit: str = ""
    step: int = 0
    at: float = AT
    """When calls are scheduled, in epoch seconds."""

    @classmethod
    def begin(cls, path: Path, **details: Any) -> Standing:
        standing = cls(Root.open(path / "root", create=True), **details)
        todos = [Todo(id=n, content=f"Step {n}.") for n in (1, 2, 3)]
        purpose: Any = "work" if standing.kind == "tactical" else "transition"
        state = JobState(
            phase=Phase(number=2, kind=standing.kind, purpose=purpose, name="Look", todos=todos)
        )
        store = open_checkpoints(standing.root, JOB, create=True)
        config = _loaded(
            standing.agent, json.dumps(standing.set), tuple(map(os.getenv, ENVIRONMENT))
        )
        snapshot = Snapshot.start(store, config.model_copy(deep=True), state)
        for folder in ("archive", "output", "documents"):
            snapshot.files = snapshot.files.make_folder(folder)
        snapshot.files = snapshot.files.write("instructions.md", b"Write about tea.\n")
        snapshot.begin_conversation({"role": "system", "content": "s"})
        standing.commit = snapshot.save("begin", AT)
        return standing

    def open(self, commit: str | None = None) -> Snapshot:
        return Snapshot.load(open_checkpoints(self.root, JOB), commit or self.commit)

    def pin(self, config: AgentConfig) -> None:
        """Pin this configuration from here on."""
        current = self.open()
        fresh = Snapshot.start(current.checkpoints, config, current.state)
        fresh.files, fresh.conversation = current.files, current.conversation
        self.commit = fresh.save("with another configuration", AT)

    def put(self, change: Callable[[Files], Files]) -> None:
        """Change the files without the tools' knowledge."""
        snapshot = self.open()
        snapshot.files = change(snapshot.files)
        self.commit = snapshot.save("put", AT)

    def write(self, path: str, content: str | bytes) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        self.put(lambda files: files.write(path, data))

    def reply(self, *calls: tuple[str, str], said: str | None = None) -> None:
        """Add a model's reply with these calls and raw arguments as the newest."""
        self.step += 1
        snapshot = self.open()
        snapshot.state.step = self.step
        tool_calls = [
            {
                "id": tool_call_id(self.step, place),
                "type": "function",
                "function": {"name": name, "arguments": raw},
            }
            for place, (name, raw) in enumerate(calls)
        ]
        message = {"role": "assistant", "content": said, "tool_calls": tool_calls}
        snapshot.conversation = snapshot.conversation.append(message)
        self.commit = snapshot.save("reply", AT)

    def request(self, **details: Any) -> ToolRequest:
        base = {"root": self.root.id, "commit": self.commit, "at": AT, "step": self.step, "call": 0}
        return ToolRequest(**base | details)

    def run(self, name: str, request: ToolRequest, *, local: bool = True) -> ToolReply:
        """Run a tool's activity; the job does not move on."""
        env = environment(local=local, activity_id=f"{request.step}.{request.call}", at=self.at)
        reply: ToolReply = env.run(activities(self.root)[name], request)
        return reply

    def call(self, name: str, /, raw: str | None = None, **arguments: Any) -> str:
        """Call a tool; return its result as the model sees it."""
        self.reply((name, json.dumps(arguments) if raw is None else raw))
        reply = self.run(name, self.request())
        reply.model_dump_json()
        self.commit = reply.commit
        content: str = self.open().conversation.messages()[-1]["content"]
        assert reply.ok is not content.startswith("Error: ")
        return content

    def completion(self, **arguments: object) -> GateFacts:
        """Return the completion gate's facts about a call of `job_complete`."""
        claim = {"summary": "s", "deliverables": [], "confidence": 0.5, **arguments}
        self.reply(("job_complete", json.dumps(claim)))
        request = FactsRequest(root=self.root.id, commit=self.commit, at=AT, step=self.step, call=0)
        reply: GateFactsReply = environment(local=False).run(gate_facts(self.root), request)
        return reply.facts

    def text(self, path: str) -> str:
        return self.open().files.read(path).decode()

    def paths(self) -> list[str]:
        return [entry.path for entry in self.open().files.walk()]


def activities(root: Root) -> dict[str, Callable[[ToolRequest], ToolReply]]:
    """Return the tool activities by name."""
    return _made(root, tuple(REGISTRY.values()))


@lru_cache(maxsize=10)
def _made(root: Root, tools: tuple[Tool, ...]) -> dict[str, Callable[[ToolRequest], ToolReply]]:
    """Make them once for the many calls of a test."""
    names = [*(entry.name for entry in tools), "deny_call"]
    return dict(zip(names, tool_activities(root), strict=True))
