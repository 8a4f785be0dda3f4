"""What people say to an agent while it works: kept with its instructions, whatever is undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import open_snapshot, scheduled_at
from activities.job.snapshot import Snapshot
from activities.model.prompt import context_tokens
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.text.plain import plain
from protocol.requests import RemarksReply, RemarksRequest
from protocol.state import Remark

AMENDED = "## Amended"


def tell_activity(root: Root) -> Callable[[RemarksRequest], RemarksReply]:
    """The `tell` activity."""

    @activity.defn(name="tell")
    def tell(request: RemarksRequest) -> RemarksReply:
        """Put what people said into the instructions and, where they say so, into the scope."""
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(root, request)
            before, ledger = snapshot.files, [item.model_copy() for item in snapshot.state.scope]
            remarks = [
                remark.model_copy(update={"text": plain(remark.text)}) for remark in request.remarks
            ]
            snapshot.state.remarks = [*snapshot.state.remarks, *remarks]
            refused = ""
            for text in request.items:
                try:
                    snapshot.state.add_item(plain(text))
                except ValueError as full:
                    refused = str(full)
            amend(snapshot)
            snapshot.note_changes(before)
            at = scheduled_at()
            return RemarksReply(
                commit=snapshot.save(snapshot.story("a person said something"), at),
                at=at,
                remarks=snapshot.state.remarks,
                scope=snapshot.state.items_changed_since(ledger),
                refused=refused,
                context=context_tokens(snapshot),
            )

    return tell


def amend(snapshot: Snapshot) -> None:
    """Have the instructions hold all that people said, also after files were put back."""
    text = snapshot.text("instructions.md")
    if (amended := with_remarks(text, snapshot.state.remarks)) != text:
        snapshot.place("instructions.md", amended.encode())


def with_remarks(instructions: str, remarks: Sequence[Remark]) -> str:
    """Instructions with the remarks that they lack under the heading `Amended`, at their end."""
    lines = [f"- {remark.line}".replace("\n", "\n  ") for remark in remarks]
    lacking = [line for line in lines if line not in instructions]
    if not lacking:
        return instructions
    *before, last = instructions.split(f"\n{AMENDED}\n")
    if not before or "\n## " in last:
        instructions = f"{instructions.rstrip()}\n\n{AMENDED}\n"
    return f"{instructions.rstrip()}\n\n" + "\n".join(lacking) + "\n"
