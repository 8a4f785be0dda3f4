"""Redaction: credentials are hidden before text leaves the worker."""
