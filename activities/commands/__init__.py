"""Commands of agents: where they run, and what they cannot reach."""
