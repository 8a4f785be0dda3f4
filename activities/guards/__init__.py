"""Guards that read content; they run in activities, where the content is."""
