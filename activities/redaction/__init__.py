"""Redaction: hide credentials before text leaves the worker."""
