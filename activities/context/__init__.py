"""Keeping the context small: what is shown of a conversation, cleared, summarised, found again."""
