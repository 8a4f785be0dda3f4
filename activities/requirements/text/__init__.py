"""Sentences of documents that may be requirements, and what they say."""
