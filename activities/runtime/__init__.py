"""Runtime support of activities: heartbeats, failures, tracing, child processes."""
