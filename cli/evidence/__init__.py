"""Evidence of a job that another can check: the archive, and what it proves."""
