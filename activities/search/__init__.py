"""Search by meaning, and how alike texts are: by their words and by embeddings."""

from activities.search.embedding import EmbeddingsFailed, embedder
from activities.search.hybrid_search import search

__all__ = ["EmbeddingsFailed", "embedder", "search"]
