"""Adds people's remarks to the instructions, where they survive rewinds and restored files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import activity_schedule_time, open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.model.prompt import count_prompt_tokens
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.text.safe_text import replace_surrogates
from protocol.job_state import Remark
from protocol.requests import RemarksReply, RemarksRequest
from protocol.short_text import one_line

AMENDED = "## Amended"


def remarks_activity(root: Root) -> Callable[[RemarksRequest], RemarksReply]:
    """The `tell` activity."""

    @activity.defn(name="tell")
    def add_remarks(request: RemarksRequest) -> RemarksReply:
        """Add remarks to the instructions, and requested items to the scope."""
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(root, request)
            before, ledger = snapshot.files, [item.model_copy() for item in snapshot.state.scope]
            remarks = [
                remark.model_copy(update={"text": replace_surrogates(remark.text)})
                for remark in request.remarks
            ]
            snapshot.state.remarks = [*snapshot.state.remarks, *remarks]
            refused = ""
            for text in request.items:
                try:
                    snapshot.state.add_item(replace_surrogates(text))
                except ValueError as full:
                    refused = str(full)
            add_remarks_to_instructions(snapshot)
            snapshot.record_changes(before)
            timestamp = activity_schedule_time()
            return RemarksReply(
                commit=snapshot.save(
                    snapshot.commit_message(f"{_remark_speakers(remarks)} told the agent"),
                    timestamp,
                ),
                at=timestamp,
                remarks=snapshot.state.remarks,
                scope=snapshot.state.items_changed_since(ledger),
                refused=refused,
                context=count_prompt_tokens(snapshot),
            )

    return add_remarks


def _remark_speakers(remarks: Sequence[Remark]) -> str:
    """Name each speaker once, such as `ada@host, a person`."""
    return ", ".join(
        dict.fromkeys(one_line(replace_surrogates(each.by), 100) or "a person" for each in remarks)
    )


def add_remarks_to_instructions(snapshot: Snapshot) -> None:
    """Make the instructions contain all remarks, even after files were restored."""
    text = snapshot.read_text("instructions.md")
    if (amended := instructions_with_remarks(text, snapshot.state.remarks)) != text:
        snapshot.write_system_file("instructions.md", amended.encode())


def instructions_with_remarks(instructions: str, remarks: Sequence[Remark]) -> str:
    """Append missing remarks to the instructions under the heading `Amended`."""
    lines = [f"- {remark.line}".replace("\n", "\n  ") for remark in remarks]
    lacking = [line for line in lines if line not in instructions]
    if not lacking:
        return instructions
    *before, last = instructions.split(f"\n{AMENDED}\n")
    if not before or "\n## " in last:
        instructions = f"{instructions.rstrip()}\n\n{AMENDED}\n"
    return f"{instructions.rstrip()}\n\n" + "\n".join(lacking) + "\n"
