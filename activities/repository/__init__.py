"""Existing code: fetched when a job or project begins, published as a branch when it ends."""
