"""A workflow of type `Job` that answers and takes signals like the real one, and does nothing."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError


@workflow.defn(name="Job")
class StandIn:
    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.signals: list[list[Any]] = []
        self.notices: list[str] = []
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
            "notices": self.notices,
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
            "notices": self.notices,
        }

    def _hands_on(self, signal: str) -> bool:
        """Return whether this is a project, which forwards a signal to its job."""
        if self.data.get("project"):
            job = f"{workflow.info().workflow_id}.brew"
            self.notices.append(f"signal {signal}: handed on to job {job}")
        return bool(self.data.get("project"))

    @workflow.signal
    def pause(self, *payload: Any) -> None:
        self.signals.append(["pause", *payload])
        self.waiting = {"reason": "paused", "message": "Paused by a person.", "remedy": "Resume."}

    @workflow.signal
    def resume(self, *payload: Any) -> None:
        self.signals.append(["resume", *payload])
        if not self.waiting:
            self.notices.append("refused: signal resume: the job is not waiting")
        self.waiting = None

    @workflow.signal
    def rewind(self, *payload: Any) -> None:
        self.signals.append(["rewind", *payload])
        if self._hands_on("rewind"):
            return
        if payload[0].get("phase", 1) > 2:
            self.notices.append("refused: signal rewind: there is no phase 9")
        else:
            self.rewinds += 1

    @workflow.signal
    def limit(self, *payload: Any) -> None:
        self.signals.append(["limit", *payload])
        if payload[0].get("cost") == 13:
            self.notices.append("refused: signal limit: the price is not known")
            return
        for scope, limits in (("job", payload[0]), ("phase", payload[0].get("phase", {}))):
            for key, value in limits.items():
                if key not in ("phase", "by"):
                    self.limits[scope][key] = {"limit": value, "spent": 0.5}

    @workflow.signal
    def bypass(self, *payload: Any) -> None:
        self.signals.append(["bypass", *payload])
        if self._hands_on("bypass"):
            return
        if payload[0]["guard"] == "nobody":
            self.notices.append("refused: signal bypass: guard nobody has refused nothing")
        else:
            self.notices.append(
                f"A person let through once what {payload[0]['guard']} refused at 2026-11-25"
            )

    @workflow.signal
    def cancel(self, *payload: Any) -> None:
        self.signals.append(["cancel", *payload])
        self.end = "cancelled"

    @workflow.signal
    def ask(self, *payload: Any) -> None:
        self.question = {"id": "q1", "question": "Which?", "default": "Any.", "answer": None}
        self.approval = {"id": "a1", "tool": "move_file", "approved": None}
        about = {"question": "Which?", "default": "[red]Any."}
        self.waiting = {
            "reason": "clarification", "message": "The agent asks.", "remedy": "Answer.",
            "about": about,
        }  # fmt: skip

    @workflow.signal
    def answer(self, *payload: Any) -> None:
        self.signals.append(["answer", *payload])
        if self._hands_on("answer"):
            return
        if payload[0].get("id") == "q1":
            self.question = self.waiting = None
        else:
            self.notices.append("refused: signal answer: no question is open")

    @workflow.signal
    def approve(self, *payload: Any) -> None:
        self.signals.append(["approve", *payload])
        self._hands_on("approve")
        self.approval = self.waiting = None

    @workflow.signal
    def deny(self, *payload: Any) -> None:
        self.signals.append(["deny", *payload])
        self._hands_on("deny")
        self.approval = self.waiting = None

    @workflow.signal
    def finish(self, *payload: Any) -> None:
        self.done = 5
        self.end = "completed"


@workflow.defn(name="Other")
class Other:
    @workflow.run
    async def run(self) -> None:
        await asyncio.sleep(3600)
