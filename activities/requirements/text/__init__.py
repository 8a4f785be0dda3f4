"""Sentences in documents that may be requirements, and their meaning."""
