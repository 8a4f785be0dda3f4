"""Requirements: their text, citations, store and graph, and the tools of the agents for them."""
