"""A project's git repository, and what the system finds in the work of its jobs."""
