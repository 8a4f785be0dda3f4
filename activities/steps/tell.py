"""Adds people's remarks to the instructions, where they survive rewinds and restored files."""

from activities.checkpoints import Root
from activities.job.activity_context import open_activity_snapshot
from activities.job.remarks import add_remarks_to_instructions, name_remark_speakers
from activities.model.prompt import count_prompt_tokens
from activities.runtime.activity_info import activity_schedule_seconds
from activities.steps.root_activity import thread_activity
from activities.text.safe_text import replace_surrogates
from protocol.requests import RemarksReply, RemarksRequest


@thread_activity
def tell(root: Root, request: RemarksRequest) -> RemarksReply:
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
            snapshot.state.add_item(replace_surrogates(text), "told")
        except ValueError as error:
            refused = str(error)
    add_remarks_to_instructions(snapshot)
    snapshot.record_changes(before)
    timestamp = activity_schedule_seconds()
    return RemarksReply(
        commit=snapshot.save(
            snapshot.commit_message(f"{name_remark_speakers(remarks)} told the agent"),
            timestamp,
        ),
        at=timestamp,
        remarks=snapshot.state.remarks,
        scope=snapshot.state.items_changed_since(ledger),
        refused=refused,
        context=count_prompt_tokens(snapshot),
    )
