"""Search by meaning: passages of the present files, ranked by their words and by embeddings."""

from activities.search.embedding import EmbeddingsFailed, embedder
from activities.search.searching import search

__all__ = ["EmbeddingsFailed", "embedder", "search"]
