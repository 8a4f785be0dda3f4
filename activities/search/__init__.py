"""Search by meaning, and similarity of texts by words and by embeddings."""

from activities.search.embedding import EmbeddingsFailed, choose_embedder
from activities.search.hybrid_search import search_passages

__all__ = ["EmbeddingsFailed", "choose_embedder", "search_passages"]
