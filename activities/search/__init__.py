"""Search by meaning, and similarity of texts by words and by embeddings."""
