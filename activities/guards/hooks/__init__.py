"""Hooks: executables of people that vote as guards do."""
