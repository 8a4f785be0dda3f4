"""Traces: kept in the store, found again by the situation at hand."""
