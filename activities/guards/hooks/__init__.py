"""Hooks: executables of people, asked as guards are."""
