"""Signals to a job, and their effects."""
