"""What activities share at run time: heartbeats, failures, tracing, child processes."""
