"""Longhaul beside what people would use instead: `make compare`.

Each runner works in a process of its own, against one fake endpoint in another process.
"""
