"""Transitions between phases, and lessons from failed attempts."""
