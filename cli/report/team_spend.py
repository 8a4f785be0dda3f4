"""What the jobs of each team and agent have spent, as Temporal's server has it. Needs no worker."""

import csv
import io
from typing import Any

from temporalio.client import Client

from cli.jobs.job_memo import JOB, read_job_memo
from protocol.teams import TEAM, noted_spend, own_memo
from protocol.usage import Spend

COLUMNS = ("team", "agent", "jobs", "open", "cost", "tokens")


async def spend_by_team(client: Client) -> list[dict[str, Any]]:
    """Return a row for each team and agent; open jobs as of their last todo."""
    query = f"WorkflowType = '{JOB}' AND ExecutionStatus != 'ContinuedAsNew'"
    jobs: dict[tuple[str, str], list[tuple[bool, Spend]]] = {}
    async for execution in client.list_workflows(query):
        memo = await read_job_memo(execution)
        own = own_memo(memo, execution.run_id)
        key = str(own.get(TEAM) or ""), str(memo.get("agent") or "")
        jobs.setdefault(key, []).append((execution.close_time is None, noted_spend(own)))
    rows = []
    for (team, agent), spends in sorted(jobs.items()):
        total = sum((spent for _, spent in spends), Spend())
        is_open = sum(is_open for is_open, _ in spends)
        figures = {"cost": total.cost, "tokens": total.tokens}
        rows.append({"team": team, "agent": agent, "jobs": len(spends), "open": is_open, **figures})
    return rows


def spend_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")
