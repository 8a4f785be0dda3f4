"""Deterministic code only: when things happen. What happens is in `activities`."""
