"""Developers' tools: pinned requirements, generated documentation, screenshots."""
