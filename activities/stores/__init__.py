"""Stores shared by jobs: relational, in SQLite or PostgreSQL."""
