"""`python -m benchmarks.compare [--write PAGE] [--json FILE]`: all runners, in one run."""

import argparse
import asyncio
import json
from pathlib import Path

from benchmarks.compare.adapters import ADAPTERS
from benchmarks.compare.comparison_bench import ComparisonPlan, measure_comparison
from benchmarks.compare.comparison_page import comparison_page_markdown, update_comparison_page
from engine.worker_process import exit_worker_process


def compare_runners() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    options.add_argument("--only", nargs="+", choices=list(ADAPTERS), default=list(ADAPTERS))
    options.add_argument("--steps", type=int, default=400, help="files of the long run")
    options.add_argument("--cap", type=float, default=60, help="seconds of a run at most")
    options.add_argument("--seeds", type=int, default=5, help="of the drifting model; 0: none")
    options.add_argument("--rate", type=float, default=0.2, help="how often it drifts, of 1")
    options.add_argument("--json", type=Path, help="write the figures to this file")
    options.add_argument("--write", type=Path, help="put the tables into this page")
    arguments = options.parse_args()
    plan = ComparisonPlan(
        arguments.only, arguments.steps, arguments.seeds, arguments.rate, arguments.cap
    )
    figures = asyncio.run(measure_comparison(plan))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if arguments.write:
        update_comparison_page(arguments.write, figures)
    print(comparison_page_markdown(figures))
    exit_worker_process(0)


if __name__ == "__main__":
    compare_runners()
