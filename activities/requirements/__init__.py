"""Requirements: their text, citations, store and graph, and the agents' tools for them."""
