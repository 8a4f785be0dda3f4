"""Runs agents' commands in a sandbox."""
