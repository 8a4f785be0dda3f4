"""A project's git repository, and checks of its jobs' work."""
