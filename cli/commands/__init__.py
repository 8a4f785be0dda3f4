"""The commands: one module for each, or for those of a kind."""
