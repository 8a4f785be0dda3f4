"""Migrations of the tables, one per file. Each schema change adds a file."""
