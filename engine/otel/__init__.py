"""Traces and metrics for OpenTelemetry: one trace for a job, by Temporal's plugin and our spans.

`switch` says whether they are exported and loads the rest, which needs the extra `otel`.
"""
