"""Exit codes of a worker process. Commands share the one for Ctrl-C."""

FAILED = 1
CANNOT_START = 2
INTERRUPTED = 130
