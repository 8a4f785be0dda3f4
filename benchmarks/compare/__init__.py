"""Longhaul compared with alternatives: `make compare`.

Each runner works in its own process, against one fake endpoint in another process.
"""
