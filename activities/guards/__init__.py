"""Guards that read content: asked here, where the content is."""
