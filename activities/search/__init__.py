"""Search by meaning, and how alike texts are: by their words and by embeddings."""

from activities.search.embedding import EmbeddingsFailed, choose_embedder
from activities.search.hybrid_search import search_passages

__all__ = ["EmbeddingsFailed", "choose_embedder", "search_passages"]
