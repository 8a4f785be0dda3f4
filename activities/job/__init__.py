"""A job's checkpoint: opened, changed, saved, shown as a folder, pushed and fetched."""
