"""`python -m benchmarks.pdf FOLDER [--engines …] [--write FILE]`: compares engines that read PDFs.

Each engine reads each PDF of the corpus in its own process, and the text is compared with the words
that pdftotext finds. Requires Debian's `apt-get`, its package poppler-utils, and the engines of
`requirements.in`; a missing engine counts as failed in every row.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from textwrap import shorten

from activities.documents import Page
from activities.documents.quality import assess_quality
from activities.documents.reading_result import ReadingResult
from benchmarks.pdf.corpus_fetch import CorpusSample, corpus_samples, fetch_corpus_pdf
from benchmarks.pdf.engines import ENGINES
from benchmarks.pdf.likeness import Likeness, likeness

_MARKED = re.compile(r"(<!-- measured -->\n).*?(<!-- end -->)", re.DOTALL)
REFERENCE = "pdftotext"
SECONDS = 300
"""Time limit of an engine per PDF."""
OWN = "longhaul"
MOST_SAID = 150
"""Characters shown of the warnings about a PDF."""


@dataclass(frozen=True)
class Result:
    """An engine's result for a PDF; no pages if it failed."""

    pages: list[str] | None
    seconds: float
    why: str = ""


def compare_pdf_engines() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.pdf", description=__doc__)
    options.add_argument("folder", type=Path, help="where packages and PDFs are kept")
    options.add_argument(
        "--engines", nargs="+", default=[name for name in ENGINES if name != REFERENCE]
    )
    options.add_argument("--only", default="", help="part of the names of the PDFs to read")
    options.add_argument("--write", type=Path, help="put the tables into this page")
    arguments = options.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = [sample for sample in corpus_samples() if arguments.only in sample.name]
    figures = {
        engine: measure_pdf_engine(engine, rows, arguments.folder) for engine in arguments.engines
    }
    text = f"{_pdf_engine_summary(figures)}\n\n{_pdf_corpus_table(rows, figures.get(OWN, []))}"
    if arguments.write:
        page = arguments.write.read_text()
        arguments.write.write_text(
            _MARKED.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page)
        )
    else:
        print(text)


def measure_pdf_engine(
    engine: str, rows: Iterable[CorpusSample], folder: Path
) -> list[tuple[Likeness | None, Result]]:
    """Compare what the engine reads with the reference, for each PDF."""
    results = []
    for sample in rows:
        path = fetch_corpus_pdf(sample, folder)
        right = _run_pdf_engine(REFERENCE, path, folder)
        ours = _run_pdf_engine(engine, path, folder)
        same = None if ours.pages is None else likeness(right.pages or [], ours.pages)
        results.append((same, ours))
        print(f"{engine:24} {sample.name:50} {same or ours.why}", file=sys.stderr, flush=True)
    return results


def _run_pdf_engine(engine: str, path: Path, folder: Path) -> Result:
    """Read in a separate process; cached, except for our own engine."""
    cached = folder / "texts" / f"{engine}+{path.parent.name}+{path.name}.json"
    if cached.exists() and engine != OWN:
        return Result(**json.loads(cached.read_text()))
    begun = _pdf_engine_cpu_seconds()
    command = [sys.executable, "-m", "benchmarks.pdf.engines", engine, str(path)]
    try:
        process = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        failed = process.stderr.decode(errors="replace").strip().rpartition("\n")[2][-200:]
        pages = json.loads(process.stdout) if process.returncode == 0 else None
    except subprocess.TimeoutExpired:
        pages, failed = None, f"more than {SECONDS} s"
    result = Result(pages, _pdf_engine_cpu_seconds() - begun, "" if pages is not None else failed)
    cached.parent.mkdir(exist_ok=True)
    cached.write_text(json.dumps(result.__dict__))
    return result


def _pdf_engine_cpu_seconds() -> float:
    """Return CPU seconds of ended children, which other load on the machine does not affect."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pdf_engine_summary(figures: dict[str, list[tuple[Likeness | None, Result]]]) -> str:
    lines = [
        "| engine | words, mean | PDFs below 98 % | neighbours, mean | run together in 1,000 "
        "| failed | seconds, all |",
        "|---|---|---|---|---|---|---|",
    ]
    for engine, results in figures.items():
        same = [likeness for likeness, _ in results if likeness is not None]
        shares = [likeness.share for likeness in same] + [0.0] * (len(results) - len(same))
        lines.append(
            f"| {engine} | {100 * fmean(shares):.1f} % | {sum(share < 0.98 for share in shares)} "
            f"| {100 * fmean(likeness.order for likeness in same):.1f} % "
            f"| {fmean(likeness.run_together for likeness in same):.1f} "
            f"| {len(results) - len(same)} | {sum(result.seconds for _, result in results):.0f} |"
        )
    return "\n".join(lines)


def _pdf_corpus_table(
    rows: list[CorpusSample], results: list[tuple[Likeness | None, Result]]
) -> str:
    lines = [
        "| PDF | kind | words | there | neighbours | seconds | what Longhaul says of it |",
        "|---|---|---|---|---|---|---|",
    ]
    for sample, (same, result) in zip(rows, results, strict=False):
        if same is None or result.pages is None:
            lines.append(f"| {sample.name} | {sample.kind} | | | | | {result.why} |")
            continue
        pages = [Page(number, text) for number, text in enumerate(result.pages, 1)]
        verdict = shorten(str(assess_quality(ReadingResult(pages))), MOST_SAID, placeholder=" …")
        lines.append(
            f"| {sample.name} | {sample.kind} | {same.words:,} | {100 * same.share:.1f} % "
            f"| {100 * same.order:.1f} % | {result.seconds:.1f} | {verdict} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    compare_pdf_engines()
