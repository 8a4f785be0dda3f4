"""A project's files, and how a terminal shows a project."""
