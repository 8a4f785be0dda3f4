"""Documents: their text by page, and quotes found in it."""
