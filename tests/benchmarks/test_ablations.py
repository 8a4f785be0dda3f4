"""A part that is switched off is off, and what came of it is a row."""

from activities.checkpoints import Root
from benchmarks.ablations import TRIAL, ablation_row, count_trial_items, run_ablation
from cli.start.start_files import read_trial_file
from engine.development import DevelopmentServer


async def test_without_a_scope_a_weak_model_completes_with_items_missing(
    running: DevelopmentServer, root: Root
) -> None:
    trial = read_trial_file(TRIAL)
    head, last, _ = str(trial.start["instructions"]).partition("output/item_10.md.\n")
    trial.start["instructions"] = head + last
    ends = await run_ablation(running.client, root, trial, "weak", "scope", 1)
    row = ablation_row("weak", "scope", ends, count_trial_items(trial))
    assert row.startswith("| weak | `scope` | 0 of 1 | - | - | 1 | 0 | "), row
