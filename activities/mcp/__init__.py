"""MCP servers: their processes and connections, which the worker owns, and what they declare."""
