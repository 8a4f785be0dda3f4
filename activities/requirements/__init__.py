"""Requirements: what one is, what a text says of relevance and entities."""
