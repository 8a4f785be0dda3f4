"""The model: which endpoint, what is sent, what came back."""
