"""The model: choose an endpoint, build the request, read the reply."""
