"""What a step costs, against the bare engine in the same run: `python -m benchmarks`."""
