"""Stores that jobs share: relational, by SQLite or PostgreSQL."""
