"""`python -m benchmarks.manuals FILE…`: the `creator` on whole documents, with the rehearsal model.

One job for each file. The table counts the binding sentences that it cites or sets aside, and
the quotes of a PDF that another engine (poppler's `pdftotext`, if installed) does not have on
their page. It also compares the requirements with those of the first file: the same manual as
PDF, HTML and DOCX should have the same ones.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks.drift import serve_drifting_model
from config.layers import VARIABLE
from engine.development import development_server
from rehearsal import rehearse

QUEUE = "manuals"
LEAST_COVERED = 0.98
"""Share of the binding sentences that a job has to cite or set aside."""

_COVERED = re.compile(r"of ([\d,]+) binding sentences? ([\d,]+) are cited and ([\d,]+) set aside")


@dataclass(frozen=True)
class ManualExtraction:
    """What one job made of a document."""

    requirements: list[dict[str, Any]]
    binding: int
    """Number of sentences that say must, must not or should."""
    cited: int
    set_aside: int
    quotes: int
    quotes_not_on_page: int | None
    """None if the document is no PDF, or poppler is missing."""
    seconds: float

    @property
    def statements(self) -> Counter[str]:
        """The requirements' letters and digits, to compare documents of different layout."""
        return Counter(
            re.sub(r"\W+", "", requirement["text"]).lower() for requirement in self.requirements
        )


async def extract_manual_requirements(temporal: Client, root: Root, file: Path) -> ManualExtraction:
    """Run the creator on one file. Raises AssertionError if the job does not complete."""
    job = f"{QUEUE}-{file.stem}-{file.suffix[1:]}"
    start = {"agent": "creator", "documents": [str(file)]}
    began = time.monotonic()
    result: dict[str, Any] = await temporal.execute_workflow(
        "Job", start, id=job, task_queue=QUEUE, result_type=dict
    )
    seconds = time.monotonic() - began
    assert result["status"] == "completed", result
    workspace = root.workspace(job)
    requirements = json.loads((workspace / "output/requirements.json").read_text())
    match = _COVERED.search(result["summary"])
    assert match, result["summary"]
    binding, cited, set_aside = (int(number.replace(",", "")) for number in match.groups())
    citations = [citation for each in requirements for citation in each["citations"]]
    return ManualExtraction(
        requirements,
        binding,
        cited,
        set_aside,
        len(citations),
        count_missing_quotes(file, citations),
        seconds,
    )


def count_missing_quotes(file: Path, citations: list[dict[str, Any]]) -> int | None:
    """Count quotes that poppler's text of their page does not have.

    White space and hyphens do not count, as in the search of PDF viewers.
    """
    if file.suffix != ".pdf" or shutil.which("pdftotext") is None:
        return None
    command = ["pdftotext", "-raw", str(file), "-"]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    pages = [_manual_quote_letters(page) for page in text.split("\f")]
    return sum(
        _manual_quote_letters(citation["quote"]) not in pages[citation["page"] - 1]
        for citation in citations
    )


def _manual_quote_letters(text: str) -> str:
    return re.sub("[\\s\u00ad\u2010-]+", "", text)


async def measure_manuals(files: list[Path]) -> dict[Path, ManualExtraction]:
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        # A start may name only files of folders that the worker's configuration allows.
        allowed = {"start": {"documents": sorted({str(file.parent) for file in files})}}
        (Path(folder) / "defaults.yaml").write_text(json.dumps(allowed))
        layers = (folder, os.environ.get(VARIABLE))
        os.environ[VARIABLE] = os.pathsep.join(filter(None, layers))
        async with (
            development_server(ui=False) as running,
            serve_drifting_model(running.client, root, rehearse, QUEUE),
        ):
            return {
                file: await extract_manual_requirements(running.client, root, file)
                for file in files
            }


def manuals_table(extractions: dict[Path, ManualExtraction]) -> Table:
    table = Table(title="The creator on whole documents, with the rehearsal model")
    for column in (
        "",
        "binding sentences",
        "cited",
        "set aside",
        "covered",
        "quotes",
        "not on their page",
        "others than in the first",
        "seconds",
    ):
        table.add_column(column, justify="right" if column else "left")
    first = next(iter(extractions.values())).statements
    for file, each in extractions.items():
        missing = each.quotes_not_on_page
        table.add_row(
            file.name,
            f"{each.binding:,}",
            f"{each.cited:,}",
            f"{each.set_aside:,}",
            f"{(each.cited + each.set_aside) / max(1, each.binding):.1%}",
            f"{each.quotes:,}",
            "" if missing is None else f"{missing:,}",
            f"{((each.statements - first) + (first - each.statements)).total():,}",
            f"{each.seconds:.0f}",
        )
    return table


def benchmark_manuals() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.manuals", description=__doc__)
    options.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = options.parse_args()
    extractions = asyncio.run(measure_manuals([file.resolve() for file in arguments.files]))
    Console(width=140).print(manuals_table(extractions))
    worker = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(
        f"Largest memory: worker {worker // 1000:,} MB, "
        f"one of its processes {children // 1000:,} MB"
    )
    covered = [
        (each.cited + each.set_aside) >= LEAST_COVERED * each.binding
        for each in extractions.values()
    ]
    return 0 if all(covered) else 1


if __name__ == "__main__":
    sys.exit(benchmark_manuals())
