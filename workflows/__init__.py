"""Deterministic workflow code: decides when things happen. `activities` does them."""
