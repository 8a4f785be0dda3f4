"""Schemas of the files that people write: agents, guards, the graph."""
