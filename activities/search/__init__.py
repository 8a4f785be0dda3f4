"""Search by meaning: passages of the present files, ranked by their words and by embeddings."""

from activities.search.embedding import EmbeddingsFailed, embedder
from activities.search.likeness import likeness
from activities.search.searching import Found, search

__all__ = ["EmbeddingsFailed", "Found", "embedder", "likeness", "search"]
