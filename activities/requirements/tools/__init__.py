"""Tools of agents that extract, compare and validate requirements."""
