"""The tools of the agents that extract, compare and validate requirements."""
