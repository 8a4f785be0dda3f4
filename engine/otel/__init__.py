"""Traces and metrics for OpenTelemetry: one trace per job, from Temporal's plugin and our spans.

`optional_export` decides whether to export them and loads the rest, which needs the extra `otel`.
"""
