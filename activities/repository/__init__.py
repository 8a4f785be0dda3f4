"""Existing code: fetched when a job or project begins, handed out as a branch when it ends."""
