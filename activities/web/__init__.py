"""The web: pages fetched from permitted addresses, and searches through a provider."""
