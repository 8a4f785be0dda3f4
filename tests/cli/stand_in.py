"""A workflow of type `Job` that answers and takes signals like the real one, and does nothing."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.notices import PersonAct
from protocol.payloads import SIGNALS, UPDATE


@workflow.defn(name="Job")
class StandIn:
    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.signals: list[list[Any]] = []
        self.waiting: dict[str, Any] | None = None
        self.limits: dict[str, dict[str, Any]] = {"job": {}, "phase": {}}
        self.question: dict[str, Any] | None = None
        self.approval: dict[str, Any] | None = None
        self.rewinds = 0
        self.done = 0
        self.end = ""

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        self.data = start[0]
        title = self.data.get("instructions", "")
        workflow.upsert_memo(
            {"title": title, "agent": self.data.get("agent", ""), "status": "running"}
        )
        if title == "bad start":
            raise ApplicationError("agent 'x' is not known", type="BadStart", non_retryable=True)
        if title == "bug":
            raise RuntimeError("a programming error")
        summary = "phase 2 · todo 1 · read_file a.md"
        await workflow.sleep(0.001, summary=summary)
        await workflow.wait_condition(lambda: bool(self.end))
        return {
            "status": self.end,
            "summary": "All is done.",
            "deliverables": ["output/summary.md"],
            "confidence": 0.9,
            "checkpoint": (self.data.get("set") or {}).get("checkpoint", ""),
        }

    @workflow.query
    def status(self) -> dict[str, Any]:
        settings = self.data.get("set") or {}
        if self.data.get("project"):
            return self._project()
        words = ["completed"] * self.done + ["current"] + ["open"] * 4
        return {
            "job_id": workflow.info().workflow_id,
            "title": self.data.get("instructions", ""),
            "agent": self.data.get("agent"),
            "model": "stand-in",
            "status": "waiting" if self.waiting else "running",
            "waiting": self.waiting,
            "waiting_for": (self.waiting or {}).get("reason"),
            "phase": None
            if self.data.get("instructions") == "bad start"
            else {"number": 2 + self.rewinds, "kind": "tactical", "name": "Extraction"},
            "plan": {"position": 1, "total": 3},
            "todos": [
                {"id": n, "content": f"Step {n}", "status": word}
                for n, word in enumerate(words[:5], 1)
            ],
            "usage": {"model_calls": 12, "tool_calls": 30, "prompt_tokens": 45_000,
                      "completion_tokens": 678, "cost": 0.5},
            "limits": self.limits,
            "clarification": {"used": 1, "pending": self.question, "resolved": 0},
            "approval": self.approval,
            "rewinds": self.rewinds,
            "checkpoint": settings.get("checkpoint"),
            "checkpoints": settings.get("checkpoints") or [],
            "signals": self.signals,
            "input": self.data,
        }  # fmt: skip

    def _project(self) -> dict[str, Any]:
        return {
            "project": True,
            "status": "running",
            "waiting": None,
            "limits": {"project": self.limits["job"]},
            "agent": "project (groups)",
            "jobs": self.data.get("jobs") or [],
        }

    @workflow.update(name=UPDATE)
    def apply_signal(self, signal: str, payload: dict[str, Any]) -> dict[str, Any]:
        self.signals.append([signal, payload])
        act = PersonAct(at=0, signal=signal, did=f"sent {signal}")
        if self.data.get("project") and SIGNALS[signal].for_one_job:
            act.to = f"{workflow.info().workflow_id}.brew"
        else:
            act.refused = getattr(self, f"_{signal}")(payload) or ""
        return act.model_dump(exclude_defaults=True)

    def _pause(self, payload: dict[str, Any]) -> None:
        self.waiting = {"reason": "paused", "message": "Paused by a person.", "remedy": "Resume."}

    def _resume(self, payload: dict[str, Any]) -> str:
        waited, self.waiting = self.waiting, None
        return "" if waited else "the job is not waiting"

    def _rewind(self, payload: dict[str, Any]) -> str:
        if payload.get("phase", 1) > 2:
            return "there is no phase 9"
        self.rewinds += 1
        return ""

    def _limit(self, payload: dict[str, Any]) -> str:
        if payload.get("cost") == 13:
            return "the price is not known"
        for scope, limits in (("job", payload), ("phase", payload.get("phase", {}))):
            for key, value in limits.items():
                if key not in ("phase", "by"):
                    self.limits[scope][key] = {"limit": value, "spent": 0.5}
        return ""

    def _bypass(self, payload: dict[str, Any]) -> str:
        return "guard nobody has refused nothing" if payload["guard"] == "nobody" else ""

    def _cancel(self, payload: dict[str, Any]) -> None:
        self.end = "cancelled"

    def _answer(self, payload: dict[str, Any]) -> str:
        if payload.get("id") != "q1":
            return "no question is open"
        self.question = self.waiting = None
        return ""

    def _approve(self, payload: dict[str, Any]) -> None:
        self.approval = self.waiting = None

    def _deny(self, payload: dict[str, Any]) -> None:
        self.approval = self.waiting = None

    def _tell(self, payload: dict[str, Any]) -> None:
        pass

    @workflow.signal
    def ask(self, *payload: Any) -> None:
        self.question = {"id": "q1", "question": "Which?", "default": "Any.", "until": 0}
        self.approval = {
            "id": "a1", "tool": "move_file", "approved": None, "step": 1, "call_index": 0,
            "arguments": {}, "question": "Move it?", "guard": "paths",
        }  # fmt: skip
        about = {"question": "Which?", "default": "[red]Any."}
        self.waiting = {
            "reason": "clarification", "message": "The agent asks.", "remedy": "Answer.",
            "about": about,
        }  # fmt: skip

    @workflow.signal
    def finish(self, *payload: Any) -> None:
        self.done = 5
        self.end = "completed"


@workflow.defn(name="Other")
class Other:
    @workflow.run
    async def run(self) -> None:
        await asyncio.sleep(3600)
