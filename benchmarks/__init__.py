"""Cost of a step relative to the bare engine, in the same run: `python -m benchmarks`."""
