"""Reads step times and sizes from histories, by the server's clock and bytes."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client


@dataclass(frozen=True)
class HistorySteps:
    """Figures of the steps of one workflow, in order."""

    milliseconds: list[float]
    events: list[int]
    bytes: list[int]

    @property
    def first_tenth(self) -> float:
        return mean(self.milliseconds[: max(1, len(self.milliseconds) // 10)])

    @property
    def last_tenth(self) -> float:
        return mean(self.milliseconds[-max(1, len(self.milliseconds) // 10) :])

    @property
    def mean(self) -> float:
        return mean(self.milliseconds)

    @property
    def median_events(self) -> float:
        return median(self.events)

    @property
    def median_bytes(self) -> float:
        return median(self.bytes)


async def workflow_histories(client: Client, workflow_id: str) -> list[list[HistoryEvent]]:
    """Return the histories of a workflow's runs, oldest first."""
    histories: list[list[HistoryEvent]] = []
    run_id = None
    while True:
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        events = list((await handle.fetch_history()).events)
        histories.insert(0, events)
        run_id = events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not run_id:
            return histories


def history_steps(runs: list[list[HistoryEvent]], activity: str, every: int = 1) -> HistorySteps:
    """Cut histories into steps, each from one start of `activity` to the next.

    Args:
        runs: Histories, oldest first.
        activity: Type of the regular activity with which a step begins.
        every: Number of such activities per step.
    """
    milliseconds, counts, sizes = [], [], []
    for events in runs:
        starts = [
            place
            for place, event in enumerate(events)
            if event.activity_task_scheduled_event_attributes.activity_type.name == activity
        ][::every]
        # Leave out the last step of each run, since the gap between two runs is no step.
        for start, end in pairwise(starts):
            between = events[start:end]
            if any(_is_other_history_activity(event, activity) for event in between):
                continue
            took = events[end].event_time.ToNanoseconds() - events[start].event_time.ToNanoseconds()
            milliseconds.append(took / 1e6)
            counts.append(len(between))
            sizes.append(sum(event.ByteSize() for event in between))
    return HistorySteps(milliseconds, counts, sizes)


def _is_other_history_activity(event: HistoryEvent, activity: str) -> bool:
    """Return whether another regular activity was started: a gate or a turn, no ordinary step."""
    name = event.activity_task_scheduled_event_attributes.activity_type.name
    return name not in ("", activity)
