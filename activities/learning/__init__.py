"""From traces to patterns, from patterns to guards, and whether these are right."""
