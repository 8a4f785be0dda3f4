"""Guards that read content, and hooks: asked here, where the content is."""
