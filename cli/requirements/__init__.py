"""Stored requirements: their search, and how a terminal shows them."""
