"""A job's checkpoint: open, change, save, show as a folder, push and fetch."""
