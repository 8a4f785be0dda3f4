"""What developers run: the environment, generated documentation, screenshots."""
