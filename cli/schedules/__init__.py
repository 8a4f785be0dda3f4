"""Temporal schedules."""
