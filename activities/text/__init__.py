"""Text: sanitised, counted in tokens, fingerprinted."""
