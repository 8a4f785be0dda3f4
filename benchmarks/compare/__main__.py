"""`python -m benchmarks.compare [--write PAGE] [--json FILE]`: all runners, in one run."""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from benchmarks.compare.adapters import ADAPTERS
from benchmarks.compare.comparison_bench import ComparisonPlan, measure_comparison
from benchmarks.compare.comparison_page import comparison_page_markdown, update_comparison_page
from benchmarks.compare.scenario_page import scenario_page_markdown
from benchmarks.compare.scenarios import SCENARIOS, measure_scenarios
from engine.worker_process import exit_worker_process

PARTS = {"steps": comparison_page_markdown, "scenarios": scenario_page_markdown}


def compare_runners() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    options.add_argument("--only", nargs="+", choices=list(ADAPTERS), default=list(ADAPTERS))
    options.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options.add_argument("--steps", type=int, default=400, help="files of the long run")
    options.add_argument("--cap", type=float, default=60, help="seconds of a run at most")
    options.add_argument("--seeds", type=int, default=5, help="of the drifting model; 0: none")
    options.add_argument("--rate", type=float, default=0.2, help="how often it drifts, of 1")
    options.add_argument("--scenarios", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    options.add_argument("--json", type=Path, help="write the figures to this file")
    options.add_argument("--write", type=Path, help="put the tables into this page")
    arguments = options.parse_args()
    plan = ComparisonPlan(
        arguments.only, arguments.steps, arguments.seeds, arguments.rate, arguments.cap
    )
    figures: dict[str, Any] = {}
    if "steps" in arguments.parts:
        figures["steps"] = asyncio.run(measure_comparison(plan))
    if "scenarios" in arguments.parts:
        figures["scenarios"] = asyncio.run(measure_scenarios(arguments.only, arguments.scenarios))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    for part, measured in figures.items():
        text = PARTS[part](measured)
        if arguments.write:
            update_comparison_page(arguments.write, part, text)
        print(text)
    exit_worker_process(0)


if __name__ == "__main__":
    compare_runners()
