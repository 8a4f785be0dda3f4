"""Requirements: what one is, how alike two are, what a text says of relevance and entities."""
