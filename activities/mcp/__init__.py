"""MCP servers: their processes and connections, owned by the worker, and their declared tools."""
