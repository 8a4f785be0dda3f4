"""What the first phase of a job and every later one begin with."""

from activities.checkpoints import Root
from activities.job.commit_messages import phase_message
from activities.job.job_folder import publish_checkpoint
from activities.job.snapshot import Snapshot
from activities.phases.phase_tags import phase_tag
from activities.runtime.activity_info import activity_schedule_seconds
from activities.toolkit.tool_offer import unoffered_tools
from activities.tools.tool_search import tools_for_list
from activities.traces.recall import recall_traces


def offer_phase_tools(
    root: Root, snapshot: Snapshot, *, may_ask: bool, issue: str = ""
) -> list[str]:
    """Choose the tools of the phase; return the traces that its first message shows."""
    traces = recall_traces(root, snapshot, issue)
    snapshot.state.unused_tools = unoffered_tools(
        snapshot.files, has_traces=bool(traces), may_ask=may_ask
    )
    snapshot.state.found_tools = tools_for_list(snapshot.config, snapshot.state)
    return traces


def save_phase_start(root: Root, snapshot: Snapshot, story: str) -> tuple[int, list[str]]:
    """Save and publish the checkpoint; return its time and what was moved aside in the folder."""
    phase, timestamp = snapshot.state.phase, activity_schedule_seconds()
    snapshot.save(f"{story}{phase_message(phase.number, phase.name)}", timestamp)
    return timestamp, publish_checkpoint(root, snapshot, phase_tag(phase.number))
