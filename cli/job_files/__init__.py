"""A job's files and steps, read from its checkpoints."""
