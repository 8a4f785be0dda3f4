"""Traces: kept in the store and recalled in similar situations."""
