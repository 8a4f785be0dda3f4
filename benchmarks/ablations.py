"""`python -m benchmarks.ablations`: what each part of a job is worth, with scripted models.

The configurations of `examples/trials/ablations.yaml` run with a model that makes no mistakes, one
that is weak and one that drifts, each the same seeds.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from statistics import mean

from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks.drift import AT_ONCE, Ended, drift_as_job, serve_drifting_model
from benchmarks.drifting_model import WEAK, Drifting, even_drift_rates
from benchmarks.option_values import parse_whole_number
from cli.start.start_files import read_trial_file
from cli.trials.trial_statistics import Share, all_complete_rate, share_interval
from engine.development import development_server
from protocol.trial_start import TrialStart
from rehearsal.rehearsal_model import REVIEWER_TOOL, review_statements
from rehearsal.wire import Reply, Request

TRIAL = Path(__file__).parents[1] / "examples/trials/ablations.yaml"
PHASES = 2
"""So few that a phase is long enough for a summary."""
MODELS = {"strong": {}, "weak": WEAK, "drifting": even_drift_rates(0.2)}
"""Rates of mistakes by the model's name."""
BEGIN, END = "<!-- measured: ablations -->\n", "<!-- end -->\n"
HEAD = """\
| model | off | right | 95 % interval | {} in a row | false | waits | calls | tokens |
|---|---|---|---|---|---|---|---|---|
"""


class Reviewed(Drifting):
    """The model, with the rehearsal model as its reviewer."""

    def __call__(self, request: Request) -> Reply:
        tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
        return review_statements(request) if REVIEWER_TOOL in tools else super().__call__(request)


def count_trial_items(trial: TrialStart) -> int:
    return str(trial.start["instructions"]).count("\n- Make item ")


async def run_ablation(
    temporal: Client, root: Root, trial: TrialStart, model: str, name: str, seeds: int
) -> list[Ended]:
    """Run one configuration of the trial with every seed."""
    start, queue = trial.job_start(name), f"{model}-{name}"
    brief = start.pop("instructions")
    items = count_trial_items(trial)
    drifting = Reviewed(MODELS[model], items, items // PHASES)
    start["set"] = {"review": {"agent": "reviewer"}, **start.get("set", {})}
    gate = asyncio.Semaphore(AT_ONCE)

    async def run_seed(seed: int) -> Ended:
        text = f"Seed {seed}.\n\n{brief}"
        async with gate:
            return await drift_as_job(
                temporal, root, queue, drifting, seed, instructions=text, **start
            )

    async with serve_drifting_model(temporal, root, drifting, queue):
        return await asyncio.gather(*map(run_seed, range(1, (seeds if MODELS[model] else 1) + 1)))


def ablation_row(model: str, name: str, ends: list[Ended], items: int) -> str:
    """Return the row of a configuration; a single run has no interval."""
    done = [end for end in ends if end.status == "completed"]
    right = Share(sum(end.made == items for end in done), len(ends))
    spread = ["-", "-"]
    if right.runs > 1:
        low, high = share_interval(right)
        in_a_row = all_complete_rate(right, right.runs // 2)
        spread = [f"{low:.0%} to {high:.0%}", f"{in_a_row:.0%}"]
    waits = sorted({end.waiting for end in ends if end.waiting})
    tokens = mean(end.usage.prompt_tokens + end.usage.completion_tokens for end in ends)
    cells = [
        *(model, "nothing" if name == "all" else f"`{name}`", str(right), *spread),
        str(len(done) - right.completed),
        f"{len(ends) - len(done)}" + (f" ({', '.join(waits)})" if waits else ""),
        *(f"{mean(end.usage.model_calls for end in ends):.1f}", f"{tokens:,.0f}"),
    ]
    return f"| {' | '.join(cells)} |"


async def measure_ablations(seeds: int, models: list[str]) -> list[str]:
    """Return the rows of the table."""
    trial = read_trial_file(TRIAL)
    items, rows = count_trial_items(trial), []
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        async with development_server(ui=False) as running:
            for model in models:
                for name in trial.configurations:
                    ends = await run_ablation(running.client, root, trial, model, name, seeds)
                    rows.append(ablation_row(model, name, ends, items))
                    print(rows[-1], flush=True)
    return rows


def benchmark_ablations() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.ablations", description=__doc__)
    options.add_argument("--seeds", type=parse_whole_number, default=6)
    options.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options.add_argument("--write", type=Path, help="put the table into this page")
    chosen = options.parse_args()
    head = HEAD.format(max(1, chosen.seeds // 2))
    print(head, end="", flush=True)
    rows = asyncio.run(measure_ablations(chosen.seeds, chosen.models))
    if chosen.write:
        page = chosen.write.read_text()
        before, _, rest = page.partition(BEGIN)
        table = head + "".join(f"{row}\n" for row in rows)
        chosen.write.write_text(before + BEGIN + table + END + rest.partition(END)[2])


if __name__ == "__main__":
    benchmark_ablations()
