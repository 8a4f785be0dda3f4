"""Exit codes of a worker process."""

FAILED = 1
CANNOT_START = 2
INTERRUPTED = 130
