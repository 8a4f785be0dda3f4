"""The sum of several processes' metrics in Prometheus' text format."""

from __future__ import annotations

from collections import defaultdict

SAME_EVERYWHERE = "longhaul_jobs_waiting"
"""Gauge that each process reads from the server, so all of them report the same figures."""


class MetricsSum:
    """Sums samples by name and labels.

    Counters and histograms never fall: the last values of an ended process stay in the sum.
    Otherwise Prometheus would take the smaller sum for a reset of the counter.
    """

    def __init__(self) -> None:
        self._comments: dict[str, None] = {}
        self._types: dict[str, str] = {}
        self._samples: dict[int, dict[str, float]] = {}
        self._retired: dict[str, float] = defaultdict(float)

    def update(self, process: int, page: str) -> None:
        """Replace the samples of a process; an empty page changes nothing."""
        samples: dict[str, float] = {}
        for line in page.splitlines():
            if line.startswith("#"):
                self._comments.setdefault(line)
                words = line.split()
                if words[1:2] == ["TYPE"]:
                    self._types[words[2]] = words[3]
            elif line.strip():
                key, _, value = line.rpartition(" ")
                samples[key] = float(value)
        if samples:
            self._samples[process] = samples

    def retire(self, process: int) -> None:
        """Add the counters of an ended process to the sum for good, and drop its gauges."""
        for key, value in self._samples.pop(process, {}).items():
            if self._type_of(key) != "gauge":
                self._retired[key] += value

    def render(self) -> str:
        totals: dict[str, float] = defaultdict(float, self._retired)
        for samples in self._samples.values():
            for key, value in samples.items():
                if key.startswith(SAME_EVERYWHERE):
                    totals[key] = max(totals[key], value)
                else:
                    totals[key] += value
        lines = [
            f"{key} {value:g}" if value != int(value) else f"{key} {int(value)}"
            for key, value in totals.items()
        ]
        by_name: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            by_name[self._family(line)].append(line)
        parts = [line for line in self._comments if line.split()[2] not in by_name]
        for name, lines_of_name in by_name.items():
            parts += [line for line in self._comments if line.split()[2] == name]
            parts += lines_of_name
        return "\n".join(parts) + "\n"

    def _family(self, sample: str) -> str:
        name = sample.split("{", 1)[0].split(" ", 1)[0]
        for suffix in ("", "_bucket", "_sum", "_count", "_total"):
            if (base := name.removesuffix(suffix)) in self._types:
                return base
        return name

    def _type_of(self, sample: str) -> str:
        return self._types.get(self._family(sample), "untyped")
